// The people's side of the checks: acts over the control surface, and the table rows.
//
// Knows no client library. A check is an async function; it passes when it resolves and fails when
// it throws. Rows go to stdout as `check<TAB>ok|FAIL<TAB>detail`; `done` is the last line.

import { isDeepStrictEqual } from 'node:util';

const WAIT_MS = 15_000;
const POLL_EVERY_MS = 50;

/** What the sandbox printed about one platform: URLs and tokens. */
export function addresses(platform) {
  return JSON.parse(process.env.SANDBOX)[platform];
}

/** The control surface of one loopback platform. */
export class Control {
  constructor(controlUrl) {
    this.controlUrl = controlUrl;
  }

  do(act, body = {}) {
    const headers = { 'Content-Type': 'application/json' };
    return this.#send(this.controlUrl + act, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  look(what, query = {}) {
    return this.#send(`${this.controlUrl}${what}?${new URLSearchParams(query)}`);
  }

  async #send(url, options) {
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(WAIT_MS) });
    if (!response.ok) throw new Error(`${url}: ${await response.text()}`);
    return response.json();
  }
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Calls `find` until it gives something; says what was missing otherwise. */
export async function waitFor(what, find) {
  const end = Date.now() + WAIT_MS;
  while (Date.now() < end) {
    const found = await find();
    if (found) return found;
    await pause(POLL_EVERY_MS);
  }
  throw new Error(`waited ${WAIT_MS / 1000} s for ${what}`);
}

/** Fails unless both are equal, whatever the order of keys. */
export function expect(name, got, wanted) {
  if (isDeepStrictEqual(got, wanted)) return;
  throw new Error(`${name} is ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

/** The error that the call must throw. */
export async function thrown(call) {
  let result;
  try {
    result = await call();
  } catch (error) {
    return error;
  }
  throw new Error(`expected an error, got ${JSON.stringify(result)}`);
}

/** Runs [name, function] pairs in order; a failure does not end the run. Gives the failures. */
export async function runChecks(checks) {
  let failures = 0;
  for (const [name, check] of checks) {
    let row = ['ok', ''];
    try {
      await check();
    } catch (error) {
      failures += 1;
      row = ['FAIL', `${error?.name}: ${error?.message ?? error}`.split(/\s+/).join(' ').slice(0, 300)];
    }
    console.log([name, ...row].join('\t'));
  }
  // Without this line the run counts as broken off.
  console.log('done');
  return failures;
}
