//! `[hooks]`: what is accepted, and what is refused with which words.

use super::*;
use vocative_core::hooking::HookPoint;

fn with_hook(settings: &str) -> String {
    format!("{MINIMAL}\n[agents.vocative]\nhooks = [\"guard\"]\n[hooks.guard]\n{settings}")
}

#[test]
fn hooks_are_read_in_the_order_of_their_agent() {
    let settings = "kind = \"http\"\nat = [\"before_tool\", \"before_post\"]\nurl = \"https://guard.example/x\"\n\
                    content = true";
    let config = load(&with_hook(settings));
    let agent = config.agents.values().next().unwrap();
    assert_eq!(agent.settings.hooks, ["guard"]);
    let guard = &config.hooks["guard"];
    let points = [HookPoint::BeforeTool, HookPoint::BeforePost];
    assert_eq!(guard.points, points);
    let HookKind::Http {
        settings,
        has_content,
        ..
    } = &guard.kind
    else {
        panic!("a request");
    };
    assert_eq!((settings.timeout_ms, *has_content), (2_000, true));
}

#[test]
fn a_hook_that_would_not_do_what_it_seems_to_is_refused() {
    let http = |more: &str| {
        format!(
            "kind = \"http\"\nat = [\"before_tool\"]\nurl = \"https://guard.example/x\"\n{more}"
        )
    };
    let redact = |more: &str| format!("kind = \"redact\"\n{more}");
    let cases = [
        (
            redact("at = [\"before_save\"]"),
            "nothing would be taken out",
        ),
        (redact("at = []\nremove = [\"keys\"]"), "names no point"),
        (
            redact("at = [\"before_tool\"]\nremove = [\"keys\"]"),
            "no words can be taken out at \"before_tool\"; after_model takes them",
        ),
        (
            redact("at = [\"before_post\", \"before_post\"]\nremove = [\"keys\"]"),
            "is there twice",
        ),
        (
            redact("at = [\"before_post\"]\npatterns = [\"(\"]"),
            "\"(\" is no regular expression: unclosed group",
        ),
        (
            redact("at = [\"before_post\"]\nremove = [\"keys\"]\nurl = \"https://x.example/\""),
            "is for hooks of kind \"http\"",
        ),
        (
            http("remove = [\"keys\"]"),
            "is for hooks of kind \"redact\"",
        ),
        (
            "kind = \"http\"\nat = [\"before_tool\"]".to_owned(),
            "must be set",
        ),
        (
            "kind = \"http\"\nat = [\"before_tool\"]\nurl = \"http://10.0.0.7/x\"".to_owned(),
            "must begin with https://",
        ),
        (
            "kind = \"http\"\nat = [\"before_tool\"]\nurl = \"https://guard.example/{who}\""
                .to_owned(),
            "has a place for an argument",
        ),
        (http("timeout_ms = 60000"), "from 50 to 30000"),
        (
            redact("at = [\"run_ended\"]\nremove = [\"keys\"]"),
            "no words can be taken out at \"run_ended\"",
        ),
        (
            "kind = \"http\"\nat = [\"approval_decided\"]\nurl = \"https://guard.example/x\"\ncontent = true"
                .to_owned(),
            "is for points where a hook is asked; what it is told holds no texts",
        ),
        (http("at_once = true"), "there is no such setting"),
    ];
    for (settings, words) in cases {
        let said = refused(&with_hook(&settings));
        assert!(said.contains(words), "{settings}: {said}");
    }
    let said = refused(&format!(
        "{MINIMAL}\n[agents.vocative]\nhooks = [\"gard\"]\n[hooks.guard]\n{}",
        http("")
    ));
    assert!(said.contains("gard") && said.contains("guard"), "{said}");
}

#[test]
fn a_hook_that_asks_a_model_names_one_that_is_there() {
    let http = |more: &str| {
        format!(
            "kind = \"http\"\nat = [\"before_tool\"]\nurl = \"https://guard.example/x\"\n{more}"
        )
    };
    let cases = [
        (
            http("model = \"default\""),
            "is for hooks of kind \"intent\"",
        ),
        (
            "kind = \"intent\"\nat = [\"before_run\"]".to_owned(),
            "must name the model that is asked",
        ),
        (
            "kind = \"intent\"\nat = [\"before_tool\"]\nmodel = \"default\"".to_owned(),
            "is asked at \"before_run\" only",
        ),
        (
            "kind = \"intent\"\nat = [\"before_run\"]\nmodel = \"smal\"".to_owned(),
            "smal",
        ),
        (
            "kind = \"intent\"\nat = [\"before_run\"]\nmodel = \"default\"\nurl = \"https://x.example/\""
                .to_owned(),
            "is for hooks of kind \"http\"",
        ),
    ];
    for (settings, words) in cases {
        let said = refused(&with_hook(&settings));
        assert!(said.contains(words), "{settings}: {said}");
    }
}
