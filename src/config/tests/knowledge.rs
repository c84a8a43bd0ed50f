//! `[knowledge]`: what is accepted, and what is refused with which words.

use super::*;
use crate::tools::KNOWLEDGE_SEARCH;

fn handbook(settings: &str) -> String {
    format!("{MINIMAL}\n[knowledge.handbook]\npaths = [\"/srv/handbook\"]\n{settings}")
}

#[test]
fn an_agent_with_documents_has_what_searches_them() {
    let config = load(&handbook("[agents.vocative]\nknowledge = [\"handbook\"]"));
    let agent = &config.agents[&agent("vocative")];
    assert_eq!(agent.tools, ["conversation_search", KNOWLEDGE_SEARCH]);
    assert_eq!(agent.settings.knowledge, ["handbook"]);
    let handbook = &config.knowledge["handbook"];
    assert_eq!(
        (handbook.files_max, handbook.file_bytes_max),
        (20_000, 2 << 20)
    );
    let none = load(MINIMAL);
    assert!(
        none.agents
            .values()
            .all(|agent| !agent.tools.contains(&KNOWLEDGE_SEARCH.to_owned()))
    );
}

#[test]
fn a_collection_that_could_not_be_meant_is_refused() {
    let cases = [
        (
            "[agents.vocative]\nknowledge = [\"handbok\"]",
            "did you mean \"handbook\"?",
        ),
        (
            "[agents.vocative]\ntools = [\"knowledge_search\"]",
            "is empty, and the tool knowledge_search searches it",
        ),
        ("chats = [\"C1\"]", "is not a channel and a chat of it"),
        (
            "chats = [\"other/C1\"]",
            "is not a channel and a chat of it",
        ),
        (
            "[knowledge.two]\npaths = [\"/srv/a\", \"/srv/a/b\"]",
            "is in it twice",
        ),
        ("[knowledge.two]\npaths = []", "must name 1 to 64"),
        (
            "[daemon]\ndata_dir = \"/srv/handbook/data\"",
            "which documents must not",
        ),
        (
            "[knowledge.two]\npaths = [\"/proc/self\"]",
            "which documents must not",
        ),
    ];
    for (settings, expected) in cases {
        let told = refused(&handbook(settings));
        assert!(told.contains(expected), "{settings}: {told}");
    }
}
