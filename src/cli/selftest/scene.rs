//! What people say, and what must come back: every question carries words of its own, which the
//! scripted model repeats.

use super::plan::Mode;
use super::stage::{FORUM_TOPIC, SLACK_PERSON, Stage, slack_dm, slack_room, telegram_group};

/// Lines of a question whose answer needs two posts.
const LONG_LINES: usize = 214;

/// Where an answer belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A Slack chat, and the thread in it.
    Slack {
        chat: String,
        thread: Option<String>,
    },
    /// A Telegram chat.
    Telegram(i64),
}

/// A question that must be answered exactly once.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The words that no other question has, in the order in which they must come back.
    pub(super) words: Vec<String>,
    pub(super) place: Place,
}

/// What was asked so far.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) questions: Vec<Question>,
    /// Questions in the rooms so far; their threads get follow-ups.
    threads: Vec<(String, String)>,
}

impl Scene {
    /// Whether the last question has its answer.
    pub(super) fn is_last_answered(&self, stage: &Stage) -> bool {
        let Some(Question { words, place }) = self.questions.last() else {
            return true;
        };
        let texts = stage.texts_at(place);
        texts.iter().any(|text| text.contains(words[0].as_str()))
    }

    fn next_word(&self, end: &str) -> String {
        format!("q{:05}-{end}", self.questions.len())
    }

    /// The text of a question, and the words of it that must come back.
    fn text(&self, is_long: bool) -> (String, Vec<String>) {
        let begin = self.next_word("begin");
        if !is_long {
            return (format!("{begin} when is it?"), vec![begin]);
        }
        let end = self.next_word("end");
        let lines = "and something more\n".repeat(LONG_LINES);
        (format!("{begin}\n{lines}{end}"), vec![begin, end])
    }

    fn keep(&mut self, words: Vec<String>, place: Place) {
        self.questions.push(Question { words, place });
    }

    /// What is said before the daemon listens.
    pub(super) fn say_early(&mut self, stage: &Stage, step: usize) {
        match stage.mode {
            Mode::Slack => self.ask_slack_room(stage, &slack_room(step, 0), false),
            _ => self.ask_telegram_private(stage, stage.private(step, 0), false),
        }
    }

    /// What is said while it listens: in rooms, directly, in a thread, at length, by an edit.
    pub(super) fn say(&mut self, stage: &Stage, step: usize) {
        match stage.mode {
            Mode::Slack => self.say_in_slack(stage, step),
            _ => self.say_in_telegram(stage, step),
        }
    }

    fn ask_slack_room(&mut self, stage: &Stage, chat: &str, is_long: bool) {
        let (text, words) = self.text(is_long);
        let ts = stage
            .slack
            .say(chat, SLACK_PERSON, &format!("@vocative {text}"));
        self.threads.push((chat.to_owned(), ts.clone()));
        let place = Place::Slack {
            chat: chat.to_owned(),
            thread: Some(ts),
        };
        self.keep(words, place);
    }

    fn say_in_slack(&mut self, stage: &Stage, step: usize) {
        let slack = &stage.slack;
        // Sent twice, as Slack does when an acknowledgement was late.
        slack
            .faults()
            .next_event(vocative_sandbox::slack::EventFault::DuplicateEvent(1));
        self.ask_slack_room(stage, &slack_room(step, 1), false);
        slack.say(&slack_room(step, 1), "bob", "I think it is at three.");
        self.ask_slack_room(stage, &slack_room(step, 2), true);
        let (text, words) = self.text(false);
        let dm = slack_dm(step);
        slack.say(&dm, SLACK_PERSON, &text);
        let place = Place::Slack {
            chat: dm,
            thread: None,
        };
        self.keep(words, place);
        let is_answered = |(chat, root): &(String, String)| {
            let place = Place::Slack {
                chat: chat.clone(),
                thread: Some(root.clone()),
            };
            !stage.texts_at(&place).is_empty()
        };
        // A person goes on with what was answered.
        if let Some(n) = self.threads.iter().position(is_answered) {
            let (chat, root) = self.threads.remove(n);
            let (text, words) = self.text(false);
            slack.say_in(&chat, "bob", &root, &text);
            let place = Place::Slack {
                chat,
                thread: Some(root),
            };
            self.keep(words, place);
        }
        self.edit_in_slack(stage, &slack_room(step, 3));
    }

    /// A message that is no question until it is edited.
    fn edit_in_slack(&mut self, stage: &Stage, chat: &str) {
        let slack = &stage.slack;
        let (text, words) = self.text(false);
        let ts = slack.say(chat, SLACK_PERSON, "let me think");
        slack.edit(chat, &ts, &slack.typed(&format!("@vocative {text}")));
        let place = Place::Slack {
            chat: chat.to_owned(),
            thread: Some(ts),
        };
        self.keep(words, place);
    }

    fn ask_telegram_private(&mut self, stage: &Stage, person: i64, is_long: bool) {
        let (text, words) = self.text(is_long);
        stage.telegram.say(person, person, &text);
        self.keep(words, Place::Telegram(person));
    }

    fn ask_telegram_group(&mut self, stage: &Stage, group: i64) {
        let (text, words) = self.text(false);
        let person = stage.private(0, 0);
        stage
            .telegram
            .say(group, person, &format!("@vocative_bot {text}"));
        self.keep(words, Place::Telegram(group));
    }

    fn say_in_telegram(&mut self, stage: &Stage, step: usize) {
        let telegram = &stage.telegram;
        self.ask_telegram_private(stage, stage.private(step, 1), false);
        telegram.duplicate_update();
        self.ask_telegram_private(stage, stage.private(step, 2), true);
        let (group, person) = (telegram_group(step, 0), stage.private(0, 1));
        telegram.say(group, person, "I think it is at three.");
        self.ask_telegram_group(stage, group);
        let edited = telegram_group(step, 1);
        let (text, words) = self.text(false);
        let message = telegram.say(edited, person, "let me think");
        telegram.edit(edited, message, &format!("@vocative_bot {text}"));
        self.keep(words, Place::Telegram(edited));
        self.move_telegram_group(stage, step);
        let (text, words) = self.text(false);
        let forum = vocative_sandbox::telegram::TelegramWorld::FORUM;
        telegram.say_in_topic(forum, FORUM_TOPIC, person, &format!("@vocative_bot {text}"));
        self.keep(words, Place::Telegram(forum));
    }

    /// A group that becomes a supergroup: two chats that are one.
    fn move_telegram_group(&mut self, stage: &Stage, step: usize) {
        let old = telegram_group(step, 2);
        stage
            .telegram
            .say(old, stage.private(0, 1), "we are many now");
        let new = stage.telegram.migrate_to_supergroup(old);
        self.ask_telegram_group(stage, new);
    }

    /// One more question in the same direct chat, so that there is something to fold.
    pub(super) fn ask_directly(&mut self, stage: &Stage) {
        match stage.mode {
            Mode::Slack => {
                let (text, words) = self.text(false);
                let dm = slack_dm(0);
                stage.slack.say(&dm, SLACK_PERSON, &text);
                let place = Place::Slack {
                    chat: dm,
                    thread: None,
                };
                self.keep(words, place);
            }
            _ => self.ask_telegram_private(stage, stage.private(0, 0), false),
        }
    }
}
