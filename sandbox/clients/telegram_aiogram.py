"""aiogram, with its long polling, against the loopback Telegram."""

import asyncio
import io
import logging
import struct
import sys
import zlib

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramBadRequest, TelegramForbiddenError, TelegramRetryAfter
from aiogram.types import (BufferedInputFile, InlineKeyboardButton, InlineKeyboardMarkup,
                           InputMediaPhoto)

from people import Control, WAIT_S, addresses, done, expect, row

logging.basicConfig(level=logging.CRITICAL, stream=sys.stderr)

TELEGRAM = addresses("telegram")
PEOPLE = Control(TELEGRAM["control_url"])
ANN, BOB, SUPERGROUP = 5001, 5002, -1001234567890

api = TelegramAPIServer.from_base(TELEGRAM["api_url"])
bot = Bot(TELEGRAM["token"], session=AiohttpSession(api=api))
dispatcher = Dispatcher()


@dispatcher.callback_query(F.data.startswith("retry:"))
async def on_press(query):
    await query.answer("on it")
    await query.message.edit_reply_markup(reply_markup=None)


@dispatcher.message(F.text.contains("@vocative_bot"))
async def on_mention(message):
    await message.reply(f"heard: {message.text}")


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


async def raised(kind, call):
    try:
        result = await call
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


def png():
    """A picture of one point."""
    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


async def mention():
    asked = (await do("say", chat=SUPERGROUP, user=ANN, text="@vocative_bot up?"))["message_id"]

    async def find():
        posts = await look("posts", chat=SUPERGROUP)
        return [post for post in posts if post["by_bot"] and post["reply_to"] == asked]

    expect("answer", (await wait_for("the answer", find))[0]["text"], "heard: @vocative_bot up?")


async def inline_button():
    markup = InlineKeyboardMarkup(inline_keyboard=[
        [InlineKeyboardButton(text="Retry", callback_data="retry:1")]])
    sent = await bot.send_message(SUPERGROUP, "failed", reply_markup=markup)
    pressed = await do("press", chat=SUPERGROUP, user=ANN, message_id=sent.message_id, button="Retry")

    async def answered():
        return (await look("callback", id=pressed["callback_id"]))["answer"]

    expect("answer", (await wait_for("the answer", answered))["text"], "on it")

    async def is_bare():
        posts = await look("posts", chat=SUPERGROUP)
        return next(it for it in posts if it["message_id"] == sent.message_id)["keyboard"] is None

    await wait_for("the keyboard to go", is_bare)


async def photo_and_download():
    sent = await bot.send_photo(ANN, BufferedInputFile(png(), "a.png"), caption="<b>look</b>", parse_mode="HTML")
    expect("caption", (sent.caption, sent.caption_entities[0].type), ("look", "bold"))
    target = io.BytesIO()
    await bot.download(sent.photo[-1], destination=target)
    expect("bytes", target.getvalue() == png(), True)
    edited = await bot.edit_message_caption(chat_id=ANN, message_id=sent.message_id, caption="seen")
    expect("edited", edited.caption, "seen")


async def album():
    media = [InputMediaPhoto(media=BufferedInputFile(png(), f"{n}.png"), caption=str(n)) for n in (1, 2)]
    sent = await bot.send_media_group(ANN, media)
    expect("album", len({message.media_group_id for message in sent}), 1)


async def copy_and_forward():
    said = (await do("say", chat=SUPERGROUP, user=BOB, text="as Bob said"))["message_id"]
    copied = await bot.copy_message(ANN, SUPERGROUP, said)
    posts = await look("posts", chat=ANN)
    expect("copy", [it["text"] for it in posts if it["message_id"] == copied.message_id], ["as Bob said"])
    forwarded = await bot.forward_message(ANN, SUPERGROUP, said)
    expect("origin", forwarded.forward_origin.sender_user.id, BOB)


async def typed_errors():
    refused = await raised(TelegramBadRequest, bot.send_message(SUPERGROUP, "```a`b```", parse_mode="MarkdownV2"))
    expect("wording", "can't parse entities" in refused.message, True)
    await raised(TelegramForbiddenError, bot.send_message(BOB, "x"))
    await do("fault", method="sendMessage", fault="rate_limited", retry_after_s=7)
    limited = await raised(TelegramRetryAfter, bot.send_message(SUPERGROUP, "x"))
    expect("retry_after", limited.retry_after, 7)


async def polling_survives():
    for fault in ({"fault": "gateway", "code": 502}, {"fault": "reset_before"}, {"fault": "conflict"}):
        await do("fault", method="getUpdates", **fault)
    await mention()


async def all_confirmed():
    async def is_empty():
        return (await look("state"))["pending_updates"] == 0

    await wait_for("every update to be confirmed", is_empty)


CHECKS = [
    ("mention answered as a reply", mention),
    ("inline button", inline_button),
    ("photo, download, caption", photo_and_download),
    ("album", album),
    ("copy and forward", copy_and_forward),
    ("typed errors", typed_errors),
    ("polling survives 502, reset, 409", polling_survives),
    ("every update confirmed", all_confirmed),
]


async def main():
    failures = 0
    polling = asyncio.create_task(
        dispatcher.start_polling(bot, polling_timeout=5, handle_signals=False))
    for name, check in CHECKS:
        try:
            await check()
        except Exception as error:  # whatever a library raises is a finding, not the end
            failures += 1
            row(name, error)
        else:
            row(name)
    done()
    await dispatcher.stop_polling()
    await polling
    return 1 if failures else 0


sys.exit(asyncio.run(main()))
