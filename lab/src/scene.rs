//! What people say, and what must come back: every question carries words of its own, which the
//! scripted model repeats.

use vocative_sandbox::slack::{SlackFile, UserPost};
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use super::plan::Mode;
use super::stage::{
    FORUM_TOPIC, LOOK_UP, LabStage, SLACK_PERSON, slack_dm, slack_interrupted_dm, slack_moved_room,
    slack_room, telegram_group,
};

/// Lines of a question whose answer needs two posts.
const LONG_LINES: usize = 214;
/// Lines of a file that needs more posts than an answer may have.
const FILE_LINES: usize = 1_500;

/// The words that confirm a fresh start.
const FRESH_START: &str = "A fresh start";
/// Bytes of the first voice note; each has one more than the one before it.
const VOICE_BYTES: usize = 7_000;

/// Where an answer belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerPlace {
    /// A Slack chat, and the thread in it.
    Slack {
        chat: String,
        thread: Option<String>,
    },
    /// A Telegram chat.
    Telegram(i64),
}

impl AnswerPlace {
    fn is_thread(&self, of_chat: &str, root: &str) -> bool {
        matches!(self, Self::Slack { chat, thread: Some(thread) } if chat == of_chat && thread == root)
    }
}

/// Which answers a question must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswersDue {
    /// One answer.
    Once,
    /// One answer, or none: it was stopped or deleted, and may have been answered before.
    AtMostOnce,
    /// None: it was cancelled before it was answered, or its answer was replaced by another one.
    Never,
}

/// A question, and what must come back.
#[derive(Clone, Debug)]
pub(super) struct SceneQuestion {
    /// The words that no other question has, in the order in which they must come back.
    pub(super) words: Vec<String>,
    pub(super) place: AnswerPlace,
    pub(super) due: AnswersDue,
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    /// An answer in one post.
    Short,
    /// One in two posts.
    Long,
    /// One for which the model calls a tool first.
    LookUp,
}

/// What was asked so far.
#[derive(Debug, Default)]
pub(super) struct AskedScene {
    pub(super) questions: Vec<SceneQuestion>,
    /// Questions in the rooms so far; their threads get follow-ups.
    threads: Vec<(String, String)>,
    /// The question that is edited next: which it is, and its message.
    to_edit: Option<(usize, String)>,
    /// Slash commands that were given, and in which rooms.
    commands: Vec<(usize, String)>,
}

impl AskedScene {
    /// Whether the last question has its answer.
    pub(super) fn is_last_answered(&self, stage: &LabStage) -> bool {
        let Some(SceneQuestion { words, place, .. }) = self.questions.last() else {
            return true;
        };
        let texts = stage.texts_at(place);
        texts.iter().any(|text| text.contains(words[0].as_str()))
    }

    fn next_word(&self, end: &str) -> String {
        format!("q{:05}-{end}", self.questions.len())
    }

    /// The text of a question, and the words of it that must come back.
    fn text(&self, kind: AnswerKind) -> (String, Vec<String>) {
        let begin = self.next_word("begin");
        match kind {
            AnswerKind::Short => return (format!("{begin} when is it?"), vec![begin]),
            AnswerKind::LookUp => return (format!("{begin} {LOOK_UP}: when is it?"), vec![begin]),
            AnswerKind::Long => {}
        }
        let end = self.next_word("end");
        let lines = "and something more\n".repeat(LONG_LINES);
        (format!("{begin}\n{lines}{end}"), vec![begin, end])
    }

    fn keep(&mut self, words: Vec<String>, place: AnswerPlace) {
        self.questions.push(SceneQuestion {
            words,
            place,
            due: AnswersDue::Once,
        });
    }

    /// The text of a question, the file that comes with it, and the word at the end of the file. Read by
    /// the model and repeated, it is too long for its posts: the answer is a file, too.
    fn with_file(&self) -> (String, String, Vec<String>) {
        let (text, end) = (self.next_word("with"), self.next_word("file"));
        let lines = "and something more\n".repeat(FILE_LINES);
        (text, format!("{lines}{end}"), vec![end])
    }

