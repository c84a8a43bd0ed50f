"""Slack's official Python SDK (slack_bolt in Socket Mode, slack_sdk) against the loopback Slack."""

import logging
import os
import sys

from slack_bolt import App
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

from people import Control, addresses, expect, raised, run_checks, wait_for

logging.basicConfig(level=logging.ERROR, stream=sys.stderr)

SLACK = addresses("slack")
PEOPLE = Control(SLACK["control_url"])
CLIENT = WebClient(token=SLACK["bot_token"], base_url=SLACK["api_url"])
METADATA = {"event_type": "sandbox_check", "event_payload": {"id": "42"}}

app = App(client=CLIENT)
heard_edits = []


@app.event("app_mention")
def on_mention(event, say):
    say(text=f"heard: {event['text']}", thread_ts=event.get("thread_ts") or event["ts"])


@app.event({"type": "message", "subtype": "message_changed"})
def on_edit(event):
    heard_edits.append(event["message"]["text"])


@app.event("message")
def on_message(event, say):
    if event["channel_type"] == "im":
        say(text=f"direct: {event['text']}")


@app.command("/ask")
def on_command(ack, respond, command):
    ack()
    respond(text=f"commanded: {command['text']}", response_type="in_channel")


@app.action("approve")
def on_click(ack, body, client):
    ack()
    place, message = body["channel"]["id"], body["message"]["ts"]
    client.chat_update(channel=place, ts=message, text="approved")


def posts(channel):
    return PEOPLE.look("posts", channel=channel)["posts"]


def wait_for_answer(channel, thread_ts, text):
    def find():
        for post in posts(channel):
            if post["text"] == text and post["thread_ts"] == thread_ts and post["bot_id"]:
                return post

    return wait_for(f"the answer {text!r}", find)


def ask(text, **more):
    """Ann mentions the bot; its answer must stand in that thread. Gives the question's ts."""
    ts = PEOPLE.do("post", channel="#general", user="ann", text=f"@vocative {text}", **more)["ts"]
    wire = f"heard: <@{SLACK['bot_user_id']}> {text}"
    wait_for_answer("#general", more.get("thread_ts", ts), wire)
    return ts


def mention():
    ask("is it up?")


def thread_reply():
    root = PEOPLE.do("post", channel="#general", user="bob", text="a root")["ts"]
    ask("in this thread?", thread_ts=root)


def direct_message():
    PEOPLE.do("post", channel="D0ANN", user="ann", text="1 < 2 & so on")
    wait_for_answer("D0ANN", None, "direct: 1 &lt; 2 &amp; so on")


def edit_by_a_person():
    ts = PEOPLE.do("post", channel="#general", user="ann", text="tpyo")["ts"]
    PEOPLE.do("edit", channel="#general", ts=ts, text="typo")
    wait_for("the edit", lambda: "typo" in heard_edits)


def slash_command():
    PEOPLE.do("command", channel="#ops", user="ann", command="/ask", text="anything")
    wait_for_answer("#ops", None, "commanded: anything")


def button():
    blocks = [{"type": "actions", "block_id": "b", "elements": [
        {"type": "button", "action_id": "approve", "value": "1",
         "text": {"type": "plain_text", "text": "Approve"}}]}]
    ts = CLIENT.chat_postMessage(channel="C0OPS", text="approve?", blocks=blocks)["ts"]
    PEOPLE.do("click", channel="C0OPS", user="ann", ts=ts, block_id="b", action_id="approve")
    wait_for_answer("#ops", None, "approved")


def history_with_metadata():
    ts = CLIENT.chat_postMessage(channel="C0OPS", text="marked", metadata=METADATA)["ts"]
    found = CLIENT.conversations_history(
        channel="C0OPS", latest=ts, oldest=ts, inclusive=True, limit=1, include_all_metadata=True)
    expect("metadata", found["messages"][0]["metadata"], METADATA)
    plain = CLIENT.conversations_history(channel="C0OPS", latest=ts, inclusive=True, limit=1)
    expect("metadata unless asked for", "event_payload" in plain["messages"][0].get("metadata", {}), False)


def replies_by_page():
    root = CLIENT.chat_postMessage(channel="C0OPS", text="root")["ts"]
    for number in range(3):
        CLIENT.chat_postMessage(channel="C0OPS", text=f"reply {number}", thread_ts=root)
    texts = []
    for page in CLIENT.conversations_replies(channel="C0OPS", ts=root, limit=2):
        texts += [message["text"] for message in page["messages"]]
    # Whether the root is repeated on every page is the server's choice.
    expect("replies", [text for text in texts if text != "root"], ["reply 0", "reply 1", "reply 2"])


def edit_and_delete():
    ts = CLIENT.chat_postMessage(channel="C0OPS", text="first")["ts"]
    CLIENT.chat_update(channel="C0OPS", ts=ts, text="second")
    post = next(post for post in posts("#ops") if post["ts"] == ts)
    expect("text", (post["text"], post["edited"] is not None), ("second", True))
    CLIENT.chat_delete(channel="C0OPS", ts=ts)
    expect("deleted", next(post for post in posts("#ops") if post["ts"] == ts)["deleted"], True)


