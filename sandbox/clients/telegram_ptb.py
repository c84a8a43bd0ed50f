"""python-telegram-bot, with its long polling, against the loopback Telegram."""

import asyncio
import logging
import sys

from telegram import Bot, BotCommand, MessageEntity, ReactionTypeEmoji, ReplyParameters
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter
from telegram.ext import ApplicationBuilder, MessageHandler, filters

from people import WAIT_S, Control, addresses, done, expect, row

logging.basicConfig(level=logging.CRITICAL, stream=sys.stderr)

TELEGRAM = addresses("telegram")
PEOPLE = Control(TELEGRAM["control_url"])
ANN, BOB = 5001, 5002
SUPERGROUP, FORUM, TOPIC = -1001234567890, -1001234567891, 163

heard_edits = []


async def on_edit(update, _context):
    heard_edits.append(update.edited_message.text)


async def on_message(update, context):
    """Answers what is addressed to the bot: a mention, a reply to it, a private chat."""
    message, me = update.message, context.bot.username
    mentions = message.parse_entities([MessageEntity.MENTION]).values()
    replied = message.reply_to_message
    is_reply = replied is not None and replied.from_user and replied.from_user.username == me
    if message.chat.type == "private" or f"@{me}" in mentions or is_reply:
        await message.reply_text(f"heard: {message.text}", do_quote=True)


async def do(act, **body):
    return await asyncio.to_thread(PEOPLE.do, act, **body)


async def posts(chat):
    return await asyncio.to_thread(PEOPLE.look, "posts", chat=chat)


async def post_of(chat, message_id):
    return next(post for post in await posts(chat) if post["message_id"] == message_id)


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
        expect("exception", type(error), kind)
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


async def ask(chat, text, **more):
    """Ann writes; the bot's answer must reply to her message. Gives the answer."""
    asked = (await do("say", chat=chat, user=ANN, text=text, **more))["message_id"]

    async def find():
        for post in await posts(chat):
            if post["by_bot"] and post["reply_to"] == asked and post["text"] == f"heard: {text}":
                return post

    answer = await wait_for(f"the answer to {text!r}", find)
    expect("topic", answer["thread"], more.get("topic"))
    return answer


async def mention(_bot):
    await ask(SUPERGROUP, "😀 @vocative_bot is it up?")


async def reply_to_the_bot(_bot):
    answer = await ask(SUPERGROUP, "@vocative_bot first")
    await ask(SUPERGROUP, "and second?", reply_to=answer["message_id"])


async def private_chat(_bot):
    await ask(ANN, "just us")


async def topic_reply(_bot):
    await ask(FORUM, "@vocative_bot in the topic?", topic=TOPIC)


async def unaddressed(_bot):
    before = len([post for post in await posts(SUPERGROUP) if post["by_bot"]])
    await do("say", chat=SUPERGROUP, user=ANN, text="not for the bot")
    await ask(SUPERGROUP, "@vocative_bot but this is")
    after = len([post for post in await posts(SUPERGROUP) if post["by_bot"]])
    expect("answers", after - before, 1)


async def edit_by_a_person(_bot):
    written = (await do("say", chat=SUPERGROUP, user=ANN, text="tpyo"))["message_id"]
    await do("edit", chat=SUPERGROUP, message_id=written, text="typo")

    async def find():
        return "typo" in heard_edits

    await wait_for("the edit", find)


async def formatted(bot):
    html = "😀 <b>bold</b> and <a href=\"https://example.org/\">a link</a> <code>x &lt; 1</code>"
    sent = await bot.send_message(SUPERGROUP, html, parse_mode=ParseMode.HTML)
    expect("text", sent.text, "😀 bold and a link x < 1")
    spans = [(entity["type"], entity["offset"], entity["length"])
             for entity in (await post_of(SUPERGROUP, sent.message_id))["entities"]]
    expect("entities", spans, [("bold", 3, 4), ("text_link", 12, 6), ("code", 19, 5)])
    expect("read back", sent.parse_entity(sent.entities[0]), "bold")
    sent = await bot.send_message(
        SUPERGROUP, r"*bold* _it_ 1\.5", parse_mode=ParseMode.MARKDOWN_V2)
    expect("MarkdownV2", (sent.text, sent.text_markdown_v2), ("bold it 1.5", r"*bold* _it_ 1\.5"))


async def entities_array(bot):
    entities = [MessageEntity(MessageEntity.PRE, 3, 4, language="rust")]
    sent = await bot.send_message(SUPERGROUP, "😀 fn x", entities=entities)
    expect("entities", [entity.to_dict() for entity in sent.entities],
           [{"type": "pre", "offset": 3, "length": 4, "language": "rust"}])


async def edit(bot):
    sent = await bot.send_message(SUPERGROUP, "first")
    edited = await bot.edit_message_text("second", SUPERGROUP, sent.message_id)
    expect("edit_date", edited.edit_date is not None, True)
    post = await post_of(SUPERGROUP, sent.message_id)
    expect("seen", (post["text"], post["edited"]), ("second", True))
    same = await raised(BadRequest, bot.edit_message_text("second", SUPERGROUP, sent.message_id))
    expect("error", same.message.startswith("Message is not modified"), True)
    await bot.delete_message(SUPERGROUP, sent.message_id)
    expect("deleted", (await post_of(SUPERGROUP, sent.message_id))["deleted"], True)


