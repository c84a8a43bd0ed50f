//! `[tools]`: what is accepted, and what is refused with which words.

use super::*;
use vocative_core::tool_call::CallRule;

fn http(settings: &str) -> String {
    format!("{MINIMAL}\n[tools.shop]\nkind = \"http\"\ndescription = \"The shop.\"\n{settings}")
}

const PARAMETERS: &str = r#"parameters = '{"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}, "n": {"type": "integer"}}}'"#;

#[test]
fn what_may_be_made_again_follows_from_the_request() {
    let cases = [
        ("", CallRule::Repeatable),
        ("repeatable = false", CallRule::Once),
        ("method = \"POST\"", CallRule::Once),
        ("method = \"POST\"\nrepeatable = true", CallRule::Repeatable),
        (
            "method = \"PUT\"\nidempotency_header = \"Idempotency-Key\"",
            CallRule::Keyed,
        ),
    ];
    for (settings, expected) in cases {
        let url = "url = \"https://shop.example/{order}?n={n}\"";
        let config = load(&http(&format!(
            "{url}\n{PARAMETERS}\n{settings}\napproval = \"never\""
        )));
        let ToolKind::Http { settings: tool, .. } = &config.tools["shop"].kind else {
            panic!("a request");
        };
        assert_eq!(tool.rule, expected, "{settings}");
        assert_eq!(tool.schema["additionalProperties"], false);
    }
}

#[test]
fn a_tool_that_could_mean_something_else_is_refused() {
    let url = "url = \"https://shop.example/{order}?n={n}\"";
    let cases = [
        (
            format!("url = \"https://{{order}}/\"\n{PARAMETERS}"),
            "must name its host itself",
        ),
        (
            format!("url = \"http://shop.example/{{order}}/{{n}}\"\n{PARAMETERS}"),
            "must begin with https://",
        ),
        (
            format!("url = \"https://shop.example/{{who}}\"\n{PARAMETERS}"),
            "{who} is not among the properties",
        ),
        (
            format!("url = \"https://shop.example/{{order}}\"\n{PARAMETERS}"),
            "nothing of the request holds n",
        ),
        (
            format!("url = \"https://shop.example/{{order}}/{{n}}\"\n{PARAMETERS}"),
            "\"n\" stands in the path",
        ),
        (
            format!(
                "{url}\n{}",
                PARAMETERS.replace("\"integer\"", "\"integer\", \"multipleOf\": 2")
            ),
            "is not checked here: /properties/n/multipleOf",
        ),
        (
            format!("{url}\nparameters = '[]'"),
            "must be a JSON schema of type",
        ),
        (format!("{url}\n{PARAMETERS}\nbody = '{{'"), "is no JSON"),
        (
            format!("{url}\n{PARAMETERS}\nheaders = [\"no header\"]"),
            "a line is not NAME: VALUE",
        ),
        (
            format!("{url}\n{PARAMETERS}\nallow_private = [\"10.0.0.7\"]"),
            "is not HOST:PORT",
        ),
        (
            format!("{url}\n{PARAMETERS}\nallow_people = [\"U1\"]"),
            "is not CHANNEL/ID",
        ),
        (
            format!("{url}\n{PARAMETERS}\nallow_people = [\"other/U1\"]"),
            "there is no channel \"other\"",
        ),
        (
            format!("{url}\n{PARAMETERS}\nresult = \"items\""),
            "must be a JSON pointer",
        ),
        (
            format!("{url}\n{PARAMETERS}\nrepeatable = true\nidempotency_header = \"k\""),
            "keep one of them",
        ),
        ("".to_owned(), "must be set"),
    ];
    for (settings, expected) in cases {
        let told = refused(&http(&settings));
        assert!(told.contains(expected), "{settings}\n{told}");
    }
    let unknown = format!("{MINIMAL}\n[agents.a]\ntools = [\"conversation_serch\"]");
    let told = refused(&unknown);
    assert!(
        told.contains("did you mean \"conversation_search\"?"),
        "{told}"
    );
    let built_in = format!("{MINIMAL}\n[tools.shop]\nkind = \"builtin\"");
    assert!(refused(&built_in).contains("sets limits of built-in tools: conversation_search"));
    let taken =
        format!("{MINIMAL}\n[tools.conversation_search]\nkind = \"http\"\n{url}\n{PARAMETERS}");
    assert!(refused(&taken).contains("is the name of a built-in tool"));
}

#[test]
fn a_built_in_tool_has_limits() {
    let text = format!(
        "{MINIMAL}\n[tools.conversation_search]\nkind = \"builtin\"\ncalls_per_day = 3\ntimeout_s = 2\nallow_people = [\"acme/U1\"]"
    );
    let tool = &load(&text).tools["conversation_search"];
    let limits = (tool.limits.calls_per_day, tool.limits.timeout_ms);
    assert_eq!(limits, (Some(3), Some(2_000)));
    assert_eq!(tool.allow_people.as_ref().map(Vec::len), Some(1));
}

