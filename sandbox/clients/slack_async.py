"""Slack's Python SDK over asyncio (AsyncApp, AsyncWebClient on aiohttp) against the loopback Slack."""

import asyncio
import logging
import sys

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from people import Control, WAIT_S, addresses, done, expect, row

logging.basicConfig(level=logging.CRITICAL, stream=sys.stderr)

SLACK = addresses("slack")
PEOPLE = Control(SLACK["control_url"])
CLIENT = AsyncWebClient(token=SLACK["bot_token"], base_url=SLACK["api_url"])
PLAIN = "plain_text"

app = AsyncApp(client=CLIENT)


@app.event("app_mention")
async def on_mention(event, say):
    await say(text=f"heard: {event['text']}", thread_ts=event.get("thread_ts") or event["ts"])


@app.event("message")
async def on_message():
    pass


@app.command("/ask")
async def on_command(ack, command):
    await ack(text=f"commanded: {command['text']}", response_type="in_channel")


@app.action("approve")
async def on_click(ack, respond):
    await ack()
    await respond(text="approved", replace_original=True)


@app.command("/alias")
async def on_alias(ack, body, client):
    await ack()
    await client.views_open(trigger_id=body["trigger_id"], view={
        "type": "modal", "callback_id": "alias", "title": {"type": PLAIN, "text": "Alias"},
        "submit": {"type": PLAIN, "text": "Save"},
        "blocks": [{"type": "input", "block_id": "b", "label": {"type": PLAIN, "text": "Name"},
                    "element": {"type": "plain_text_input", "action_id": "name"}}]})


@app.view("alias")
async def on_alias_sent(ack, view, client):
    name = view["state"]["values"]["b"]["name"]["value"]
    if name == "taken":
        await ack(response_action="errors", errors={"b": "Already taken"})
        return
    await ack()
    await client.chat_postMessage(channel="C0OPS", text=f"alias: {name}")


async def do(act, **body):
    return await asyncio.to_thread(PEOPLE.do, act, **body)


async def look(what, **query):
    return await asyncio.to_thread(PEOPLE.look, what, **query)


async def wait_for(what, find):
    end = asyncio.get_running_loop().time() + WAIT_S
    while asyncio.get_running_loop().time() < end:
        found = await find()
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {WAIT_S:.0f} s for {what}")


async def wait_for_text(channel, text):
    async def find():
        posts = (await look("posts", channel=channel))["posts"]
        return next((post for post in posts if post["text"] == text), None)

    return await wait_for(f"the post {text!r}", find)


async def mention():
    await do("post", channel="#general", user="ann", text="@vocative is it up?")
    await wait_for_text("#general", f"heard: <@{SLACK['bot_user_id']}> is it up?")


async def command_answered_in_its_ack():
    await do("command", channel="#ops", user="ann", command="/ask", text="anything")
    await wait_for_text("#ops", "commanded: anything")


async def button_replaces_its_message():
    blocks = [{"type": "actions", "elements": [
        {"type": "button", "action_id": "approve", "text": {"type": PLAIN, "text": "Approve"}}]}]
    ts = (await CLIENT.chat_postMessage(channel="C0OPS", text="approve?", blocks=blocks))["ts"]
    await do("click", channel="C0OPS", user="ann", ts=ts, action_id="approve")
    expect("ts", (await wait_for_text("#ops", "approved"))["ts"], ts)


async def modal():
    await do("command", channel="#ops", user="ann", command="/alias")

    async def opened():
        return (await look("views"))["views"]

    await wait_for("the modal", opened)
    await do("submit", user="ann", values={"name": "taken"})

    async def complains():
        views = (await look("views"))["views"]
        return views and views[0]["errors"]

    expect("errors", await wait_for("the error", complains), {"b": "Already taken"})
    await do("submit", user="ann", values={"name": "root"})
    await wait_for_text("#ops", "alias: root")


async def file_upload():
    sent = await CLIENT.files_upload_v2(channel="C0OPS", filename="t.txt", content="table", title="T")
    expect("file", sent["files"][0]["title"], "T")
    await wait_for("the file", lambda: shown_file("t.txt"))


async def shown_file(name):
    posts = (await look("posts", channel="#ops"))["posts"]
    return [file for post in posts for file in post["files"] if file["name"] == name]


async def stream_helper():
    root = (await do("post", channel="#ops", user="ann", text="tell me"))["ts"]
    streamer = await CLIENT.chat_stream(
        channel="C0OPS", thread_ts=root, recipient_user_id="U0ANN", recipient_team_id="T0ACME",
        buffer_size=4)
    for word in ("one ", "two ", "three"):
        await streamer.append(markdown_text=word)
    await streamer.stop()
    await wait_for_text("#ops", "one two three")


async def small_methods():
    posted = await CLIENT.chat_postMessage(channel="#ops", text="by name")
    link = await CLIENT.chat_getPermalink(channel=posted["channel"], message_ts=posted["ts"])
    expect("permalink", link["permalink"].startswith("https://acme.slack.com/archives/C0OPS/p"), True)
    await CLIENT.reactions_add(channel="C0OPS", timestamp=posted["ts"], name="eyes")
    seen = await CLIENT.reactions_get(channel="C0OPS", timestamp=posted["ts"])
    expect("reaction", seen["message"]["reactions"][0]["name"], "eyes")
    expect("api.test", (await CLIENT.api_test(foo="bar"))["args"]["foo"], "bar")
    rooms = await CLIENT.users_conversations(types="public_channel")
    expect("rooms", "C0OPS" in [room["id"] for room in rooms["channels"]], True)
    found = await CLIENT.conversations_history(channel="C0OPS", limit=1)
    expect("history", found["messages"][0]["text"], "by name")


async def typed_errors():
    for channel, error in [("C0NOWHERE", "channel_not_found"), ("C0ELSEWHERE", "not_in_channel")]:
        try:
            await CLIENT.chat_postMessage(channel=channel, text="x")
        except SlackApiError as refused:
            expect("error", refused.response["error"], error)
        else:
            raise AssertionError(f"{channel} took a post")


async def nothing_left():
    async def is_acked():
        await do("redeliver")
        return (await look("state"))["unacked"] == 0

    await wait_for("every acknowledgement", is_acked)
    expect("violations", (await look("state"))["violations"], [])


CHECKS = [
    ("mention answered in its thread", mention),
    ("command answered in its ack", command_answered_in_its_ack),
    ("button replaces its message", button_replaces_its_message),
    ("modal: errors, then saved", modal),
    ("file upload", file_upload),
    ("stream helper", stream_helper),
    ("small methods", small_methods),
    ("typed errors", typed_errors),
    ("no violation", nothing_left),
]


async def main():
    failures = 0
    handler = AsyncSocketModeHandler(app, SLACK["app_token"])
    await handler.connect_async()
    for name, check in CHECKS:
        try:
            await check()
        except Exception as error:  # whatever a library raises is a finding, not the end
            failures += 1
            row(name, error)
        else:
            row(name)
    done()
    await handler.close_async()
    return 1 if failures else 0


sys.exit(asyncio.run(main()))
