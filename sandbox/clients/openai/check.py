"""Asks an agent with OpenAI's client for Python. Rows go to stdout as check<TAB>ok|FAIL<TAB>detail; `done` is last."""

import os
import sys

import openai
from openai import OpenAI

client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["TOKEN"])
other = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["OTHER_TOKEN"])


def ask(asked, by=client, **more):
    return by.chat.completions.create(model="vocative", messages=asked, **more)


def user(text):
    return {"role": "user", "content": text}


def text_of(answer):
    return answer.choices[0].message.content


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def lists_agents_as_models():
    assert [model.id for model in client.models.list()] == ["vocative"]
    assert client.models.retrieve("vocative").id == "vocative"
    assert refused(openai.NotFoundError, lambda: client.models.retrieve("gpt-5")).code == "model_not_found"


def is_answered():
    answer = ask([user("what is up?")])
    assert "what is up?" in text_of(answer), answer
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.vocative["conversation"]


def is_told_while_it_is_written():
    chunks = list(ask([user("tell me a story")], stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "tell me a story" in text, text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens >= 0
    assert len({chunk.id for chunk in chunks}) == 1


def keeps_a_conversation():
    kept = {"conversation": "python"}
    first = ask([user("one")], metadata=kept)
    second = ask([user("two")], metadata=kept)
    assert first.vocative["conversation"] == second.vocative["conversation"]
    assert first.vocative["run"] != second.vocative["run"]
    of_other = ask([user("three")], by=other, metadata=kept)
    assert of_other.vocative["conversation"] != first.vocative["conversation"]


def reads_a_given_history():
    history = [
        {"role": "system", "content": "Speak like a pirate."},
        user("one"),
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": "three"}]},
    ]
    assert "three" in text_of(ask(history, user="bob"))


def asks_once_under_one_name():
    name = {"Idempotency-Key": "python-1"}
    first = ask([user("hello")], extra_headers=name)
    again = ask([user("hello")], extra_headers=name)
    assert (first.id, text_of(first)) == (again.id, text_of(again))
    error = refused(openai.UnprocessableEntityError, lambda: ask([user("bye")], extra_headers=name))
    assert error.code == "idempotency_key_reused", error


def is_refused_what_is_not_served():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    for field, value in {"tools": [tool], "temperature": 0.5, "max_tokens": 5, "n": 2, "seed": 1}.items():
        error = refused(openai.BadRequestError, lambda: ask([user("hi")], **{field: value}))
        assert (error.param, error.code) == (field, "unsupported_parameter"), error


def is_told_of_a_wrong_token():
    stranger = OpenAI(base_url=os.environ["BASE_URL"], api_key="wrong")
    assert refused(openai.AuthenticationError, lambda: ask([user("hi")], by=stranger)).code == "invalid_api_key"


def main():
    failed = False
    for check in [
        lists_agents_as_models,
        is_answered,
        is_told_while_it_is_written,
        keeps_a_conversation,
        reads_a_given_history,
        asks_once_under_one_name,
        is_refused_what_is_not_served,
        is_told_of_a_wrong_token,
    ]:
        name = check.__name__.replace("_", " ")
        try:
            check()
            print(f"{name}\tok\t", flush=True)
        except Exception as error:  # Any failure is a row.
            failed = True
            print(f"{name}\tFAIL\t{type(error).__name__}: {str(error)[:300]!r}", flush=True)
    print("done")
    return int(failed)


sys.exit(main())