#[test]
fn a_tool_that_acts_names_who_may_allow_it() {
    let with = |tool: &str, agents: &str| {
        let url = "url = \"https://shop.example/{order}?n={n}\"";
        let tool = http(&format!("{url}\n{PARAMETERS}\nmethod = \"POST\"\n{tool}"));
        format!("{tool}\n{agents}")
    };
    let missing = "must say who may allow its calls";
    let refusals = [
        ("", "", missing),
        ("approval = \"always\"", "", missing),
        (
            "approval = \"never\"",
            "[agents.a]\ntools = [\"shop\"]\napproval = \"always\"",
            missing,
        ),
        (
            "",
            "[agents.a]\ntools = [\"shop\"]\napprovers = \"admins\"\n[agents.b]\ntools = [\"shop\"]",
            missing,
        ),
        (
            "approvers = [\"other/U1\"]",
            "",
            "there is no channel \"other\"",
        ),
        ("approvers = []", "", "names nobody"),
        (
            "approvers = \"admins\"\napproval = \"sometimes\"",
            "",
            "must be \"never\"",
        ),
        (
            "approvers = \"admins\"\napproval_expires_s = 0",
            "",
            "must be between",
        ),
        (
            "approvers = \"admins\"\napproval = { when = [{ at = \"/n\", gt = \"x\" }] }",
            "",
            "its test must be",
        ),
    ];
    for (tool, agents, expected) in refusals {
        let told = refused(&with(tool, agents));
        assert!(told.contains(expected), "{tool}\n{agents}\n{told}");
    }
    for (tool, agents) in [
        ("approval = \"never\"", ""),
        ("approvers = \"requester\"", ""),
        (
            "",
            "[agents.a]\ntools = [\"shop\"]\napprovers = [\"acme/U1\", \"four_eyes\"]",
        ),
        ("repeatable = true", ""),
        (
            "approvers = \"admins\"\napproval_expires_s = \"never\"\n\
             approval = { when = [{ at = \"/n\", ge = 3 }] }",
            "",
        ),
    ] {
        load(&with(tool, agents));
    }
}

#[test]
fn a_room_of_experts_is_one_that_its_agent_serves() {
    let agent = |settings: &str| format!("{MINIMAL}\n[agents.a]\n{settings}");
    let refusals = [
        (
            "tools = [\"ask_human\"]",
            "is not set, and the tool ask_human asks there",
        ),
        ("experts = [\"C1\"]", "is no room as CHANNEL/CHAT"),
        ("experts = [\"acme/\"]", "is no room as CHANNEL/CHAT"),
        (
            "experts = [\"acme/C1\", \"acme/C2\"]",
            "names two rooms of channel \"acme\"",
        ),
        (
            "experts = [\"other/C1\"]",
            "an account that a does not serve",
        ),
        (
            "channels = [\"home\"]\nexperts = [\"acme/C1\"]\n[channels.telegram.home]\ntoken = \"env:TELEGRAM_TOKEN\"",
            "an account that a does not serve",
        ),
    ];
    for (settings, expected) in refusals {
        let told = refused(&agent(settings));
        assert!(told.contains(expected), "{settings}\n{told}");
    }
    let closed = "allow_chats = [\"C1\"]\n[agents.a]\nexperts = [\"acme/C2\"]";
    let told = refused(&format!("{MINIMAL}{closed}"));
    assert!(told.contains("no answer there would be heard"), "{told}");
    let open =
        "allow_chats = [\"C1\"]\n[agents.a]\ntools = [\"ask_human\"]\nexperts = [\"acme/C1\"]";
    let config = load(&format!("{MINIMAL}{open}"));
    let experts = &config
        .agents
        .values()
        .next()
        .map(|agent| agent.experts.clone());
    let expected = [("acme".to_owned(), "C1".to_owned())].into();
    assert_eq!(*experts, Some(expected));
}

#[test]
fn a_server_of_tools_is_in_one_place() {
    let program = "argv = [\"/usr/bin/files\"]\ntrusted = true";
    let socket = "socket = \"/run/files.sock\"";
    let url = "url = \"https://files.example/mcp\"";
    let cases = [
        (format!("{socket}\n{url}"), "so is url: who listens there"),
        (
            format!("{socket}\n{program}"),
            "so is argv, trusted: who listens there",
        ),
        (
            format!("{socket}\nheaders = [\"a: b\"]"),
            "so is headers: who",
        ),
        (
            format!("{url}\n{program}"),
            "so is argv, trusted: a server is a program or an address",
        ),
        (
            format!("{url}\nmemory_max_mib = 512"),
            "so is memory_max_mib",
        ),
        (
            format!("{program}\nallow_private = [\"10.0.0.1:80\"]"),
            "must be set where allow_private is",
        ),
    ];
    for (place, expected) in cases {
        let settings = format!("{MINIMAL}\n[mcp.files]\n{place}\napproval = \"never\"");
        let told = refused(&settings);
        assert!(told.contains(expected), "{settings}\n{told}");
    }
    for place in [program, socket, url] {
        load(&format!(
            "{MINIMAL}\n[mcp.files]\n{place}\napproval = \"never\""
        ));
    }
}
