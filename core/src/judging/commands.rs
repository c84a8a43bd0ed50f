//! Commands that a person gives to the daemon itself: how they are read, and who may give them. Pure.
//!
//! On Slack it is the text of a slash command (`/vocative new`) or, because those can't be given in
//! threads, a message that mentions the bot and says the word of a command and nothing else
//! (`@Vocative new`); on Telegram a message that begins with a command of ours (`/new`). A model never
//! sees any of them. What each means stands in `command/`.

use vocative_contract::envelope::{
    ChatKind, Command, CommandTarget, InboundMessage, Sender, SenderKind,
};

use crate::addressing::{Access, MessageFacts};
use crate::code::Code;
use crate::command::{
    AskedCommand, BehindWord, CommandFacts, CommandForm, CommandName, CommandRoom, CommandVerdict,
    Effect, help,
};
use crate::ids::AgentName;
use crate::judging::access::access;
use crate::judging::addressees::{names_bot, without_labels};
use crate::judging::policy::ChannelPolicy;
use crate::judging::speech::without_leading_mentions;
use crate::words::Language;

/// A command as it was said.
struct GivenCommand<'a> {
    name: CommandName,
    /// The text behind the command.
    rest: &'a str,
    sender: &'a Sender,
    kind: Option<ChatKind>,
    /// The message it replies to, and whether its person wrote that.
    replied_to: Option<(&'a str, bool)>,
    /// Whether its person had all that they said forgotten within the last day.
    has_forgotten_lately: bool,
    /// How commands are written here.
    form: CommandForm,
}

/// Decides about a message that may be a command of ours. `None` if it is no command, is for another bot, or
/// is answered by being addressed (a `stop`).
#[must_use]
pub fn read_message(
    message: &InboundMessage,
    facts: &MessageFacts,
    policy: &ChannelPolicy,
) -> Option<CommandVerdict> {
    let is_person = message.sender.kind == SenderKind::Person;
    if !policy.manners.commands || !is_person {
        return None;
    }
    let (name, rest, form) = match &message.command {
        Some(word) if word.target == CommandTarget::AnotherBot => return None,
        Some(word) => {
            let kind = message.place.kind.or(facts.chat_kind);
            // A command of the channel's own may have the same name.
            let is_opening = word.opens_chat
                && kind == Some(ChatKind::Direct)
                && !policy.commands.contains(&word.name);
            let opening = is_opening.then_some(CommandName::Help);
            let name = opening.or_else(|| CommandName::from_name(&word.name))?;
            let rest = without_labels(message).split_once(char::is_whitespace);
            (name, rest.map_or("", |(_, rest)| rest), CommandForm::Plain)
        }
        None => plain_link(message, facts).or_else(|| mentioned_command(message, policy))?,
    };
    if name == CommandName::Stop {
        return None;
    }
    let replied_to = message.reply_to.as_ref();
    let said = GivenCommand {
        name,
        rest: rest.trim(),
        sender: &message.sender,
        kind: message.place.kind.or(facts.chat_kind),
        replied_to: replied_to.map(|reply| (reply.message_id.as_str(), facts.replies_to_sender)),
        has_forgotten_lately: facts.has_forgotten_lately,
        form,
    };
    Some(decide(&said, policy))
}

/// The words `link CODE` in a direct chat, as people are told to say them: a code is for no model.
fn plain_link<'a>(
    message: &'a InboundMessage,
    facts: &MessageFacts,
) -> Option<(CommandName, &'a str, CommandForm)> {
    let (word, code) = message.text.trim().split_once(char::is_whitespace)?;
    let is_direct = message.place.kind.or(facts.chat_kind) == Some(ChatKind::Direct);
    // A message that became a command by an edit was not typed as one.
    let is_typed = message.edit_marker.is_none();
    let is_link = word.eq_ignore_ascii_case(CommandName::Link.name()) && Code::is_as_shown(code);
    (is_direct && is_typed && is_link).then_some((CommandName::Link, code, CommandForm::Plain))
}

