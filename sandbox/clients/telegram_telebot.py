"""pyTelegramBotAPI (telebot), with its threaded long polling, against the loopback Telegram."""

import logging
import os
import sys
import threading

import telebot
from telebot import apihelper, types

from people import Control, addresses, expect, raised, run_checks, wait_for

telebot.logger.setLevel(logging.CRITICAL)

TELEGRAM = addresses("telegram")
PEOPLE = Control(TELEGRAM["control_url"])
ANN, BOB, SUPERGROUP, FORUM, TOPIC = 5001, 5002, -1001234567890, -1001234567891, 163

apihelper.API_URL = TELEGRAM["api_url"] + "/bot{0}/{1}"
apihelper.FILE_URL = TELEGRAM["api_url"] + "/file/bot{0}/{1}"
bot = telebot.TeleBot(TELEGRAM["token"])
heard_edits = []


@bot.edited_message_handler(func=lambda message: True)
def on_edit(message):
    heard_edits.append(message.text)


@bot.callback_query_handler(func=lambda query: query.data == "retry:1")
def on_press(query):
    bot.answer_callback_query(query.id, "on it", show_alert=True)


@bot.message_handler(func=lambda message: "@vocative_bot" in (message.text or ""))
def on_mention(message):
    bot.reply_to(message, f"heard: {message.text}")


def posts(chat):
    return PEOPLE.look("posts", chat=chat)


def ask(chat, text, **more):
    asked = PEOPLE.do("say", chat=chat, user=ANN, text=text, **more)["message_id"]

    def find():
        answers = [post for post in posts(chat) if post["by_bot"] and post["reply_to"] == asked]
        return answers and answers[0]

    answer = wait_for(f"the answer to {text!r}", find)
    expect("topic", answer["thread"], more.get("topic"))


def edit_by_a_person():
    written = PEOPLE.do("say", chat=SUPERGROUP, user=ANN, text="tpyo")["message_id"]
    PEOPLE.do("edit", chat=SUPERGROUP, message_id=written, text="typo")
    wait_for("the edit", lambda: "typo" in heard_edits)


def inline_button():
    markup = types.InlineKeyboardMarkup()
    markup.add(types.InlineKeyboardButton("Retry", callback_data="retry:1"))
    sent = bot.send_message(SUPERGROUP, "failed", reply_markup=markup)
    pressed = PEOPLE.do("press", chat=SUPERGROUP, user=BOB, message_id=sent.message_id, button="Retry")
    answer = wait_for("the answer", lambda: PEOPLE.look("callback", id=pressed["callback_id"])["answer"])
    expect("answer", answer, {"text": "on it", "show_alert": True})
    bare = bot.edit_message_reply_markup(SUPERGROUP, sent.message_id)
    expect("keyboard", bare.reply_markup, None)


def keyboard_of_replies():
    markup = types.ReplyKeyboardMarkup()
    markup.add("@vocative_bot yes", "no")
    sent = bot.send_message(ANN, "sure?", reply_markup=markup)
    written = PEOPLE.do("press", chat=ANN, user=ANN, message_id=sent.message_id, button="@vocative_bot yes")
    wait_for("the answer", lambda: [it for it in posts(ANN) if it["reply_to"] == written["message_id"]])


def document_and_download():
    sent = bot.send_document(SUPERGROUP, ("t.csv", b"a,b\n"), caption="the table")
    expect("caption", sent.caption, "the table")
    path = bot.get_file(sent.document.file_id).file_path
    expect("bytes", bot.download_file(path), b"a,b\n")


def formatted():
    sent = bot.send_message(SUPERGROUP, "*bold* 1\\.5", parse_mode="MarkdownV2")
    expect("text", (sent.text, sent.entities[0].type), ("bold 1.5", "bold"))


def typed_errors():
    wrong = telebot.apihelper.ApiTelegramException
    refused = raised(wrong, lambda: bot.send_message(BOB, "x"))
    expect("error_code", refused.error_code, 403)
    refused = raised(wrong, lambda: bot.copy_message(ANN, SUPERGROUP, 99_999))
    expect("description", refused.description, "Bad Request: message to copy not found")


def all_confirmed():
    wait_for("every update to be confirmed", lambda: PEOPLE.look("state")["pending_updates"] == 0)


threading.Thread(
    target=bot.infinity_polling,
    kwargs={"timeout": 5, "long_polling_timeout": 5, "logger_level": logging.CRITICAL},
    daemon=True,
).start()
failures = run_checks([
    ("mention answered as a reply", lambda: ask(SUPERGROUP, "@vocative_bot is it up?")),
    ("topic reply", lambda: ask(FORUM, "@vocative_bot here?", topic=TOPIC)),
    ("edit by a person is heard", edit_by_a_person),
    ("inline button", inline_button),
    ("keyboard of replies", keyboard_of_replies),
    ("document, download", document_and_download),
    ("formatted: MarkdownV2", formatted),
    ("typed errors", typed_errors),
    ("every update confirmed", all_confirmed),
])
sys.stdout.flush()
# The polling thread may still wait for its answer; nothing of it is wanted any more.
os._exit(1 if failures else 0)
