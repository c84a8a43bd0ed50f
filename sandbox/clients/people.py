"""The people's side of the checks: acts over the control surface, and the table rows.

Knows no client library. A check is a function; it passes when it returns and fails when it raises.
Rows go to stdout as `check<TAB>ok|FAIL<TAB>detail`; `done` is the last line.
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

WAIT_S = 15.0
POLL_EVERY_S = 0.05


def addresses(platform):
    """What the sandbox printed about one platform: URLs and tokens."""
    return json.loads(os.environ["SANDBOX"])[platform]


class Control:
    """The control surface of one loopback platform."""

    def __init__(self, control_url):
        self.control_url = control_url

    def do(self, act, **body):
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self._send(urllib.request.Request(self.control_url + act, data, headers))

    def look(self, what, **query):
        url = self.control_url + what + "?" + urllib.parse.urlencode(query)
        return self._send(urllib.request.Request(url))

    @staticmethod
    def _send(request):
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{request.full_url}: {error.read().decode()}") from error


def wait_for(what, find):
    """Calls `find` until it gives something; says what was missing otherwise."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(POLL_EVERY_S)
    raise AssertionError(f"waited {WAIT_S:.0f} s for {what}")


def expect(name, got, wanted):
    """Fails unless both are equal."""
    if got != wanted:
        raise AssertionError(f"{name} is {got!r}, expected {wanted!r}")


def raised(kind, call):
    """The exception of this kind that the call must raise."""
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


def row(name, error=None):
    """Prints one row; a row with an error is a failure."""
    state, detail = ("ok", "") if error is None else ("FAIL", f"{type(error).__name__}: {error}")
    print(f"{name}\t{state}\t{' '.join(detail.split())[:300]}", flush=True)


def run_checks(checks):
    """Runs (name, function) pairs in order; a failure does not end the run."""
    failures = 0
    for name, check in checks:
        try:
            check()
        except Exception as error:  # whatever a library raises is a finding, not the end
            failures += 1
            row(name, error)
        else:
            row(name)
    done()
    return failures


def done():
    """Says that every check was run; without this line the run counts as broken off."""
    print("done", flush=True)
