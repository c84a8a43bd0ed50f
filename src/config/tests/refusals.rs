//! What is refused, with the line, the reason and what to write instead.

use super::*;

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    insta::assert_snapshot!(refused(r#"
[channels.slack.acme]
app_token = "env:A"
bot_tokn = "xoxb-secret"

[deamon]
max_parallel_runs = 2

[daemon]
max_parallel_runs = 2
bot_token = "env:B"
colour = "red"
"#), @r##"
    4 problems in the configuration

      vocative.toml:4  channels.slack.acme.bot_tokn
          there is no such setting
          did you mean bot_token?

      vocative.toml:6  deamon
          there is no such setting
          did you mean daemon?

      vocative.toml:11  daemon.bot_token
          there is no such setting
          bot_token belongs in [channels.slack.NAME]

      vocative.toml:12  daemon.colour
          there is no such setting
          known here: data_dir, runtime_dir, control_socket, socket_group, drain_deadline_s, max_parallel_runs, log_format, log_level, landlock

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn wrong_types_and_bounds_are_refused_with_their_lines() {
    insta::assert_snapshot!(refused(r#"
daemon.max_parallel_runs = "many"
[store]
readers = 2.5
keep_revisions = "yes"
[channels.slack.acme]
app_token = 5
bot_token = ["env:B"]
sockets = 11
allow_chats = "C1"
admins = [
  "U1",
  true,
]
[channels.slack.other]
app_token = "env:A2"
bot_token = "env:B2"
sockets = 0
[delivery]
on_unknown = "resnd"
[agents]
iris = 1
"#), @r##"
    11 problems in the configuration

      vocative.toml:2  daemon.max_parallel_runs
          must be a whole number from 1 to 1000, is a text

      vocative.toml:4  store.readers
          must be a whole number from 1 to 64, is a number with a fraction

      vocative.toml:5  store.keep_revisions
          must be true or false, is a text

      vocative.toml:7  channels.slack.acme.app_token
          must be a reference to a secret, is a whole number

      vocative.toml:8  channels.slack.acme.bot_token
          must be a reference to a secret, is a list

      vocative.toml:9  channels.slack.acme.sockets
          must be a whole number from 1 to 10, is 11

      vocative.toml:10  channels.slack.acme.allow_chats
          must be a list, is a text

      vocative.toml:13  channels.slack.acme.admins[1]
          must be an id, is true or false

      vocative.toml:18  channels.slack.other.sockets
          must be a whole number from 1 to 10, is 0

      vocative.toml:20  delivery.on_unknown
          must be one of "look", "resend", "hold", is "resnd"
          did you mean "resend"?

      vocative.toml:22  agents.iris
          must be a table, is a whole number

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn mistyped_variables_are_refused_by_name() {
    let error = load_with(
        MINIMAL,
        [
            ("VOCATIVE_DAEMON__MAX_PARALEL_RUNS", "3"),
            ("VOCATIVE_STORE__READERS", "lots"),
            ("VOCATIVE_CHANNELS__SLAK__ACME__SOCKETS", "2"),
            ("VOCATIVE_CHANNELS__SLACK__ACME__BOT_TOKEN", "xoxb-secret"),
            ("VOCATIVE_DAEMON", "is about nothing"),
        ],
    );
    insta::assert_snapshot!(error.unwrap_err(), @r##"
    4 problems in the configuration

      $VOCATIVE_CHANNELS__SLACK__ACME__BOT_TOKEN  channels.slack.acme.bot_token
          must say where the secret is, not what it is; a secret written here may already be in backups or in version control, so replace it (its value is not shown)
          write "env:BOT_TOKEN" for an environment variable, "file:PATH" for a file, or "credential:NAME" for a systemd credential

      $VOCATIVE_CHANNELS__SLAK__ACME__SOCKETS  channels.slak
          there is no such setting
          did you mean VOCATIVE_CHANNELS__SLACK__ACME__SOCKETS?

      $VOCATIVE_DAEMON__MAX_PARALEL_RUNS  daemon.max_paralel_runs
          there is no such setting
          did you mean VOCATIVE_DAEMON__MAX_PARALLEL_RUNS?

      $VOCATIVE_STORE__READERS  store.readers
          must be a whole number from 1 to 64, is a text

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_variable_with_one_underscore_is_pointed_out() {
    let (_, warnings) = load_with(MINIMAL, [("VOCATIVE_DAEMON_LOG_LEVEL", "debug")]).unwrap();
    insta::assert_snapshot!(warnings[0], @"$VOCATIVE_DAEMON_LOG_LEVEL is not read: the section ends with two underscores, VOCATIVE_DAEMON__LOG_LEVEL");
}

#[test]
fn bad_toml_is_refused_without_its_text() {
    let said = refused("[channels.telegram.home]\ntoken = \"123:AAsecret\n[x\n");
    assert!(!said.contains("AAsecret"));
    insta::assert_snapshot!(said, @r##"
    2 problems in the configuration

      vocative.toml:2
          no valid TOML at column 22: invalid basic string, expected `"`

      vocative.toml:3
          no valid TOML at column 3: unclosed table, expected `]`

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn references_to_nothing_are_refused() {
    insta::assert_snapshot!(refused(r#"
[models.claude]
provider = "anthropic"
model = "claude-sonnet"
api_key = "env:K"
[agents.iris]
model = "cluade"
channels = ["acmee"]
[agents.hermes]
summary_model = "claud"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:B"
default_agent = "irsi"
[channels.telegram.home]
token = "env:T"
default_agent = "iris"
"#), @r##"
    6 problems in the configuration

      vocative.toml:7  agents.iris.model
          there is no [models.cluade]
          did you mean "claude"?

      vocative.toml:8  agents.iris.channels
          there is no [channels.acmee]
          did you mean "acme"?

      vocative.toml:9  agents.hermes.model
          there is no [models.default]
          configured: claude

      vocative.toml:10  agents.hermes.summary_model
          there is no [models.claud]
          did you mean "claude"?

      vocative.toml:14  channels.slack.acme.default_agent
          there is no [agents.irsi]
          did you mean "iris"?

      vocative.toml:17  channels.telegram.home.default_agent
          the agent iris does not serve this channel
          add "home" to agents.iris.channels

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn names_that_clash_are_refused() {
    insta::assert_snapshot!(refused(r#"
[agents.iris]
aliases = ["Rainbow", "rainbow", " "]
[agents.hermes]
aliases = ["IRIS"]
display_name = "rainBOW"
[agents.zeus]
channels = []
aliases = ["iris"]
[channels.telegram.acme]
token = "env:T"
default_agent = "iris"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:A"
default_agent = "iris"
"#), @r##"
    6 problems in the configuration

      vocative.toml:3  agents.iris.aliases
          "Rainbow" also addresses the agent hermes (as "rainBOW"), and both serve the same channels
          give one of them another name, or channels of its own

      vocative.toml:3  agents.iris.aliases
          "rainbow" is there twice (case doesn't count)

      vocative.toml:3  agents.iris.aliases
          an alias is empty, so every message would open with it

      vocative.toml:5  agents.hermes.aliases
          "IRIS" also addresses the agent iris (as "iris"), and both serve the same channels
          give one of them another name, or channels of its own

      vocative.toml:10  channels.telegram.acme
          a Slack channel is called acme, too; channel names are unique over all platforms

      vocative.toml:15  channels.slack.acme.bot_token
          is the same as channels.slack.acme.app_token; two connections with one token take messages from each other

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn bad_names_are_refused_once() {
    insta::assert_snapshot!(refused(r#"
[agents.Support-Bot]
model = "Big Model"
[agents.iris]
model = "Big Model"
channels = ["Acme"]
[models."Big Model"]
provider = "offline"
[channels.slack.Acme]
app_token = "env:A"
bot_token = "env:B"
default_agent = "Support-Bot"
"#), @r##"
    3 problems in the configuration

      vocative.toml:2  agents.Support-Bot
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "support_bot" instead

      vocative.toml:7  models.Big Model
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "big_model" instead

      vocative.toml:9  channels.slack.Acme
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "acme" instead

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_post_is_looked_for_longer_than_the_platform_takes_to_show_it() {
    let look_back_ms = |delivery: &str| {
        load(&format!("{MINIMAL}\n[delivery]\n{delivery}"))
            .delivery
            .look_back_ms
    };
    assert_eq!(look_back_ms(""), 45_000);
    assert_eq!(look_back_ms("visibility_delay_s = 1"), 2_000);
    assert_eq!(look_back_ms("visibility_delay_s = 60"), 90_000);
    assert_eq!(look_back_ms("look_back_s = 600"), 600_000);
    insta::assert_snapshot!(refused("[delivery]\nlook_back_s = 30"), @r"
    one problem in the configuration

      vocative.toml:2  delivery.look_back_s
          must be longer than visibility_delay_s (30), is 30

    `vocative config example` prints every setting with what it means
    ");
}

#[test]
fn an_api_on_an_address_needs_a_token() {
    let open = "[api]\nenabled = true\nlisten = \"0.0.0.0:8087\"";
    insta::assert_snapshot!(refused(open), @r#"
    one problem in the configuration

      vocative.toml:3  api.listen
          0.0.0.0:8087 can be reached by every user of this machine at least, so the API needs a token there
          set api.token (token = "env:VOCATIVE_API_TOKEN"), or listen on unix:PATH

    `vocative config example` prints every setting with what it means
    "#);
    insta::assert_snapshot!(refused("[api]\nlisten = \"localhost\""), @r"
    one problem in the configuration

      vocative.toml:2  api.listen
          must be an address and a port, like 127.0.0.1:8087, or unix:PATH

    `vocative config example` prints every setting with what it means
    ");
    let listen = |settings: &str| {
        let text = format!("[daemon]\nruntime_dir = \"/r\"\n[api]\n{settings}");
        let config = load(&text);
        (config.api.listen.to_string(), config.api.enabled)
    };
    let here = ("unix:/r/vocative-api.sock".to_owned(), true);
    assert_eq!(listen("enabled = true"), here);
    assert_eq!(listen("listen = \"unix:/run/api\"").0, "unix:/run/api");
    let with_token = "enabled = true\nlisten = \"0.0.0.0:1\"\ntoken = \"env:T\"";
    assert_eq!(listen(with_token), ("0.0.0.0:1".to_owned(), true));
    let on_loopback = "[api]\nenabled = true\nlisten = \"[::1]:1\"";
    assert!(refused(on_loopback).contains("needs a token"));
}

#[test]
fn a_token_of_the_api_says_what_it_may() {
    let sound = r#"
[api]
enabled = true
listen = "0.0.0.0:1"
token = "env:READER"
[api.tokens.desk]
token = "env:DESK"
scopes = ["act", "ask"]
people = ["acme/U1"]
"#;
    let config = load(&format!("{sound}{MINIMAL}"));
    let desk = &config.api.tokens[0];
    assert_eq!(desk.name, "desk");
    let scopes: Vec<&str> = desk.scopes.iter().map(|scope| scope.name()).collect();
    assert_eq!(scopes, ["ask", "act"]);
    assert_eq!(desk.people[0].id, "U1");
    // On an address and port, one token with a name is enough.
    load(&format!("{sound}{MINIMAL}").replace("token = \"env:READER\"", ""));
    let said = |from: &str, to: &str| refused(&format!("{sound}{MINIMAL}").replace(from, to));
    let table = [
        ("[\"act\", \"ask\"]", "[]", "must name at least one"),
        ("\"act\", ", "\"root\", ", "root"),
        ("env:DESK", "env:READER", "is another token's, too"),
        ("acme/U1", "other/U1", "there is no channel"),
        ("env:DESK", "hunter2", "must say where the secret is"),
        ("scopes = [\"act\", \"ask\"]", "", "must name at least one"),
        ("token = \"env:DESK\"", "", "must say where the token is"),
    ];
    for (from, to, expected) in table {
        let said = said(from, to);
        assert!(
            said.contains(expected) && !said.contains("hunter2"),
            "{from}: {said}"
        );
    }
}

#[test]
fn values_that_make_no_sense_are_refused() {
    insta::assert_snapshot!(refused(r##"
[daemon]
log_level = "vocative=chatty"
socket_group = ""
[http]
listen = "localhost"
[models.default]
model = "m"
[models.a]
provider = "openai"
base_url = "ftp://x"
context_limit = 1000
[models.b]
provider = "anthropic"
base_url = "https://user:pw@example.org"
[agents.iris]
instructions = "You are {{agnet}}"
[agents.iris.prompt]
profile = "toolpak"
[channels.slack.acme]
api_url = "slack.com"
allow_chats = ["#general"]
admins = ["*"]
[channels.telegram.home]
token = "env:T"
allow_people = ["@ada"]
commands = ["/ask"]
"##), @r##"
    17 problems in the configuration

      vocative.toml:3  daemon.log_level
          is no level and no filter: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5

      vocative.toml:4  daemon.socket_group
          is empty; leave it out for no group

      vocative.toml:6  http.listen
          must be an address and a port, like 127.0.0.1:8086

      vocative.toml:7  models.default.provider
          is missing: say who serves the model, like "openai"

      vocative.toml:9  models.a.model
          is missing: the provider's name of the model

      vocative.toml:11  models.a.base_url
          must start with https:// or http://

      vocative.toml:13  models.b.model
          is missing: the provider's name of the model

      vocative.toml:15  models.b.base_url
          has a user or password in it, which would show in logs

      vocative.toml:17  agents.iris.instructions
          there is no value {{agnet}}; there are {{agent}}, {{chat}}, {{date}}, {{participant}}

      vocative.toml:19  agents.iris.prompt.profile
          must be one of "vocative", "toolpack", is "toolpak"
          did you mean "toolpack"?

      vocative.toml:20  channels.slack.acme.app_token
          is missing: say where the app-level token (xapp-...) is
          app_token = "env:APP_TOKEN"

      vocative.toml:20  channels.slack.acme.bot_token
          is missing: say where the bot token (xoxb-...) is
          bot_token = "env:BOT_TOKEN"

      vocative.toml:21  channels.slack.acme.api_url
          must start with https:// or http://

      vocative.toml:22  channels.slack.acme.allow_chats[0]
          "#general" is no id
          Slack ids look like C0123ABCD: names change, ids don't; it is at the bottom of the channel's or person's details

      vocative.toml:23  channels.slack.acme.admins
          can't be everybody; list their ids

      vocative.toml:26  channels.telegram.home.allow_people[0]
          "@ada" is no id
          Telegram ids are numbers: `vocative check` and the log name those of chats that are not served yet

      vocative.toml:27  channels.telegram.home.commands
          "/ask": a command has 1 to 32 of a-z, 0-9 and _, without the slash

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_mistyped_log_level_is_told_instead_of_silencing_the_log() {
    for (level, is_fine) in [
        ("info", true),
        ("info,vocative::delivery=debug", true),
        ("DEBUG", true),
        ("inof", false),
        ("", false),
        ("info,bogus", false),
    ] {
        let variables = [("HOME", "/home/ann"), ("VOCATIVE_DAEMON__LOG_LEVEL", level)];
        let loaded = Config::from_text(None, &Environment::from(variables));
        let told = loaded.err().map(|error| error.to_string());
        assert_eq!(told.is_none(), is_fine, "{level:?}: {told:?}");
    }
}

#[cfg(not(feature = "tiktoken"))]
#[test]
fn a_counter_that_this_build_lacks_is_refused_with_what_to_do() {
    insta::assert_snapshot!(refused(EXACT_COUNTS), @r#"
    one problem in the configuration

      vocative.toml:6  models.default.counter
          o200k is not in this build
          build with `--features tiktoken`, or write "class"

    `vocative config example` prints every setting with what it means
    "#);
}

#[cfg(feature = "tiktoken")]
#[test]
fn a_vocabulary_of_another_maker_is_warned_of() {
    let (config, warnings) = load_with(EXACT_COUNTS, []).unwrap();
    assert_eq!(config.models["default"].counter, CounterName::O200k);
    let is_warned = |warning: &Warning| warning.to_string().contains("not as those of anthropic");
    assert!(warnings.iter().any(is_warned), "{warnings:?}");
}

#[test]
fn instructions_that_change_from_run_to_run_are_warned_of() {
    let warned = |settings: &str| {
        let text = format!("{MINIMAL}\n[agents.ops]\n{settings}\n");
        let (_, warnings) = load_with(&text, []).unwrap();
        let told: String = warnings.iter().map(|it| format!("{it}\n")).collect();
        told.contains("agents.ops.situation stands behind the history")
    };
    assert!(warned("instructions = \"You answer {{participant}}.\""));
    assert!(warned("instructions = \"It is {{date}}.\""));
    assert!(!warned("instructions = \"You are {{agent}} in {{chat}}.\""));
    assert!(!warned("situation = \"It is {{date}}.\""));
    let refused = refused("[agents.ops]\nsituation = \"{{day}}\"\n");
    assert!(refused.contains("there is no value {{day}}"), "{refused}");
}

#[test]
fn providers_of_other_names_are_told_how_they_are_reached() {
    let said = |name: &str| {
        refused(&format!(
            "[models.default]\nprovider = \"{name}\"\nmodel = \"m\"\n"
        ))
    };
    insta::assert_snapshot!(said("gemini"), @r#"
    one problem in the configuration

      vocative.toml:2  models.default.provider
          must be one of "offline", "openai", "anthropic", is "gemini"
          write provider = "openai" and base_url = "https://generativelanguage.googleapis.com/v1beta/openai/"

    `vocative config example` prints every setting with what it means
    "#);
    assert!(said("openai_resp").contains("api = \"responses\""));
    assert!(said("vertex").contains("the base_url of a gateway that speaks for vertex"));
    assert!(said("anthropik").contains("did you mean \"anthropic\"?"));
}

#[test]
fn an_answer_leaves_half_of_a_small_context_to_the_prompt() {
    let small = "[models.default]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ncontext_limit = 2048\n";
    let text = format!("{MINIMAL}\n{small}");
    let (config, warnings) = load_with(&text, []).unwrap();
    assert_eq!(config.models["default"].max_output_tokens, 1_024);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|it| it.contains("answers get half of it")),
        "{said:?}"
    );
}

#[test]
fn an_answer_ends_in_one_way_by_a_tool_that_is_there_or_in_a_form_that_is_checked() {
    let schema = r#"answer_schema = '{"type": "object", "properties": {}}'"#;
    let table = [
        (
            "stop_after_failed_tools = [\"weather\"]".to_owned(),
            "would end a run",
        ),
        (
            "stop_after_tools = [\"weather\"]".to_owned(),
            "is not among the agent's tools",
        ),
        (
            format!("stop_after_tools = [\"conversation_search\"]\n{schema}"),
            "is set and so is stop_after_tools",
        ),
        (
            format!("answer_schema_file = \"x.json\"\n{schema}"),
            "is set and so is answer_schema;",
        ),
        (
            "answer_schema_file = \"none.json\"".to_owned(),
            "none.json can't be read",
        ),
        (
            "answer_schema = '{\"type\": \"array\"}'".to_owned(),
            "must be a JSON schema of type",
        ),
    ];
    for (settings, words) in table {
        let said = refused(&format!("{MINIMAL}\n[agents.vocative]\n{settings}\n"));
        assert!(said.contains(words), "{settings}: {said}");
    }
}

#[test]
fn what_an_agent_is_shown_and_what_it_calls_first_is_something_that_there_is() {
    for (settings, words) in [
        ("history = \"last 0\"", "\"last 0\" is not \"full\""),
        ("history = \"some\"", "\"last N\" with N from 1 to 1000"),
        ("tool_choice = \"weather\"", "nor among the agent's tools"),
        (
            "tool_choice = \"required\"\ntools = []",
            "and the agent has none",
        ),
        ("like = \"vocative\"", "is the agent itself"),
        ("enabled.chats = [\"C1\"]", "is no chat as CHANNEL/CHAT"),
        (
            "enabled.people = [\"nobody/U1\"]",
            "agents.vocative.enabled.people",
        ),
        ("enabled.hours = \"8-18\"", "is no part of a day"),
        ("enabled.time_zone = \"Berlin\"", "is no time zone"),
        ("like = \"nobody\"", "agents.vocative.like"),
        (
            "examples = [{ question = \"Open?\" }]",
            "has no question or no answer in its entry 1",
        ),
        (
            "examples = [{ question = \" \", answer = \"Yes.\" }]",
            "has no question or no answer in its entry 1",
        ),
        (
            "tool_choice = \"conversation_search\"\nmax_steps = 1",
            "needs max_steps of 2 or more",
        ),
    ] {
        let said = refused(&format!("{MINIMAL}\n[agents.vocative]\n{settings}\n"));
        assert!(said.contains(words), "{settings}: {said}");
    }
}

#[test]
fn what_a_chat_has_of_its_own_is_something_that_there_is() {
    for (settings, words) in [
        ("instructions = \"{{room}}\"", "there is no value {{room}}"),
        ("quiet_hours = \"8-18\"", "is no part of a day"),
        ("overlap = \"forget\"", "overlap"),
    ] {
        let table = "[channels.slack.acme.chats.C012AB3CD]";
        let said = refused(&format!("{MINIMAL}\n{table}\n{settings}\n"));
        assert!(said.contains(words), "{settings}: {said}");
    }
    let examples = ["{ question = \"Open?\", answer = \"Yes.\" }"; 9].join(", ");
    let said = refused(&format!(
        "{MINIMAL}\n[agents.vocative]\nexamples = [{examples}]\n"
    ));
    assert!(said.contains("has 9 examples; 8 is the most"), "{said}");
}

#[test]
fn a_channel_without_an_agent_is_refused() {
    let told = refused(
        "[channels.slack.acme]\napp_token = \"env:A\"\nbot_token = \"env:B\"\n\n[agents.vocative]\nmodel = \"m\"\nchannels = [\"other\"]\n\n\
         [models.m]\nprovider = \"offline\"\n\n[channels.slack.other]\napp_token = \"env:C\"\nbot_token = \"env:D\"\n",
    );
    assert!(
        told.contains("channels.slack.acme") && told.contains("no agent serves this channel"),
        "{told}"
    );
    assert!(!told.contains("channels.slack.other"), "{told}");
}

#[test]
fn models_to_choose_from_are_models() {
    let told = refused("[agents.vocative]\nmodels = [\"deep\"]\n");
    assert!(
        told.contains("agents.vocative.models") && told.contains("deep"),
        "{told}"
    );
}

#[test]
fn instructions_and_examples_that_leave_no_room_are_refused() {
    let small =
        "[models.small]\nprovider = \"offline\"\ncontext_limit = 3000\nmax_output_tokens = 1000\n";
    let with = |answer: usize, instructions: usize| {
        let (answer, instructions) = ("word ".repeat(answer), "word ".repeat(instructions));
        format!(
            "{small}[agents.vocative]\nmodel = \"small\"\ninstructions = \"{instructions}\"\nexamples = [{{ question = \"q\", answer = \"{answer}\" }}]\n"
        )
    };
    for (answer, instructions, setting) in [(2_000, 0, "examples"), (0, 2_000, "instructions")] {
        let told = refused(&with(answer.max(1), instructions.max(1)));
        let setting = format!("agents.vocative.{setting}");
        assert!(
            told.contains(&setting) && told.contains("has room for 2000"),
            "{told}"
        );
    }
    load(&with(500, 500));
}