/// The command of a message that mentions the bot and says one and nothing else. What says more is a
/// question: `@Vocative new ideas for lunch?`.
fn mentioned_command<'a>(
    message: &'a InboundMessage,
    policy: &ChannelPolicy,
) -> Option<(CommandName, &'a str, CommandForm)> {
    if !policy.has_mentioned_commands || !message.attachments.is_empty() {
        return None;
    }
    let text = message.text.trim();
    let said = without_leading_mentions(text, &|id| names_bot(id, policy));
    if said.len() == text.len() {
        return None;
    }
    if let Some(rest) = behind_title_colon(said).filter(|rest| !rest.contains('\n')) {
        return Some((CommandName::Title, rest, CommandForm::Mention));
    }
    let (word, rest) = typed(said);
    let name = CommandName::from_name(&word)?;
    let is_all = match name.behind() {
        _ if rest.is_empty() => true,
        BehindWord::Nothing => false,
        BehindWord::Agent => agent_of_name(rest, policy).is_some(),
        BehindWord::Order(is_one) => is_one(rest, policy.manners.zone),
    };
    is_all.then_some((name, rest, CommandForm::Mention))
}

/// The word that somebody typed where commands stand, and what is behind it.
fn typed(text: &str) -> (String, &str) {
    let text = text.trim().trim_start_matches('/');
    let text = text.trim_end_matches(['.', '!']);
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word.to_lowercase(), rest.trim())
}

/// The text behind `title:`, as it was typed.
fn behind_title_colon(text: &str) -> Option<&str> {
    let (word, rest) = text.trim().trim_start_matches('/').split_once(':')?;
    let is_title = word.eq_ignore_ascii_case(CommandName::Title.name());
    is_title.then(|| rest.trim())
}

/// What stands behind the word of a command that is no message. A title keeps the marks at its end.
fn behind_word(text: &str) -> (String, &str) {
    if let Some(rest) = behind_title_colon(text) {
        return (CommandName::Title.name().to_owned(), rest);
    }
    let (word, rest) = typed(text);
    match CommandName::from_name(&word) {
        Some(CommandName::Title) if !rest.is_empty() => {
            let text = text.trim();
            let whole = text.split_once(char::is_whitespace);
            (word, whole.map_or(rest, |(_, rest)| rest.trim()))
        }
        _ => (word, rest),
    }
}

/// Decides about a command that is no message. `None` where nothing is to be done or said.
#[must_use]
pub fn read_command(
    command: &Command,
    facts: CommandFacts,
    policy: &ChannelPolicy,
) -> Option<CommandVerdict> {
    let language = policy.manners.language;
    let is_person = command.sender.kind == SenderKind::Person;
    let is_button = command.place.thread.is_some();
    let kind = command.place.kind.or(facts.kind);
    let access = access(
        &command.place,
        kind,
        &command.sender,
        facts.belonging,
        policy,
    );
    let is_command = (policy.manners.commands || is_button) && is_person;
    if access != Access::Served && (is_button || !is_command) {
        return Some(CommandVerdict::unheard());
    }
    if !is_command {
        return None;
    }
    if access != Access::Served {
        let refusal = CommandVerdict::told(refused(access, &command.place.chat, language));
        return Some(CommandVerdict {
            is_admitted: false,
            is_private: policy.tells_privately,
            ..refusal
        });
    }
    let (word, rest) = behind_word(&command.text);
    let Some(name) = CommandName::from_name(&word) else {
        let help = match word.as_str() {
            "" => help(CommandForm::Behind, &room(policy)),
            _ => format!(
                "{}\n{}",
                language.no_such_command(),
                help(CommandForm::Behind, &room(policy))
            ),
        };
        return Some(CommandVerdict {
            is_private: policy.tells_privately,
            ..CommandVerdict::told(help)
        });
    };
    let said = GivenCommand {
        name,
        rest,
        sender: &command.sender,
        kind,
        replied_to: None,
        has_forgotten_lately: facts.has_forgotten_lately,
        form: CommandForm::Behind,
    };
    let verdict = decide(&said, policy);
    Some(CommandVerdict {
        // Who pressed a button sees what it did.
        answer: verdict
            .answer
            .filter(|_| !is_button || verdict.effect == Effect::Nothing),
        // In a room that the bot was never heard in, only the person who gave the command is told.
        is_private: verdict.is_private || (policy.tells_privately && !facts.is_in_room),
        ..verdict
    })
}

