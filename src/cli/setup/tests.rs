//! Any answers lead to a configuration that a check accepts, or to a reason why not.

use std::path::Path;

use proptest::prelude::*;
use secrecy::{ExposeSecret as _, SecretString};

use super::answers::{
    Answers, DaemonPlace, ModelAnswers, ModelKind, PlaceKind, SlackAnswers, TelegramAnswers,
};
use super::files::{changes, diff, write};
use super::starting::{Got, far};
use super::written::written;
use crate::admin::view::{ChannelView, IntakeCounts, PostCounts, StatusView};
use crate::config::{Config, Environment};

fn environment() -> Environment {
    Environment::from([("HOME", "/home/ada")])
}

/// Secrets as people paste them: right ones, of another kind, cut off, empty, and random text.
fn secret() -> impl Strategy<Value = SecretString> {
    let text = prop_oneof![
        "xapp-[A-Za-z0-9-]{1,20}",
        "xoxb-[A-Za-z0-9-]{1,20}",
        "[0-9]{4,10}:[A-Za-z0-9_-]{5,35}",
        "sk-[A-Za-z0-9]{1,40}",
        Just(String::new()),
        ".{0,12}",
        "[\\x00-\\x20\"'\\\\$#=\\[\\]]{0,8}",
    ];
    text.prop_map(SecretString::from)
}

fn url() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        "https?://[a-z0-9.-]{1,12}(:[0-9]{1,5})?(/[a-z0-9]{0,5}){0,2}/?".prop_map(Some),
        ".{0,16}".prop_map(Some),
    ]
}

fn ids() -> impl Strategy<Value = Vec<String>> {
    let id = prop_oneof![
        "-?[0-9]{1,14}",
        Just("*".to_owned()),
        "[A-Z0-9]{3,9}",
        ".{0,6}"
    ];
    prop::collection::vec(id, 0..3)
}

fn answers() -> impl Strategy<Value = Answers> {
    let slack = (secret(), secret(), url(), ids());
    let slack = slack.prop_map(|(app_token, bot_token, api_url, admins)| SlackAnswers {
        app_token,
        bot_token,
        api_url,
        admins,
    });
    let telegram = (secret(), url(), ids(), ids(), ids());
    let telegram = telegram.prop_map(|(token, api_url, chats, people, admins)| TelegramAnswers {
        token,
        api_url,
        chats,
        people,
        admins,
    });
    let kind = prop_oneof![
        Just(ModelKind::Offline),
        Just(ModelKind::OpenAi),
        Just(ModelKind::Anthropic)
    ];
    let name = prop_oneof!["[a-z0-9.-]{1,20}", ".{0,20}"];
    let model = (kind, name, prop::option::of(secret()), url());
    let model = model.prop_map(|(kind, name, key, url)| ModelAnswers {
        kind,
        name,
        key,
        url,
    });
    let place = prop_oneof![
        Just(PlaceKind::System),
        Just(PlaceKind::User),
        Just(PlaceKind::Files)
    ];
    let all = (
        prop::option::of(slack),
        prop::option::of(telegram),
        model,
        place,
    );
    all.prop_map(|(slack, telegram, model, kind)| Answers {
        slack,
        telegram,
        model,
        place: DaemonPlace {
            kind,
            folder: "/nonexistent".into(),
        },
    })
}

fn secrets(answers: &Answers) -> Vec<&str> {
    let slack = answers.slack.iter();
    let slack = slack.flat_map(|slack| [&slack.app_token, &slack.bot_token]);
    let telegram = answers.telegram.iter().map(|telegram| &telegram.token);
    let all = slack.chain(telegram).chain(&answers.model.key);
    all.map(|secret| secret.expose_secret()).collect()
}