    fn show_file_on_slack(&mut self, stage: &LabStage, chat: &str) {
        let (text, content, words) = self.with_file();
        let file = stage.slack.add_file(SlackFile {
            name: "notes.txt".to_owned(),
            mime_type: "text/plain".to_owned(),
            bytes: content.into_bytes(),
        });
        let ts = stage.slack.post_with(UserPost {
            channel: chat.to_owned(),
            user: SLACK_PERSON.to_owned(),
            text: stage.slack.typed(&format!("@vocative {text}")),
            files: vec![file],
            ..UserPost::default()
        });
        let place = AnswerPlace::Slack {
            chat: chat.to_owned(),
            thread: Some(ts),
        };
        self.keep(words, place);
    }

    fn show_file_on_telegram(&mut self, stage: &LabStage, person: i64) {
        let (text, content, words) = self.with_file();
        let bytes = content.into_bytes();
        let file = stage.telegram.add_file("notes.txt", "text/plain", bytes);
        let extra = [("document", file), ("caption", text.into())];
        stage.telegram.send_with(UserMessage {
            chat: person,
            user: person,
            extra: extra
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect(),
            ..UserMessage::default()
        });
        self.keep(words, AnswerPlace::Telegram(person));
    }

    /// The last question may stay without an answer.
    fn let_go(&mut self) {
        if let Some(question) = self.questions.last_mut() {
            question.due = AnswersDue::AtMostOnce;
        }
    }

    /// Whether these texts are one question, in a place where nothing else is ever asked.
    pub(super) fn is_alone(&self, texts: &[String]) -> bool {
        let [text] = texts else {
            return false;
        };
        let is_it = |it: &&SceneQuestion| text.contains(it.words[0].as_str());
        let Some(question) = self.questions.iter().find(is_it) else {
            return false;
        };
        let here = self
            .questions
            .iter()
            .filter(|it| it.place == question.place);
        question.place != AnswerPlace::Telegram(TelegramWorld::FORUM) && here.count() == 1
    }

    /// The questions with one of these texts were cancelled, and never answered. Their threads get no follow-ups,
    /// because an answer there would repeat them.
    pub(super) fn cancel(&mut self, texts: &[String]) {
        for question in &mut self.questions {
            let is_it = |text: &String| text.contains(question.words[0].as_str());
            if texts.iter().any(is_it) {
                question.due = AnswersDue::Never;
                let place = &question.place;
                self.threads
                    .retain(|(chat, root)| !place.is_thread(chat, root));
            }
        }
    }

    /// What is said before the daemon listens.
    pub(super) fn say_early(&mut self, stage: &LabStage, step: usize) {
        match stage.mode {
            Mode::Slack => {
                self.ask_slack_room(stage, &slack_room(step, 0), AnswerKind::LookUp);
                self.ask_slack_room(stage, &slack_room(step, 8), AnswerKind::Short);
                // The thread of an edited question gets no follow-ups.
                let root = self.threads.pop().map(|(_, ts)| ts);
                self.to_edit = root.map(|ts| (self.questions.len() - 1, ts));
                // In a room where something was heard already, the command's result is posted for everybody.
                stage
                    .slack
                    .say(&slack_room(step, 9), "bob", "Good morning!");
            }
            _ => {
                self.ask_telegram_private(stage, stage.private(step, 0), AnswerKind::LookUp);
                let message =
                    self.ask_telegram_private(stage, stage.private(step, 5), AnswerKind::Short);
                self.to_edit = Some((self.questions.len() - 1, message.to_string()));
            }
        }
    }

    /// The question that was asked before the daemon listened becomes another one, answered or not: in the end the room
    /// shows the answer to its new text.
    fn edit_question(&mut self, stage: &LabStage) {
        let Some((earlier, message)) = self.to_edit.take() else {
            return;
        };
        let (text, words) = self.text(AnswerKind::Short);
        let place = self.questions[earlier].place.clone();
        let due = match &place {
            AnswerPlace::Slack { chat, .. } => {
                let typed = stage.slack.typed(&format!("@vocative {text}"));
                stage.slack.edit(chat, &message, &typed);
                AnswersDue::Never
            }
            AnswerPlace::Telegram(chat) => {
                let id = message.parse().unwrap_or_default();
                stage.telegram.edit(*chat, id, &text);
                // The id of a post whose answer was lost at a kill is unknown, so it can't be edited.
                AnswersDue::AtMostOnce
            }
        };
        self.questions[earlier].due = due;
        self.keep(words, place);
    }

    /// Notes which commands were heard; for the others Slack told the person that nothing happened.
    pub(super) fn hear_of_commands(&mut self, stage: &LabStage) {
        for (question, room) in &self.commands {
            if stage
                .slack
                .acked_envelopes()
                .iter()
                .any(|heard| heard.payload["channel_id"] == **room)
            {
                self.questions[*question].due = AnswersDue::Once;
            }
        }
    }