async def document(bot):
    sent = await bot.send_document(SUPERGROUP, b"a,b\n1,2\n", filename="t.csv", caption="the table")
    expect("document", (sent.document.file_name, sent.caption), ("t.csv", "the table"))
    file = await bot.get_file(sent.document.file_id)
    expect("bytes", bytes(await file.download_as_bytearray()), b"a,b\n1,2\n")
    edited = await bot.edit_message_caption(SUPERGROUP, sent.message_id, caption="seen")
    expect("caption", edited.caption, "seen")


async def small_methods(bot):
    sent = await bot.send_message(SUPERGROUP, "look here")
    expect("action", await bot.send_chat_action(FORUM, ChatAction.TYPING, message_thread_id=TOPIC), True)
    thumb = [ReactionTypeEmoji("👍")]
    expect("reaction", await bot.set_message_reaction(SUPERGROUP, sent.message_id, thumb), True)
    commands = [BotCommand("ask", "Ask something")]
    expect("commands", await bot.set_my_commands(commands), True)
    expect("my commands", list(await bot.get_my_commands()), commands)
    expect("chat", (await bot.get_chat(FORUM)).is_forum, True)
    expect("member", (await bot.get_chat_member(SUPERGROUP, ANN)).user.first_name, "Ann")
    expect("webhook", (await bot.get_webhook_info()).url, "")


async def typed_errors(bot):
    gone = await raised(BadRequest, bot.edit_message_text("x", SUPERGROUP, 99_999_999))
    expect("error", gone.message, "Message to edit not found")
    gone = await raised(BadRequest, bot.send_message(
        SUPERGROUP, "x", reply_parameters=ReplyParameters(99_999_999)))
    expect("error", gone.message, "Message to be replied not found")
    broken = await raised(BadRequest, bot.send_message(SUPERGROUP, "<b>x", parse_mode=ParseMode.HTML))
    expect("error", broken.message.startswith("Can't parse entities"), True)
    long = await raised(BadRequest, bot.send_message(SUPERGROUP, "x" * 4097))
    expect("error", long.message, "Message is too long")
    await raised(Forbidden, bot.send_message(BOB, "x"))
    stranger = Bot("123456789:wrong", base_url=f"{TELEGRAM['api_url']}/bot")
    await raised(InvalidToken, stranger.initialize())


async def rate_limit(bot):
    await do("fault", method="sendMessage", fault="rate_limited", retry_after_s=7)
    limited = await raised(RetryAfter, bot.send_message(SUPERGROUP, "x"))
    retry_after = limited.retry_after
    expect("retry_after", getattr(retry_after, "total_seconds", lambda: retry_after)(), 7)


async def polling_survives(_bot):
    faults = [{"fault": "gateway", "code": 502}, {"fault": "conflict"}, {"fault": "reset_before"}]
    for fault in faults:
        await do("fault", method="getUpdates", **fault)
    await ask(SUPERGROUP, "@vocative_bot still there?")

    async def find():
        state = await asyncio.to_thread(PEOPLE.look, "state")
        return state["faults_applied"] >= len(faults)

    await wait_for("every fault", find)
    await ask(SUPERGROUP, "@vocative_bot and now?")


async def all_confirmed(_bot):
    async def find():
        return (await asyncio.to_thread(PEOPLE.look, "state"))["pending_updates"] == 0

    await wait_for("every update to be confirmed", find)


CHECKS = [
    ("mention answered as a reply", mention),
    ("reply to the bot", reply_to_the_bot),
    ("private chat", private_chat),
    ("topic reply", topic_reply),
    ("unaddressed is not answered", unaddressed),
    ("edit by a person is heard", edit_by_a_person),
    ("formatted: HTML, MarkdownV2", formatted),
    ("entities array", entities_array),
    ("edit and delete", edit),
    ("document, download, caption", document),
    ("small methods", small_methods),
    ("typed errors", typed_errors),
    ("rate limit", rate_limit),
    ("polling survives 502, 409, reset", polling_survives),
    ("every update confirmed", all_confirmed),
]


async def main():
    builder = ApplicationBuilder().token(TELEGRAM["token"]).base_url(f"{TELEGRAM['api_url']}/bot")
    application = builder.base_file_url(f"{TELEGRAM['api_url']}/file/bot").build()
    application.add_handler(MessageHandler(filters.UpdateType.EDITED_MESSAGE, on_edit))
    application.add_handler(MessageHandler(filters.TEXT, on_message))
    failures = 0
    async with application:
        await application.start()
        await application.updater.start_polling(poll_interval=0, timeout=5)
        for name, check in CHECKS:
            try:
                await check(application.bot)
            except Exception as error:  # whatever a library raises is a finding, not the end
                failures += 1
                row(name, error)
            else:
                row(name)
        done()
        await application.updater.stop()
        await application.stop()
    return 1 if failures else 0


sys.exit(asyncio.run(main()))