/// Whether a person may use a command at all.
fn may_use(name: CommandName, person: &Sender, policy: &ChannelPolicy) -> bool {
    !policy.manners.admins_only.contains(&name) || policy.admins.contains(&person.id)
}

/// Decides about a message that says stop; `None` if its person may.
pub(super) fn refused_stop(
    message: &InboundMessage,
    kind: Option<ChatKind>,
    policy: &ChannelPolicy,
) -> Option<CommandVerdict> {
    let is_kept = policy.manners.commands && !may_use(CommandName::Stop, &message.sender, policy);
    is_kept.then(|| CommandVerdict {
        is_private: is_private(kind, policy),
        ..CommandVerdict::told(policy.manners.language.only_admins())
    })
}

/// What somebody is told who is not served, where only they see it.
pub(super) fn refused(access: Access, chat: &str, language: Language) -> String {
    match access {
        Access::Served | Access::ChatNotAllowed => language.chat_not_served(chat),
        Access::PersonNotAllowed => language.person_not_served(),
        Access::Stranger => language.stranger_not_served(),
        Access::Guest => language.guest_not_served(),
    }
}

/// Whether an answer that concerns one person is shown to them alone: where the platform can, and
/// others are there.
pub(super) fn is_private(kind: Option<ChatKind>, policy: &ChannelPolicy) -> bool {
    policy.tells_privately && kind != Some(ChatKind::Direct)
}

fn decide(said: &GivenCommand<'_>, policy: &ChannelPolicy) -> CommandVerdict {
    // A slash command may be given where the bot is not: an answer to its person alone still finds them.
    let is_private = match said.form {
        CommandForm::Behind => policy.tells_privately,
        CommandForm::Plain | CommandForm::Mention => is_private(said.kind, policy),
    };
    let told = |text: String| CommandVerdict::told(text).told_in(is_private);
    if !may_use(said.name, said.sender, policy) {
        return told(policy.manners.language.only_admins());
    }
    let agent = match named_agent(said, policy) {
        Ok(agent) => agent,
        Err(text) => return told(text),
    };
    said.name.decide(&AskedCommand {
        rest: said.rest,
        agent,
        sender: &said.sender.id,
        is_admin: policy.admins.contains(&said.sender.id),
        is_direct: said.kind == Some(ChatKind::Direct),
        is_private,
        replied_to: said.replied_to,
        has_forgotten_lately: said.has_forgotten_lately,
        form: said.form,
        room: room(policy),
    })
}

/// What commands need to know of a channel.
fn room(policy: &ChannelPolicy) -> CommandRoom<'_> {
    let bot = policy.identity.display_name.as_str();
    CommandRoom {
        channel: &policy.channel,
        agents: policy.agents.iter().map(|it| it.name.clone()).collect(),
        default_agent: &policy.default_agent,
        language: policy.manners.language,
        zone: policy.manners.zone,
        admins_only: &policy.manners.admins_only,
        mentioned_as: policy.has_mentioned_commands.then_some(bot),
    }
}

/// The agent that is named behind a command, where one may be.
fn named_agent(
    said: &GivenCommand<'_>,
    policy: &ChannelPolicy,
) -> Result<Option<AgentName>, String> {
    let takes_agent = matches!(said.name.behind(), BehindWord::Agent);
    if !takes_agent || said.rest.is_empty() {
        return Ok(None);
    }
    agent_of_name(said.rest, policy).map(Some).ok_or_else(|| {
        let names: Vec<&str> = policy.agents.iter().map(|it| it.name.as_str()).collect();
        policy
            .manners
            .language
            .nobody_of_that_name(names.join(", "))
    })
}