proptest! {
    #[test]
    fn any_answers_make_a_configuration_that_a_check_takes_or_are_refused_with_why(
        answers in answers(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut answers = answers;
        answers.place.folder = folder.path().join("new/vocative");
        // Only secrets that are longer than a common prefix, and that can't occur in our own texts by chance.
        let hidden: Vec<&str> = secrets(&answers)
            .into_iter()
            .filter(|secret| secret.len() > 12 && secret.is_ascii())
            .collect();
        match written(&answers, &environment()) {
            Ok(made) => {
                write(&answers.place, &made).unwrap();
                let path = answers.place.file();
                let loaded = Config::load_with_secrets(Some(&path), &environment());
                let (config, _, warnings) = loaded.unwrap();
                let platforms = usize::from(answers.slack.is_some())
                    + usize::from(answers.telegram.is_some());
                prop_assert_eq!(config.channels.len(), platforms);
                prop_assert!(platforms > 0);
                let told = warnings.iter().map(ToString::to_string).collect::<String>();
                prop_assert!(hidden.iter().all(|secret| !told.contains(secret)));
                prop_assert!(hidden.iter().all(|secret| !made.configuration.contains(secret)));
                // A second time nothing changes.
                let again = changes(&answers.place, &made).unwrap();
                prop_assert_eq!(again.files.len(), 0);
            }
            Err(refusal) => {
                prop_assert!(!refusal.0.is_empty());
                let told = refusal.0.join("\n");
                prop_assert!(told.len() > 10, "{}", told);
                prop_assert!(hidden.iter().all(|secret| !told.contains(secret)));
                prop_assert!(!answers.place.folder.exists());
            }
        }
    }
}

fn sample(folder: &Path, kind: PlaceKind) -> Answers {
    Answers {
        slack: Some(SlackAnswers {
            app_token: "xapp-1".into(),
            bot_token: "xoxb-1".into(),
            api_url: None,
            admins: vec!["U1".to_owned()],
        }),
        telegram: Some(TelegramAnswers {
            token: "1:a".into(),
            api_url: None,
            chats: vec!["-100".to_owned()],
            people: Vec::new(),
            admins: Vec::new(),
        }),
        model: ModelAnswers {
            kind: ModelKind::OpenAi,
            name: "gpt-5-mini".to_owned(),
            key: Some("sk-1".into()),
            url: None,
        },
        place: DaemonPlace {
            kind,
            folder: folder.to_owned(),
        },
    }
}

#[test]
fn the_configuration_says_only_what_differs_and_where_secrets_are() {
    let made = written(
        &sample(Path::new("/etc/vocative"), PlaceKind::System),
        &environment(),
    );
    insta::assert_snapshot!(made.unwrap().configuration, @r#"
    # Made by `vocative setup`. Every setting with its default: vocative config example.
    # What is not here is as the defaults say.

    [models.default]
    provider = "openai"
    model = "gpt-5-mini"
    api_key = "credential:secret_model_key"

    [agents.vocative]
    model = "default"

    [channels.slack.slack]
    app_token = "credential:secret_slack_app"
    bot_token = "credential:secret_slack_bot"
    # Who may use admin commands.
    admins = ["U1"]

    [channels.telegram.telegram]
    token = "credential:secret_telegram"
    # Nobody else is served: the log names the ids of those who ask.
    allow_chats = ["-100"]
    allow_people = []
    "#);
}

#[test]
fn secrets_are_files_of_their_own_that_only_their_owner_reads() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (kind, of_folder, of_file) in [
        (PlaceKind::System, 0o755, 0o644),
        (PlaceKind::Files, 0o700, 0o600),
    ] {
        let answers = sample(&folder.path().join(format!("{kind:?}")), kind);
        let made = written(&answers, &environment()).unwrap();
        assert_eq!(write(&answers.place, &made).unwrap(), None);
        let place = &answers.place;
        assert_eq!(mode(&place.folder), of_folder);
        assert_eq!(mode(&place.credentials()), 0o700);
        assert_eq!(mode(&place.file()), of_file);
        for name in ["slack_app", "slack_bot", "telegram", "model_key"] {
            assert_eq!(mode(&place.credentials().join(name)), 0o600, "{name}");
        }
    }
}

#[test]
fn what_is_there_is_shown_as_a_difference_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut answers = sample(folder.path(), PlaceKind::Files);
    let made = written(&answers, &environment()).unwrap();
    write(&answers.place, &made).unwrap();
    answers.model.name = "gpt-5".to_owned();
    answers.model.key = Some("sk-2".into());
    let made = written(&answers, &environment()).unwrap();
    let found = changes(&answers.place, &made).unwrap();
    assert_eq!(
        found.diff.as_deref(),
        Some("-model = \"gpt-5-mini\"\n+model = \"gpt-5\"\n")
    );
    let key = answers.place.credentials().join("model_key");
    assert_eq!(found.files, [answers.place.file(), key]);
    let kept = write(&answers.place, &made).unwrap().unwrap();
    assert!(
        std::fs::read_to_string(kept)
            .unwrap()
            .contains("gpt-5-mini")
    );
}

#[test]
fn lines_are_compared_in_order() {
    assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), "-b\n+d\n");
    assert_eq!(diff("", "a\n"), "+a\n");
    assert_eq!(diff("a\n", ""), "-a\n");
    assert_eq!(diff("a\n", "a\n"), "");
    let long = "line\n".repeat(3_000);
    assert_eq!(diff(&long, "a\n"), "-3000 lines\n+1 lines\n");
}

#[test]
fn a_status_says_how_far_the_daemon_got() {
    let channel = |state: &str| ChannelView {
        state: state.to_owned(),
        ..ChannelView::default()
    };
    let view = |states: &[&str], runs_queued, pending| StatusView {
        channels: states.iter().map(|state| channel(state)).collect(),
        intake: IntakeCounts {
            runs_queued,
            ..IntakeCounts::default()
        },
        posts: PostCounts {
            pending,
            ..PostCounts::default()
        },
        ..StatusView::default()
    };
    let up = ["connected", "connected"];
    let table = [
        (view(&[], 0, 0), 0, Got::Unconnected),
        (view(&["connected", "retrying"], 2, 0), 2, Got::Unconnected),
        (view(&up, 0, 0), 0, Got::Connected),
        (view(&up, 1, 0), 2, Got::Unheard),
        (view(&up, 2, 1), 2, Got::Heard),
        (view(&up, 2, 0), 2, Got::Answered),
    ];
    for (view, words, expected) in table {
        assert_eq!(far(&view, words), expected);
    }
}
