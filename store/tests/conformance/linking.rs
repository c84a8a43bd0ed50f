//! Accounts of one person, joined by a code: who is told what, what is counted together, and what stays apart.

use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::code::Code;
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::linking::{
    LINK_CODE_LIFE_MS, LINKED_MAX, LinkCommand, LinkOrder, WRONG_CODES_MAX, WRONG_CODES_WITHIN_MS,
};
use vocative_core::run::Usage;
use vocative_core::words::Language;
use vocative_store::commands::NewCommand;
use vocative_store::contract::{AccountBinding, NonMessage};
use vocative_store::erasure::ErasureTarget;
use vocative_store::spending::{Purpose, Spending};

use crate::said::{NOW_MS, said};
use crate::scene::Scene;

const TOLD_MS: i64 = NOW_MS + 1_000_000;
const WRONG: &str = "AAAA-AAAA";

/// A bot on Slack and one on Telegram, and people who have an account on either.
struct Accounts {
    scene: Scene,
    telegram: AccountId,
    commands: std::cell::Cell<u32>,
}

impl Accounts {
    async fn open() -> Self {
        let scene = Scene::open().await;
        let binding = AccountBinding {
            channel: "tg".to_owned(),
            platform: Platform::Telegram,
            account: "7001".to_owned(),
            name: "bot".to_owned(),
        };
        let telegram = scene.store.bind_account(binding, 0).await.unwrap();
        Self {
            scene,
            telegram,
            commands: std::cell::Cell::new(0),
        }
    }