    /// A slash command. Slack sends it once; the person sees whether it was accepted. In a room where nothing was heard
    /// yet, nobody else is told.
    fn begin_afresh_in_slack(&mut self, stage: &LabStage, room: String) {
        stage
            .slack
            .slash_command(&room, "U0ANN", "/vocative", "new");
        let place = AnswerPlace::Slack {
            chat: room.clone(),
            thread: None,
        };
        self.keep(vec![FRESH_START.to_owned()], place);
        self.let_go();
        self.commands.push((self.questions.len() - 1, room));
    }

    /// A voice note; the words that come back are those of its transcript.
    fn speak_on_telegram(&mut self, stage: &LabStage, person: i64) {
        let bytes = VOICE_BYTES + self.questions.len();
        let mut note = stage.telegram.add_file("", "audio/ogg", vec![7; bytes]);
        note["duration"] = 2.into();
        stage.telegram.send_with(UserMessage {
            chat: person,
            user: person,
            extra: std::iter::once(("voice".to_owned(), note)).collect(),
            ..UserMessage::default()
        });
        self.keep(
            vec![format!("{bytes} bytes of speech")],
            AnswerPlace::Telegram(person),
        );
    }

    /// What is said while it listens: in rooms, directly, in a thread, at length, by an edit.
    pub(super) fn say(&mut self, stage: &LabStage, step: usize) {
        match stage.mode {
            Mode::Slack => self.say_in_slack(stage, step),
            _ => self.say_in_telegram(stage, step),
        }
    }

    fn ask_slack_room(&mut self, stage: &LabStage, chat: &str, kind: AnswerKind) {
        let (text, words) = self.text(kind);
        let ts = stage
            .slack
            .say(chat, SLACK_PERSON, &format!("@vocative {text}"));
        self.threads.push((chat.to_owned(), ts.clone()));
        let place = AnswerPlace::Slack {
            chat: chat.to_owned(),
            thread: Some(ts),
        };
        self.keep(words, place);
    }

    fn say_in_slack(&mut self, stage: &LabStage, step: usize) {
        let slack = &stage.slack;
        // Sent twice, as Slack does when an acknowledgement was late.
        slack
            .faults()
            .next_event(vocative_sandbox::slack::EventFault::DuplicateEvent(1));
        self.ask_slack_room(stage, &slack_room(step, 1), AnswerKind::Short);
        let said = slack.say(&slack_room(step, 1), "bob", "I think it is at three.");
        slack.delete(&slack_room(step, 1), &said);
        self.ask_slack_room(stage, &slack_room(step, 2), AnswerKind::Long);
        if stage.shows_files {
            self.show_file_on_slack(stage, &slack_room(step, 7));
        }
        for dm in [slack_dm(step), slack_interrupted_dm(step)] {
            self.ask_slack_directly(stage, &dm);
            self.ask_slack_directly(stage, &dm);
        }
        // A person goes on with the oldest question, heard and answered or not.
        let (chat, root) = self.threads.remove(0);
        let (text, words) = self.text(AnswerKind::Short);
        slack.say_in(&chat, "bob", &root, &text);
        let place = AnswerPlace::Slack {
            chat,
            thread: Some(root),
        };
        self.keep(words, place);
        self.edit_question(stage);
        self.edit_in_slack(stage, &slack_room(step, 3));
        self.begin_afresh_in_slack(stage, slack_room(step, 9));
        self.withdraw_in_slack(stage, step);
        self.move_slack_room(stage, step);
    }

    fn ask_slack_directly(&mut self, stage: &LabStage, dm: &str) {
        let (text, words) = self.text(AnswerKind::Short);
        stage.slack.say(dm, SLACK_PERSON, &text);
        let place = AnswerPlace::Slack {
            chat: dm.to_owned(),
            thread: None,
        };
        self.keep(words, place);
    }

    /// One question is stopped, another deleted.
    fn withdraw_in_slack(&mut self, stage: &LabStage, step: usize) {
        let (stopped, deleted) = (slack_room(step, 4), slack_room(step, 5));
        self.ask_slack_room(stage, &stopped, AnswerKind::Short);
        self.let_go();
        // A withdrawn question gets no follow-ups.
        self.threads.pop();
        stage.slack.say(&stopped, SLACK_PERSON, "@vocative stop");
        self.ask_slack_room(stage, &deleted, AnswerKind::Short);
        self.let_go();
        if let Some((chat, ts)) = self.threads.pop() {
            stage.slack.delete(&chat, &ts);
        }
    }