/// The agent that people call by this name.
fn agent_of_name(name: &str, policy: &ChannelPolicy) -> Option<AgentName> {
    let wanted = name.trim_start_matches('@').to_lowercase();
    let is_meant = |alias: &String| alias.to_lowercase() == wanted;
    let mut agents = policy.agents.iter();
    let agent = agents.find(|agent| agent.aliases.iter().any(is_meant))?;
    Some(agent.name.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::channel::Audience;
    use vocative_contract::envelope::{CommandWord, Place, ReplyTo};
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::command::Inquiry;
    use crate::judging::policy::AllowList;
    use crate::judging::testing::{agent, message, policy};
    use crate::linking::{LinkCommand, LinkOrder};
    use crate::title::{TitleCommand, TitleOrder};

    fn slack(text: &str, sender: &str, kind: Option<ChatKind>) -> CommandVerdict {
        read_command(&command(text, sender), here(kind), &policy()).unwrap()
    }

    fn here(kind: Option<ChatKind>) -> CommandFacts {
        CommandFacts {
            kind,
            is_in_room: true,
            ..CommandFacts::default()
        }
    }

    /// The effect of a message in a channel, if it is a command.
    fn mentioned(text: &str) -> Option<Effect> {
        let of = message(text);
        read_message(&of, &MessageFacts::default(), &policy()).map(|verdict| verdict.effect)
    }

    fn command(text: &str, sender: &str) -> Command {
        let of = message("x");
        Command {
            id: "1.2".into(),
            place: Place {
                chat: "C1".into(),
                ..Place::default()
            },
            sender: Sender {
                id: sender.into(),
                ..of.sender
            },
            name: "/vocative".into(),
            text: text.into(),
        }
    }

    fn telegram(text: &str, sender: &str, kind: ChatKind) -> Option<CommandVerdict> {
        read_message(
            &typed(text, sender, kind),
            &MessageFacts::default(),
            &group_policy(),
        )
    }

    fn typed(text: &str, sender: &str, kind: ChatKind) -> InboundMessage {
        let mut message = message(text);
        message.sender.id = sender.into();
        message.place.kind = Some(kind);
        let Some(words) = text.strip_prefix('/') else {
            return message;
        };
        let word = words.split_whitespace().next();
        let (name, target) = match word.unwrap().split_once('@') {
            None => (word.unwrap(), CommandTarget::Anyone),
            Some((name, "kael_bot")) => (name, CommandTarget::ThisBot),
            Some((name, _)) => (name, CommandTarget::AnotherBot),
        };
        message.command = Some(CommandWord {
            name: name.to_owned(),
            target,
            opens_chat: name == "start",
        });
        message
    }

    fn group_policy() -> ChannelPolicy {
        ChannelPolicy {
            tells_privately: false,
            has_mentioned_commands: false,
            ..policy()
        }
    }

    #[test]
    fn who_may_do_what() {
        let (one, both) = (vec![agent("ops")], vec![agent("kael"), agent("ops")]);
        let ask = |inquiry, name| Effect::Inquire {
            inquiry,
            agent: agent(name),
        };
        let table = [
            ("", "U1", Effect::Nothing),
            ("help", "U1", Effect::Nothing),
            ("dance", "U1", Effect::Nothing),
            ("new", "U1", Effect::BeginAfresh { agents: both }),
            ("NEW @Ops", "U1", Effect::BeginAfresh { agents: one }),
            ("new nobody", "U1", Effect::Nothing),
            (
                "stop",
                "U1",
                Effect::Stop {
                    of_everybody: false,
                },
            ),
            ("stop", "UADMIN", Effect::Stop { of_everybody: true }),
            ("status", "U1", ask(Inquiry::Status, "kael")),
            ("context ops", "U1", ask(Inquiry::Context, "ops")),
            ("summary", "U1", ask(Inquiry::Summary, "kael")),
            ("forget", "U1", Effect::Nothing),
            ("forget me", "U1", Effect::Nothing),
            ("forget me yes", "U1", Effect::ForgetPerson),
            ("forget Me  YES.", "U1", Effect::ForgetPerson),
            ("forget me yes please", "U1", Effect::Nothing),
            ("forget chat", "U1", Effect::Nothing),
            ("forget chat yes", "U1", Effect::Nothing),
            ("forget chat", "UADMIN", Effect::Nothing),
            ("forget chat yes", "UADMIN", Effect::ForgetChat),
            ("forget everything", "UADMIN", Effect::Nothing),
        ];
        for (text, sender, expected) in table {
            let verdict = slack(text, sender, Some(ChatKind::Public));
            assert_eq!(verdict.effect, expected, "{text} by {sender}");
            let is_inquiry = matches!(verdict.effect, Effect::Inquire { .. });
            assert_eq!(verdict.answer.is_none(), is_inquiry, "{text}");
        }
        let own = slack("forget chat yes", "U1", Some(ChatKind::Direct));
        assert_eq!((own.effect, own.is_private), (Effect::ForgetChat, true));
    }

    #[test]
    fn accounts_are_linked_in_direct_chats_alone() {
        let language = policy().manners.language;
        let link = |order| Effect::Link(LinkCommand { order, language });
        let code = Code::read("K7QM-2F9X").unwrap();
        let say = || link(LinkOrder::Say { code: code.clone() });
        for (text, expected) in [
            ("link", link(LinkOrder::Ask)),
            ("link k7qm 2f9x.", say()),
            ("link -", link(LinkOrder::TakeAway)),
            ("link ops", link(LinkOrder::Other)),
        ] {
            let direct = slack(text, "U1", Some(ChatKind::Direct));
            assert_eq!(direct.effect, expected, "{text}");
            for kind in [Some(ChatKind::Public), Some(ChatKind::GroupDirect), None] {
                let elsewhere = slack(text, "U1", kind);
                assert_eq!(elsewhere.effect, Effect::Nothing, "{text} {kind:?}");
                assert!(elsewhere.answer.is_some());
            }
        }
        for (text, kind, expected) in [
            ("/link K7QM-2F9X", ChatKind::Direct, Some(say())),
            ("link K7QM-2F9X", ChatKind::Direct, Some(say())),
            ("Link  k7qm–2f9x ", ChatKind::Direct, Some(say())),
            ("link K7QM-2F9X", ChatKind::Private, None),
            ("link releases", ChatKind::Direct, None),
            ("link K7QM-2F9X please", ChatKind::Direct, None),
        ] {
            let typed = telegram(text, "U1", kind);
            assert_eq!(typed.map(|it| it.effect), expected, "{text}");
        }
        let mut edited = message("link K7QM-2F9X");
        edited.place.kind = Some(ChatKind::Direct);
        edited.edit_marker = Some("2.0".into());
        let by_edit = read_message(&edited, &MessageFacts::default(), &group_policy());
        assert_eq!(by_edit, None);
        let bot = mention_token("UBOT");
        for (text, is_command) in [
            ("link", true),
            ("link K7QM-2F9X", true),
            ("link releases", false),
            ("link to the docs - please", false),
        ] {
            let found = mentioned(&format!("{bot} {text}"));
            assert_eq!(found.is_some(), is_command, "{text}");
        }
    }

    #[test]
    fn what_is_announced_to_whoever_is_alone_is_refused_among_others() {
        let does = |name: &CommandName, kind| {
            let verdict = telegram(&format!("/{}", name.name()), "U1", kind);
            verdict.is_some_and(|verdict| verdict.effect != Effect::Nothing)
        };
        for name in CommandName::ALL {
            let only_alone = does(name, ChatKind::Direct) && !does(name, ChatKind::Private);
            let expected = name.audience() == Audience::WhoeverIsAlone;
            assert_eq!(only_alone, expected, "{name:?}");
        }
    }

    #[test]
    fn a_title_is_given_behind_its_word_and_behind_a_mention_with_a_colon() {
        let title = |order, is_admin| {
            Effect::Title(TitleCommand {
                order,
                is_admin,
                language: policy().manners.language,
            })
        };
        let give = |text: &str| title(TitleOrder::Give { text: text.into() }, false);
        let tell = || title(TitleOrder::Tell, false);
        let slash = [
            ("title", tell()),
            ("TITLE.", tell()),
            ("title: ", tell()),
            ("title Release now!", give("Release now!")),
            ("title: Plan B.", give("Plan B.")),
            ("title of the book?", give("of the book?")),
            ("title ops", give("ops")),
            ("title -", title(TitleOrder::TakeAway, false)),
        ];
        for (text, expected) in slash {
            let verdict = slack(text, "U1", Some(ChatKind::Public));
            assert_eq!(verdict.effect, expected, "{text}");
            assert!(verdict.is_private && verdict.answer.is_none(), "{text}");
        }
        let by_admin = slack("title x", "UADMIN", None).effect;
        let order = TitleOrder::Give { text: "x".into() };
        assert_eq!(by_admin, title(order, true));
        let bot = mention_token("UBOT");
        let behind_mention = [
            ("title", Some(tell())),
            ("Title!", Some(tell())),
            ("title: Release now!", Some(give("Release now!"))),
            ("Title:Release", Some(give("Release"))),
            ("title: -", Some(title(TitleOrder::TakeAway, false))),
            ("title of the book?", None),
            ("title -", None),
            ("title : of the book", None),
            ("title: the book\nWho wrote it?", None),
            ("titles: three of them", None),
        ];
        for (text, expected) in behind_mention {
            assert_eq!(mentioned(&format!("{bot} {text}")), expected, "{text}");
        }
        let typed = telegram("/title Release now!", "U1", ChatKind::Private);
        assert_eq!(typed.map(|it| it.effect), Some(give("Release now!")));
        let mut strict = policy();
        strict.manners.admins_only = vec![CommandName::Title];
        let refused = read_command(&command("title x", "U1"), here(None), &strict);
        assert_eq!(refused.map(|it| it.effect), Some(Effect::Nothing));
    }

    #[test]
    fn what_concerns_one_person_is_shown_to_them_alone() {
        let is_private = |text| slack(text, "U1", Some(ChatKind::Private)).is_private;
        for text in ["help", "status", "context", "summary", "forget me", "dance"] {
            assert!(is_private(text), "{text}");
        }
        assert!(!is_private("new") && !is_private("stop"));
        assert!(slack("new", "U1", Some(ChatKind::Direct)).is_private);
        assert!(
            !telegram("/help", "U1", ChatKind::Private)
                .unwrap()
                .is_private
        );
    }

    #[test]
    fn a_command_of_ours_is_known_and_others_are_not() {
        let is_ours = |text| telegram(text, "U1", ChatKind::Private).is_some();
        for text in ["/help", "/new@kael_bot", "/new ops", "/status"] {
            assert!(is_ours(text), "{text}");
        }
        // A stop ends what its message follows, as the word alone does.
        for text in ["/ask what?", "/help@other_bot", "/stop", "/newer"] {
            assert!(!is_ours(text), "{text}");
        }
        let mut off = group_policy();
        off.manners.commands = false;
        let typed = typed("/help", "U1", ChatKind::Private);
        assert_eq!(read_message(&typed, &MessageFacts::default(), &off), None);
    }

    #[test]
    fn behind_a_mention_the_word_alone_is_a_command_and_more_is_a_question() {
        let bot = mention_token("UBOT");
        let ops = || Effect::BeginAfresh {
            agents: vec![agent("ops")],
        };
        let everybody = Effect::BeginAfresh {
            agents: vec![agent("kael"), agent("ops")],
        };
        let table = [
            (format!("{bot} new"), Some(everybody.clone())),
            (format!(" {bot}: New. "), Some(everybody.clone())),
            (format!("{bot} /new"), Some(everybody)),
            (format!("{bot} new ops"), Some(ops())),
            (format!("{bot} new The Oracle"), Some(ops())),
            (format!("{bot} help"), Some(Effect::Nothing)),
            (format!("{bot} forget me"), Some(Effect::Nothing)),
            (format!("{bot} forget me yes"), Some(Effect::ForgetPerson)),
            (format!("{bot} forget chat"), Some(Effect::Nothing)),
            (format!("{bot} forget me yes please"), None),
            (format!("{bot} new ideas for lunch?"), None),
            (format!("{bot} help me with this"), None),
            (format!("{bot} forget it"), None),
            (format!("{bot} status of the deploy"), None),
            (format!("{bot} stop"), None),
            (format!("{bot} newer"), None),
            (format!("new {bot}"), None),
            (format!("> {bot} new"), None),
            (format!("`{bot} new`"), None),
            (format!("{} new", mention_token("U2")), None),
            (format!("{bot} {} new", mention_token("U2")), None),
            ("new".to_owned(), None),
            ("kael, new".to_owned(), None),
        ];
        for (text, expected) in table {
            assert_eq!(mentioned(&text), expected, "{text:?}");
        }
        let said = |change: &dyn Fn(&mut InboundMessage), policy: &ChannelPolicy| {
            let mut message = message(&format!("{bot} new"));
            change(&mut message);
            read_message(&message, &MessageFacts::default(), policy)
        };
        assert!(said(&|_| (), &policy()).is_some());
        assert_eq!(said(&|_| (), &group_policy()), None);
        let by_bot = |message: &mut InboundMessage| message.sender.kind = SenderKind::Bot;
        assert_eq!(said(&by_bot, &policy()), None);
        // In a thread it is told there, and what concerns one person to them alone.
        let help = message(&format!("{bot} help"));
        let verdict = read_message(&help, &MessageFacts::default(), &policy()).unwrap();
        assert!(verdict.is_private);
        assert!(verdict.answer.unwrap().contains("\"@Kael new\""));
    }

    #[test]
    fn what_stands_behind_a_command_of_a_caption_is_read_without_the_labels() {
        let mut photo = typed("/new ops", "U1", ChatKind::Private);
        photo.text = "[photo] /new ops".into();
        photo.attachments = vec![vocative_contract::envelope::Attachment {
            kind: "photo".into(),
            file_id: None,
            name: None,
            mime_type: None,
            size_bytes: None,
        }];
        let verdict = read_message(&photo, &MessageFacts::default(), &group_policy()).unwrap();
        let ops = vec![agent("ops")];
        assert_eq!(verdict.effect, Effect::BeginAfresh { agents: ops });
    }

    #[test]
    fn who_opens_a_private_chat_is_told_what_there_is() {
        let start = |kind| telegram("/start", "U1", kind).map(|verdict| verdict.effect);
        assert_eq!(start(ChatKind::Direct), Some(Effect::Nothing));
        assert_eq!(start(ChatKind::Private), None);
        let own = ChannelPolicy {
            commands: vec!["start".into()],
            ..group_policy()
        };
        let opening = typed("/start", "U1", ChatKind::Direct);
        assert_eq!(read_message(&opening, &MessageFacts::default(), &own), None);
    }

    #[test]
    fn nobody_has_the_words_of_all_who_share_a_name_forgotten() {
        let forget = |text, sender| telegram(text, sender, ChatKind::Private).unwrap().effect;
        assert_eq!(forget("/forget me yes", "chat:-1001"), Effect::Nothing);
        assert_eq!(forget("/forget me yes", "U1"), Effect::ForgetPerson);
    }

    #[test]
    fn what_a_person_said_is_forgotten_once_a_day_and_after_a_second_word() {
        let ask = |text, has_forgotten_lately| {
            let facts = CommandFacts {
                has_forgotten_lately,
                ..here(Some(ChatKind::Public))
            };
            read_command(&command(text, "U1"), facts, &policy()).unwrap()
        };
        let first = ask("forget me", false);
        assert!(first.answer.unwrap().contains("\"forget me yes\""));
        assert_eq!(ask("forget me yes", false).effect, Effect::ForgetPerson);
        for text in ["forget me", "forget me yes"] {
            let again = ask(text, true);
            assert_eq!(again.effect, Effect::Nothing);
            assert!(again.answer.unwrap().contains("once a day"));
        }
    }

    #[test]
    fn where_the_bot_is_not_only_its_person_is_told() {
        let elsewhere = CommandFacts::default();
        let verdict = read_command(&command("new", "U1"), elsewhere, &policy()).unwrap();
        assert!(verdict.is_private);
        assert!(!slack("new", "U1", None).is_private);
    }

    #[test]
    fn a_button_stops_without_a_word_also_where_commands_are_left_to_others() {
        let mut off = policy();
        off.manners.commands = false;
        let press = |sender: &str, policy: &ChannelPolicy| {
            let mut button = command("stop", sender);
            button.place.thread = Some("1.0".into());
            read_command(&button, here(Some(ChatKind::Public)), policy)
        };
        let verdict = press("U1", &off).unwrap();
        let own = Effect::Stop {
            of_everybody: false,
        };
        assert_eq!((verdict.effect, verdict.answer), (own, None));
        let closed = ChannelPolicy {
            allow_chats: AllowList::default(),
            allow_people: AllowList::default(),
            ..policy()
        };
        assert_eq!(press("U2", &closed), Some(CommandVerdict::unheard()));
        let mut strict = policy();
        strict.manners.admins_only = vec![CommandName::Stop];
        assert_eq!(press("U1", &strict).unwrap().effect, Effect::Nothing);
    }

    #[test]
    fn a_prompt_is_shown_where_only_its_person_reads_it() {
        let context = |sender, kind| telegram("/context", sender, kind).unwrap().effect;
        assert_eq!(context("U1", ChatKind::Private), Effect::Nothing);
        for (sender, kind) in [("U1", ChatKind::Direct), ("UADMIN", ChatKind::Private)] {
            let effect = context(sender, kind);
            assert!(
                matches!(effect, Effect::Inquire { .. }),
                "{sender} {kind:?}"
            );
        }
    }

    #[test]
    fn a_message_is_forgotten_for_whoever_wrote_it() {
        let forget = |sender: &str, is_own| {
            let mut message = typed("/forget", sender, ChatKind::Private);
            message.reply_to = Some(ReplyTo {
                message_id: "7".into(),
                is_own: false,
                quote: None,
                is_passed_on: false,
            });
            let facts = MessageFacts {
                replies_to_sender: is_own,
                ..MessageFacts::default()
            };
            read_message(&message, &facts, &group_policy())
                .unwrap()
                .effect
        };
        let gone = Effect::ForgetMessage {
            message_id: "7".into(),
        };
        assert_eq!(forget("U1", true), gone);
        assert_eq!(forget("U1", false), Effect::Nothing);
        assert_eq!(forget("UADMIN", false), gone);
    }

    #[test]
    fn a_word_may_be_for_administrators_alone() {
        let mut strict = policy();
        strict.manners.admins_only = vec![CommandName::New];
        let effect = |sender| {
            let verdict = read_command(&command("new", sender), here(None), &strict);
            verdict.unwrap().effect
        };
        assert_eq!(effect("U1"), Effect::Nothing);
        assert!(matches!(effect("UADMIN"), Effect::BeginAfresh { .. }));
    }

    #[test]
    fn outside_access_a_command_is_refused_to_its_person() {
        let closed = ChannelPolicy {
            allow_people: AllowList::default(),
            ..policy()
        };
        let refused =
            |kind| read_command(&command("new", "U2"), here(Some(kind)), &closed).unwrap();
        assert_eq!(
            refused(ChatKind::Public).effect,
            Effect::BeginAfresh {
                agents: vec![agent("kael"), agent("ops")]
            }
        );
        let nobody = ChannelPolicy {
            allow_chats: AllowList::default(),
            ..closed.clone()
        };
        let public = here(Some(ChatKind::Public));
        let verdict = read_command(&command("new", "U2"), public, &nobody).unwrap();
        assert_eq!(
            (verdict.effect, verdict.is_private),
            (Effect::Nothing, true)
        );
        assert!(verdict.answer.unwrap().contains("C1"));
    }
}
