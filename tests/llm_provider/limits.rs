//! Answers that reach a limit, thoughts that are none of their text, and prompts that are too long.

use super::streams::{Heard, listen};
use super::*;

/// The outcome of these replies, one behind the other, and the limits that were asked with; heard or not.
async fn limited(
    replies: &[ModelReply],
    is_streamed: bool,
    provider: Provider,
) -> (Result<Answer, ModelError>, Vec<Value>, Heard) {
    let server = server().await;
    for reply in replies {
        server.enqueue(reply.clone());
    }
    let (model, heard) = (model(provider, &server), Heard::default());
    let outcome = match is_streamed {
        true => listen(&model, &heard).await,
        false => ask(&model).await,
    };
    assert_eq!(server.replies_left(), 0, "{outcome:?}");
    let limits = server
        .requests()
        .into_iter()
        .map(|it| it.body["max_tokens"].clone());
    (outcome, limits.collect(), heard)
}

fn cut(text: &str) -> ModelReply {
    ModelReply::new(ModelAct::Cut {
        text: text.to_owned(),
    })
}

#[tokio::test]
async fn an_answer_cut_before_any_text_is_asked_for_once_more_with_a_higher_limit() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        for is_streamed in [false, true] {
            let replies = [cut(""), ModelReply::text("Yes.")];
            let (outcome, limits, _) = limited(&replies, is_streamed, provider).await;
            assert_eq!(outcome.unwrap().text, "Yes.");
            assert_eq!(limits, [256, 16_384]);
            // Never a third time.
            let (outcome, limits, _) = limited(&[cut(""), cut("")], is_streamed, provider).await;
            assert_eq!(outcome, Err(ModelError::Truncated));
            assert_eq!(limits, [256, 16_384]);
            // A model that takes no more says so, which is no news.
            let refused = ModelReply::status(400);
            let (outcome, _, _) = limited(&[cut(""), refused], is_streamed, provider).await;
            assert_eq!(outcome, Err(ModelError::Truncated));
        }
    }
}

#[tokio::test]
async fn a_thought_that_never_closes_is_no_text_and_what_showed_of_it_is_taken_back() {
    for text in ["<think>They ask why", "Well.\n<think>They ask why"] {
        for is_streamed in [false, true] {
            let replies = [cut(text), ModelReply::text("Yes.")];
            let (outcome, limits, heard) = limited(&replies, is_streamed, Provider::OpenAi).await;
            assert_eq!(outcome.unwrap().text, "Yes.");
            assert_eq!(limits.len(), 2);
            assert!(
                !heard.voided().concat().contains("They"),
                "thoughts were shown"
            );
        }
    }
}

#[tokio::test]
async fn text_before_a_lone_closing_is_thought_and_the_next_one_is_not_shown() {
    let server = server().await;
    let model = model(Provider::OpenAi, &server);
    let thought = || ModelReply::text("Okay, they ask why.\n</think>\n\nBecause.");
    server.enqueue(thought());
    assert_eq!(ask(&model).await.unwrap().text, "Because.");
    // Known by now: nothing shows before the thought is over.
    server.enqueue(thought().paced(20, Duration::from_millis(1)));
    let heard = Heard::default();
    assert_eq!(listen(&model, &heard).await.unwrap().text, "Because.");
    assert!(heard.voided().is_empty());
}

/// A model whose name says that it thinks aloud shows nothing of that from its first answer on.
#[tokio::test]
async fn models_that_are_known_to_think_aloud_show_no_thought_ever() {
    let server = server().await;
    let settings = ModelSettings {
        model: "deepseek-r1:8b".to_owned(),
        ..settings(Provider::OpenAi, server.openai_url())
    };
    let model = build(&settings, http()).unwrap();
    for text in [
        "Okay, they ask.</think>Because.",
        "<think>Okay.</think>Because.",
        "Because.",
    ] {
        server.enqueue(ModelReply::text(text).paced(15, Duration::from_millis(1)));
        let heard = Heard::default();
        assert_eq!(listen(&model, &heard).await.unwrap().text, "Because.");
        assert!(heard.voided().is_empty(), "{text}");
    }
}

#[tokio::test]
async fn tags_in_code_are_text() {
    let text = "Write `<think>` first:\n```\n<think>\nhm\n</think>\n```\nThen `</think>` ends it.";
    for is_streamed in [false, true] {
        let (outcome, _, _) =
            limited(&[ModelReply::text(text)], is_streamed, Provider::OpenAi).await;
        assert_eq!(outcome.unwrap().text, text);
    }
}

/// A call that was cut is none: its arguments may lack what matters.
#[tokio::test]
async fn a_call_that_was_cut_is_not_made() {
    let body = |text: &str| {
        let call =
            json!({"id": "a", "function": {"name": "search", "arguments": "{\"query\": \"dep"}});
        json!({"choices": [{"finish_reason": "length", "message": {
            "role": "assistant", "content": text, "tool_calls": [call],
        }}]})
    };
    let server = server().await;
    let model = model(Provider::OpenAi, &server);
    server.enqueue(ModelReply::status(200).body(&body("Let me see.").to_string()));
    server.enqueue(ModelReply::tool_call(
        "b",
        "search",
        json!({"query": "deploy"}),
    ));
    let answer = ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
    assert_eq!(answer.tool_calls, [call("b", json!({"query": "deploy"}))]);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_with_its_limit() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let server = server().await;
        server.limit_context(600);
        let messages = [message(PromptRole::User, &"Alice: and? ".repeat(500))];
        let model = model(provider, &server);
        let outcome = model.complete(&Request::of(&messages)).await;
        let Err(ModelError::ContextTooLong { limit, asked }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(limit, Some(600));
        assert!(asked > Some(600));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_context_that_the_prompt_fills_is_too_long_whatever_the_provider_says() {
    let server = server().await;
    let settings = ModelSettings {
        context_limit: Some(1_000),
        ..settings(Provider::OpenAi, server.openai_url())
    };
    server.enqueue(cut("").usage(995, 0));
    let outcome = ask(&build(&settings, http()).unwrap()).await;
    let limit = Some(1_000);
    assert_eq!(
        outcome,
        Err(ModelError::ContextTooLong { limit, asked: None })
    );
    // Anthropic's newer models say it in place of an answer.
    let body =
        json!({"type": "message", "content": [], "stop_reason": "model_context_window_exceeded"});
    server.enqueue(ModelReply::status(200).body(&body.to_string()));
    let outcome = ask(&model(Provider::Anthropic, &server)).await;
    assert_eq!(
        outcome,
        Err(ModelError::ContextTooLong {
            limit: None,
            asked: None
        })
    );
}

/// Numbers that no prompt can have are not added up.
#[tokio::test]
async fn tokens_without_measure_overflow_nothing() {
    let huge = u64::MAX;
    let usage = json!({"input_tokens": huge, "cache_read_input_tokens": huge,
                       "cache_creation_input_tokens": huge, "output_tokens": huge});
    let body = json!({"type": "message", "content": [{"type": "text", "text": "Yes."}],
                      "stop_reason": "end_turn", "usage": usage});
    let server = server().await;
    server.enqueue(ModelReply::status(200).body(&body.to_string()));
    let answer = ask(&model(Provider::Anthropic, &server)).await.unwrap();
    assert_eq!(answer.usage.completion_tokens, u64::from(u32::MAX));
}