    /// A room that gets another id: two chats that are one.
    fn move_slack_room(&mut self, stage: &LabStage, step: usize) {
        let (old, new) = (slack_room(step, 6), slack_moved_room(step));
        stage.slack.say(&old, "bob", "we share this room now");
        stage.slack.change_channel_id(&old, &new);
        self.ask_slack_room(stage, &new, AnswerKind::Short);
    }

    /// A message that is no question until it is edited.
    fn edit_in_slack(&mut self, stage: &LabStage, chat: &str) {
        let slack = &stage.slack;
        let (text, words) = self.text(AnswerKind::Short);
        let ts = slack.say(chat, SLACK_PERSON, "let me think");
        slack.edit(chat, &ts, &slack.typed(&format!("@vocative {text}")));
        let place = AnswerPlace::Slack {
            chat: chat.to_owned(),
            thread: Some(ts),
        };
        self.keep(words, place);
    }

    fn ask_telegram_private(&mut self, stage: &LabStage, person: i64, kind: AnswerKind) -> i64 {
        let (text, words) = self.text(kind);
        let message = stage.telegram.say(person, person, &text);
        self.keep(words, AnswerPlace::Telegram(person));
        message
    }

    fn ask_telegram_group(&mut self, stage: &LabStage, group: i64) {
        let (text, words) = self.text(AnswerKind::Short);
        let person = stage.private(0, 0);
        stage
            .telegram
            .say(group, person, &format!("@vocative_bot {text}"));
        self.keep(words, AnswerPlace::Telegram(group));
    }

    fn say_in_telegram(&mut self, stage: &LabStage, step: usize) {
        let telegram = &stage.telegram;
        for n in [1, 3] {
            self.ask_telegram_private(stage, stage.private(step, n), AnswerKind::Short);
            telegram.duplicate_update();
            self.ask_telegram_private(stage, stage.private(step, n), AnswerKind::Short);
        }
        self.ask_telegram_private(stage, stage.private(step, 2), AnswerKind::Long);
        if stage.shows_files {
            self.show_file_on_telegram(stage, stage.private(step, 4));
            self.speak_on_telegram(stage, stage.private(step, 6));
        }
        self.edit_question(stage);
        telegram.say(telegram_group(step, 4), stage.private(0, 1), "/new");
        let afresh = AnswerPlace::Telegram(telegram_group(step, 4));
        self.keep(vec![FRESH_START.to_owned()], afresh);
        let (group, person) = (telegram_group(step, 0), stage.private(0, 1));
        telegram.say(group, person, "I think it is at three.");
        self.ask_telegram_group(stage, group);
        let edited = telegram_group(step, 1);
        let (text, words) = self.text(AnswerKind::Short);
        let message = telegram.say(edited, person, "let me think");
        telegram.edit(edited, message, &format!("@vocative_bot {text}"));
        self.keep(words, AnswerPlace::Telegram(edited));
        self.move_telegram_group(stage, step);
        let stopped = telegram_group(step, 3);
        self.ask_telegram_group(stage, stopped);
        self.let_go();
        telegram.say(stopped, stage.private(0, 0), "@vocative_bot stop");
        let (text, words) = self.text(AnswerKind::Short);
        let forum = TelegramWorld::FORUM;
        telegram.say_in_topic(forum, FORUM_TOPIC, person, &format!("@vocative_bot {text}"));
        self.keep(words, AnswerPlace::Telegram(forum));
    }

    /// A group that becomes a supergroup: two chats that are one.
    fn move_telegram_group(&mut self, stage: &LabStage, step: usize) {
        let old = telegram_group(step, 2);
        stage
            .telegram
            .say(old, stage.private(0, 1), "we are many now");
        let new = stage.telegram.migrate_to_supergroup(old);
        self.ask_telegram_group(stage, new);
    }

    /// One more question in the same direct chat, so that there is something to fold.
    pub(super) fn ask_directly(&mut self, stage: &LabStage) {
        match stage.mode {
            Mode::Slack => self.ask_slack_directly(stage, &slack_dm(0)),
            _ => {
                self.ask_telegram_private(stage, stage.private(0, 0), AnswerKind::Short);
            }
        }
    }
}
