//! The scene: what people say, and which answers must come.

use std::time::Duration;

use super::stage::DemoStage;
use super::transcript;

/// How long an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(8);

/// A chat of the scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SceneChat {
    /// A Slack channel.
    General,
    /// A Slack direct message.
    SlackDm,
    /// A Telegram group.
    Group,
    /// A Telegram private chat.
    Private,
}

impl SceneChat {
    /// All chats, in the order in which they are listed.
    pub(super) const ALL: [Self; 4] = [Self::General, Self::SlackDm, Self::Group, Self::Private];

    /// The name by which a typed line addresses the chat.
    pub(super) fn handle(self) -> &'static str {
        match self {
            Self::General => "#general",
            Self::SlackDm => "dm",
            Self::Group => "group",
            Self::Private => "private",
        }
    }

    /// The chat with this handle.
    pub(super) fn from_handle(handle: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.handle() == handle)
    }

    /// The chat in words, for the person who types.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::General => "a Slack channel (mention @vocative to be answered)",
            Self::SlackDm => "a Slack direct message with the bot",
            Self::Group => "a Telegram group (mention @vocative_bot to be answered)",
            Self::Private => "a Telegram private chat with the bot",
        }
    }
}

/// Somebody who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SceneSpeaker {
    /// Ann.
    Ann,
    /// Bob.
    Bob,
}

/// Where an answer must appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// No answer: the line is captured and not answered.
    Nothing,
    /// In the thread of the question.
    InItsThread,
    /// In the same chat, outside a thread.
    InLine,
    /// As a reply to the question.
    AsReply,
}

impl Expected {
    /// The expectation in words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Nothing => "no answer",
            Self::InItsThread => "an answer in its thread",
            Self::InLine => "an answer in line",
            Self::AsReply => "an answer as a reply to it",
        }
    }
}

/// One line of the scene.
#[derive(Clone, Copy, Debug)]
pub(super) struct SceneLine {
    /// The chat.
    pub(super) place: SceneChat,
    /// The person who says it.
    pub(super) person: SceneSpeaker,
    /// The text, as typed.
    pub(super) text: &'static str,
    /// The expected answer.
    pub(super) expected: Expected,
    /// A text that the answer must contain.
    pub(super) must_say: Option<&'static str>,
    /// The index of an earlier line, in whose thread this one is said.
    pub(super) in_thread_of: Option<usize>,
}

/// What followed a line.
#[derive(Clone, Debug)]
pub(super) struct SceneOutcome {
    /// The line.
    pub(super) line: SceneLine,
    /// Its platform message id.
    pub(super) message_id: String,
    /// What is wrong; `None` = as expected.
    pub(super) problem: Option<String>,
    /// The answer, if one came.
    pub(super) answer: Option<String>,
}

/// The lines, in order.
pub(super) fn scene() -> Vec<SceneLine> {
    use Expected::{AsReply, InItsThread, InLine, Nothing};
    let line = |place, person, text, expected| SceneLine {
        place,
        person,
        text,
        expected,
        must_say: None,
        in_thread_of: None,
    };
    let answered_with = |must_say, line| SceneLine {
        must_say: Some(must_say),
        ..line
    };
    let follow_up = |question, line| SceneLine {
        in_thread_of: Some(question),
        ..line
    };
    vec![
        line(
            SceneChat::General,
            SceneSpeaker::Ann,
            "Morning! The deploy of build 42 is planned for 15:00.",
            Nothing,
        ),
        line(
            SceneChat::General,
            SceneSpeaker::Bob,
            "Fine with me.",
            Nothing,
        ),
        // The answer is in Ann's message, which was not addressed to the bot.
        answered_with(
            "15:00",
            line(
                SceneChat::General,
                SceneSpeaker::Bob,
                "@vocative when is the deploy?",
                InItsThread,
            ),
        ),
        follow_up(
            2,
            line(
                SceneChat::General,
                SceneSpeaker::Ann,
                "search: build 42",
                InItsThread,
            ),
        ),
        line(
            SceneChat::SlackDm,
            SceneSpeaker::Ann,
            "hello, what can you do?",
            InLine,
        ),
        line(
            SceneChat::SlackDm,
            SceneSpeaker::Ann,
            "and what did I just ask?",
            InLine,
        ),
        line(SceneChat::Group, SceneSpeaker::Ann, "Lunch at 12?", Nothing),
        line(
            SceneChat::Group,
            SceneSpeaker::Bob,
            "@vocative_bot who suggested lunch?",
            AsReply,
        ),
        line(SceneChat::Private, SceneSpeaker::Ann, "hi there", AsReply),
    ]
}

/// The problem with an answer that lacks the text it must contain.
fn unsaid(line: &SceneLine, answer: &str) -> Option<String> {
    let missing = line.must_say.filter(|said| !answer.contains(said));
    missing.map(|said| format!("the answer does not say \"{said}\": {answer}"))
}

/// Says each line and waits for its answer. Lines without an expected answer are checked at the end.
pub(super) async fn play(scene: &[SceneLine], stage: &DemoStage) -> Vec<SceneOutcome> {
    let mut outcomes = Vec::with_capacity(scene.len());
    for line in scene {
        let root = line
            .in_thread_of
            .and_then(|n| outcomes.get(n))
            .map(|root: &SceneOutcome| root.message_id.clone());
        let message_id = match &root {
            Some(root) => stage.say_in_thread(line.person, root, line.text),
            None => stage.say(line.place, line.person, line.text),
        };
        let (problem, answer) = if line.expected == Expected::Nothing {
            (None, None)
        } else {
            match stage
                .wait_for_answer(
                    line,
                    root.as_ref().unwrap_or(&message_id),
                    &message_id,
                    ANSWER_WAIT,
                )
                .await
            {
                Ok(answer) => {
                    transcript::settle(&stage.wire).await;
                    (unsaid(line, &answer), Some(answer))
                }
                Err(problem) => (Some(problem), None),
            }
        };
        outcomes.push(SceneOutcome {
            line: *line,
            message_id,
            problem,
            answer,
        });
    }
    for outcome in &mut outcomes {
        if outcome.line.expected == Expected::Nothing
            && stage.has_answer_to(outcome.line.place, &outcome.message_id)
        {
            outcome.problem = Some("it was answered, though it addressed nobody".to_owned());
        }
    }
    outcomes
}