    /// What people are told when somebody says that behind `link` in their direct chat: chat and text of each post.
    async fn link(&self, person: &str, text: &str, at_ms: i64) -> Vec<(String, String)> {
        let n = self.commands.replace(self.commands.get() + 1);
        let is_slack = person.starts_with('U');
        let account = if is_slack {
            self.scene.account
        } else {
            self.telegram
        };
        let chat = if is_slack {
            format!("D{person}")
        } else {
            person.to_owned()
        };
        let verdict = CommandVerdict {
            effect: Effect::Link(LinkCommand {
                order: LinkOrder::read(text),
                language: Language::default(),
            }),
            answer: None,
            is_private: false,
            ..CommandVerdict::told("")
        };
        let command = NewCommand {
            event: NonMessage {
                account,
                id: format!("c{n}"),
                kind: "command",
                sender_id: person.to_owned(),
                chat: Some(chat.clone()),
                text: "/link".to_owned(),
                received_at_ms: at_ms,
            },
            place: Place {
                chat,
                ..Place::default()
            },
            sender: Sender {
                id: person.to_owned(),
                display_name: Some(format!("Ann*{person}")),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            judge: Box::new(move |_| Some(verdict)),
        };
        self.scene.store.capture_command(command).await.unwrap();
        let mut told = Vec::new();
        for (n, post) in self
            .scene
            .claim_posts(TOLD_MS)
            .await
            .into_iter()
            .enumerate()
        {
            let id = format!("{}.{n}", self.commands.get());
            self.scene.send(&post, &id, TOLD_MS).await;
            told.push((post.entry.target.chat, post.entry.part.text));
        }
        told.sort();
        told
    }

    /// A code that somebody is told.
    async fn code_of(&self, person: &str, at_ms: i64) -> String {
        let told = self.link(person, "", at_ms).await;
        let words = told[0].1.split(['"', ' ', '\n']);
        let mut codes = words.filter_map(Code::read);
        codes.next().expect("a code is told").shown()
    }

    async fn participant(&self, person: &str) -> ParticipantId {
        let account = match person.starts_with('U') {
            true => self.scene.account,
            false => self.telegram,
        };
        let found = self.scene.store.participant(account, person.to_owned());
        found.await.unwrap().unwrap()
    }

    async fn spend(&self, person: &str, tokens: u64) {
        let spending = Spending {
            account: self.scene.account,
            person: Some(self.participant(person).await),
            purpose: Purpose::Speech,
            usage: Usage {
                prompt_tokens: tokens,
                ..Usage::default()
            },
            cost_micros: 10 * tokens,
            call: None,
            now_ms: NOW_MS,
        };
        self.scene.store.spend(spending).await.unwrap();
    }

    /// What counts against the limits of a person, once as a question is judged and once before a model is asked.
    async fn spent_by(&self, person: &str) -> [u64; 2] {
        let (store, who) = (&self.scene.store, self.participant(person).await);
        let spent = store.spent_today(self.scene.account, Some(who), NOW_MS);
        let by_person = spent.await.unwrap().by_person;
        assert_eq!(by_person.cost_micros, 10 * by_person.tokens);
        let asked = crate::said::Said {
            by: if person == "U1" { "U1" } else { "U2" },
            ..said("1", "hello")
        };
        let facts = self.scene.facts(asked).await;
        [by_person.tokens, facts.spent_by_person_today.tokens]
    }
}

/// The text of the only post.
fn only(told: &[(String, String)]) -> &str {
    let [(_, text)] = told else {
        panic!("{told:?} is not one post");
    };
    text
}

#[tokio::test]
async fn a_code_joins_two_accounts_once_and_both_are_told() {
    let accounts = Accounts::open().await;
    let code = accounts.code_of("U1", NOW_MS).await;
    let told = accounts
        .link("9001", &code.to_lowercase(), NOW_MS + 1)
        .await;
    let chats: Vec<&str> = told.iter().map(|(chat, _)| chat.as_str()).collect();
    assert_eq!(chats, ["9001", "DU1"], "{told:?}");
    assert!(told[0].1.contains("acme/Ann*U1"), "{told:?}");
    // A name is no markup, on the platform where it is told.
    assert!(told[1].1.contains("tg/Ann*9001"), "{told:?}");

    let again = accounts.link("9002", &code, NOW_MS + 2).await;
    assert!(only(&again).contains("no code that is good"), "{again:?}");
    let listed = accounts.link("9001", "", NOW_MS + 3).await;
    assert!(only(&listed).contains("Joined to this account: acme/Ann*U1."));
    let code = accounts.code_of("9001", NOW_MS + 4).await;
    let told = accounts.link("9001", &code, NOW_MS + 5).await;
    assert!(only(&told).contains("this very account"), "{told:?}");
    let told = accounts.link("U1", &code, NOW_MS + 6).await;
    assert!(only(&told).contains("one person's already"), "{told:?}");

    let left = accounts.link("U1", "-", NOW_MS + 7).await;
    assert!(only(&left).contains("joined to no other any more"));
    for person in ["U1", "9001"] {
        let left = accounts.link(person, "-", NOW_MS + 8).await;
        assert!(
            only(&left).contains("is joined to no other."),
            "{person}: {left:?}"
        );
    }
}

#[tokio::test]
async fn a_code_is_good_for_ten_minutes_whatever_the_clock_does() {
    let accounts = Accounts::open().await;
    for (later_ms, is_good) in [
        (LINK_CODE_LIFE_MS, false),
        (86_400_000, false),
        (-LINK_CODE_LIFE_MS - 1, false),
        (LINK_CODE_LIFE_MS - 1, true),
    ] {
        let code = accounts.code_of("U1", NOW_MS).await;
        let told = accounts.link("9001", &code, NOW_MS + later_ms).await;
        assert_eq!(told.len() == 2, is_good, "{later_ms}: {told:?}");
    }
}

#[tokio::test]
async fn nobody_tries_codes_until_one_is_right() {
    let accounts = Accounts::open().await;
    let code = accounts.code_of("U1", NOW_MS).await;
    for n in 0..i64::from(WRONG_CODES_MAX) {
        let told = accounts.link("9001", WRONG, NOW_MS + n).await;
        assert!(only(&told).contains("no code that is good"), "{told:?}");
    }
    let told = accounts.link("9001", &code, NOW_MS + 100).await;
    assert!(only(&told).contains("tried too often"), "{told:?}");
    // Neither a code of their own nor the tries of somebody else change that.
    accounts.code_of("9001", NOW_MS + 101).await;
    let told = accounts.link("9001", &code, NOW_MS + 102).await;
    assert!(only(&told).contains("tried too often"), "{told:?}");
    let later_ms = NOW_MS + WRONG_CODES_WITHIN_MS;
    let code = accounts.code_of("U1", later_ms).await;
    assert_eq!(accounts.link("9001", &code, later_ms).await.len(), 2);
}

#[tokio::test]
async fn what_is_limited_for_a_person_is_limited_for_their_accounts_together() {
    let accounts = Accounts::open().await;
    let (scene, code) = (&accounts.scene, accounts.code_of("U1", NOW_MS).await);
    accounts.link("U2", "", NOW_MS).await;
    accounts.spend("U1", 30).await;
    accounts.spend("U2", 5).await;
    scene.ask("C1", "a question", NOW_MS).await;
    let runs_of = async |by| {
        let asked = crate::said::Said {
            by,
            ..said("9", "hello")
        };
        scene.facts(asked).await.runs_by_person_last_hour
    };
    let before = (runs_of("U1").await, runs_of("U2").await);
    assert_eq!(accounts.spent_by("U2").await, [5, 5]);

    assert_eq!(accounts.link("U2", &code, NOW_MS).await.len(), 2);
    assert_eq!(accounts.spent_by("U1").await, [35, 35]);
    assert_eq!(accounts.spent_by("U2").await, [35, 35]);
    let sum = before.0 + before.1;
    assert!(sum > 0, "somebody asked");
    assert_eq!((runs_of("U1").await, runs_of("U2").await), (sum, sum));

    accounts.link("U2", "-", NOW_MS).await;
    assert_eq!(accounts.spent_by("U2").await, [5, 5]);
}

#[tokio::test]
async fn an_operators_erasure_names_all_accounts_and_leaves_none_joined() {
    let accounts = Accounts::open().await;
    let code = accounts.code_of("U1", NOW_MS).await;
    accounts.link("9001", &code, NOW_MS).await;
    let open = accounts.code_of("U1", NOW_MS).await;
    let store = &accounts.scene.store;
    let target = ErasureTarget::Person("acme/U1".to_owned());
    let plan = store.plan_erasure(target, TOLD_MS).await.unwrap();
    assert_eq!(plan.entries.len(), 2, "{}", plan.label);
    assert!(plan.label.contains("9001"), "{}", plan.label);
    let of_one = plan.entries[..1].to_vec();
    let ids: Vec<_> = of_one.iter().map(|entry| entry.id).collect();
    store.begin_erasure(of_one).await.unwrap();
    store.carry_out_all(&ids, false, || TOLD_MS).await.unwrap();
    let told = accounts.link("9002", &open, NOW_MS).await;
    assert!(only(&told).contains("no code that is good"), "{told:?}");
    let left = accounts.link("9001", "-", NOW_MS).await;
    assert!(only(&left).contains("is joined to no other."), "{left:?}");
}

#[tokio::test]
async fn two_persons_become_one_and_no_more_than_some_accounts_are_joined() {
    let accounts = Accounts::open().await;
    let people: Vec<String> = (0..=LINKED_MAX).map(|n| format!("90{n:02}")).collect();
    // Two halves, then both together: all but the last.
    let (half, all) = (LINKED_MAX as usize / 2, LINKED_MAX as usize);
    for pair in people[..half]
        .windows(2)
        .chain(people[half..all].windows(2))
    {
        let code = accounts.code_of(&pair[0], NOW_MS).await;
        assert_eq!(accounts.link(&pair[1], &code, NOW_MS).await.len(), 2);
    }
    let code = accounts.code_of(&people[0], NOW_MS).await;
    assert_eq!(accounts.link(&people[half], &code, NOW_MS).await.len(), 2);
    let listed = accounts.link(&people[1], "", NOW_MS).await;
    assert_eq!(only(&listed).matches("tg/").count(), all - 1, "{listed:?}");
    let code = accounts.code_of(&people[2], NOW_MS).await;
    let told = accounts.link(&people[all], &code, NOW_MS).await;
    assert!(only(&told).contains("No more than 8"), "{told:?}");
}