def file_upload():
    sent = CLIENT.files_upload_v2(channel="C0OPS", filename="t.txt", content="table", title="T")
    expect("file", sent["files"][0]["title"], "T")
    wait_for("the file", lambda: [it for post in posts("#ops") for it in post["files"] if it["title"] == "T"])


def stream_helper():
    root = PEOPLE.do("post", channel="#ops", user="ann", text="tell me")["ts"]
    streamer = CLIENT.chat_stream(channel="C0OPS", thread_ts=root, recipient_user_id="U0ANN",
                                  recipient_team_id="T0ACME", buffer_size=4)
    for word in ("one ", "two ", "three"):
        streamer.append(markdown_text=word)
    streamer.stop()
    wait_for("the stream", lambda: [post for post in posts("#ops") if post["text"] == "one two three"])


def look_ups():
    expect("name", CLIENT.users_info(user="U0ANN")["user"]["name"], "ann")
    expect("channel", CLIENT.conversations_info(channel="C0GENERAL")["channel"]["name"], "general")
    sizes, names = [], set()
    for page in CLIENT.conversations_list(limit=2, types="public_channel"):
        sizes.append(len(page["channels"]))
        names |= {channel["name"] for channel in page["channels"]}
    expect("channels by page", {"general", "ops"} <= names, True)
    expect("sizes of pages", len(sizes) > 1 and max(sizes) == 2, True)
    expect("scopes", "chat:write" in CLIENT.auth_test().headers["x-oauth-scopes"], True)


def typed_errors():
    post = CLIENT.chat_postMessage
    refused = raised(SlackApiError, lambda: post(channel="C0NOWHERE", text="x"))
    expect("error", refused.response["error"], "channel_not_found")
    refused = raised(SlackApiError, lambda: post(channel="C0ELSEWHERE", text="x"))
    expect("error", refused.response["error"], "not_in_channel")
    stranger = WebClient(token="xoxb-unknown", base_url=SLACK["api_url"])
    refused = raised(SlackApiError, stranger.auth_test)
    expect("error", refused.response["error"], "invalid_auth")


def rate_limit():
    limited = {"method": "chat.postMessage", "kind": "rate_limited", "retry_after_s": 1}
    PEOPLE.do("fault", **limited)
    refused = raised(SlackApiError, lambda: CLIENT.chat_postMessage(channel="C0OPS", text="x"))
    expect("Retry-After", (refused.response.status_code, refused.response.headers["Retry-After"]), (429, "1"))
    patient = WebClient(token=SLACK["bot_token"], base_url=SLACK["api_url"])
    patient.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=1))
    PEOPLE.do("fault", **limited)
    expect("ok", patient.chat_postMessage(channel="C0OPS", text="after the wait")["ok"], True)


def reconnect(reason):
    def check():
        before = handler.client.current_session.session_id
        PEOPLE.do("disconnect", reason=reason)

        def is_new():
            session = handler.client.current_session
            is_other = session is not None and session.session_id != before
            return is_other and handler.client.is_connected() and PEOPLE.look("state")["open_sockets"] > 0

        wait_for("a new session", is_new)
        ask(f"still there after {reason}?")

    return check


def duplicate_event():
    PEOPLE.do("fault", method="event", kind="duplicate", count=1)
    ask("twice delivered?")


def nothing_left():
    # What was on its way when a socket ended waits for its retry, a minute after the first one.
    PEOPLE.do("redeliver")
    wait_for("every acknowledgement", lambda: PEOPLE.look("state")["unacked"] == 0)
    state = PEOPLE.look("state")
    expect("violations", state["violations"], [])
    expect("lost", state["lost"], [])


handler = SocketModeHandler(app, SLACK["app_token"])
handler.client.ping_interval = 2
handler.connect()
failures = run_checks([
    ("mention answered in its thread", mention),
    ("reply in a thread", thread_reply),
    ("direct message", direct_message),
    ("edit by a person is heard", edit_by_a_person),
    ("slash command, response_url", slash_command),
    ("button", button),
    ("history with metadata", history_with_metadata),
    ("replies by page", replies_by_page),
    ("edit and delete", edit_and_delete),
    ("file upload", file_upload),
    ("stream helper", stream_helper),
    ("look-ups", look_ups),
    ("typed errors", typed_errors),
    ("rate limit", rate_limit),
    ("reconnect: refresh_requested", reconnect("refresh_requested")),
    ("reconnect: warning", reconnect("warning")),
    ("reconnect: reset", reconnect("abort")),
    ("duplicate delivery", duplicate_event),
    ("no violation, nothing lost", nothing_left),
])
sys.stdout.flush()
# The handler's threads may still be in the middle of a read; nothing of theirs is wanted any more.
os._exit(1 if failures else 0)
