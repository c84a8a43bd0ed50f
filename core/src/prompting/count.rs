//! What turns cost: counted once per revision, stored, and put together while assembling.
//!
//! Stored is the cost of what a turn says, as it reads in a prompt: lines indented, and each mention
//! as a bare `@`, because names change. While assembling only the rest is counted, which is short:
//! the speaker's label, quoted lines, and the names of mentions.
//!
//! *Invariant:* by the class estimate the parts never cost less than the whole message, and at most
//! two tokens more, and one for each mention. A vocabulary may differ by as much in both directions.

use vocative_contract::markup::replace_mentions;

use super::TokenCounter;
use super::project::{indented, is_unfit_for_messages};
use crate::history::History;
use crate::turn::{Recount, TokenCount, Turn};

/// The counters whose counts are used, cheapest first. A stored count of any other counter is out of date.
const KNOWN: [&str; 2] = ["class_v2", "o200k_v1"];

/// What a turn's text costs, for storing beside it.
#[must_use]
pub fn content_count(text: &str, counter: &dyn TokenCounter) -> TokenCount {
    TokenCount {
        tokens: content_tokens(text, counter),
        counter: counter.stored_name().to_owned(),
    }
}

fn content_tokens(text: &str, counter: &dyn TokenCounter) -> u32 {
    let said = replace_mentions(text, |_| "@".to_owned()).replace(is_unfit_for_messages, "");
    let said = indented(&said);
    // With the space that parts it from its label: a vocabulary counts it as a part of the word.
    counter.stored_count(&format!(" {said}"))
}

/// What a turn's text costs: the stored count where it is this counter's, else counted.
pub(super) fn tokens_of(turn: &Turn, counter: &dyn TokenCounter) -> u32 {
    match &turn.tokens {
        Some(count) if count.counter == counter.stored_name() => count.tokens,
        _ => content_tokens(&turn.content, counter),
    }
}

/// Counts the turns of a snapshot that this counter has not counted yet, and puts the counts into
/// the snapshot. Returns those to be stored.
///
/// The count of a dearer counter stays stored: a cheap one counts again as fast as it would be read.
pub fn count_turns(history: &mut History, counter: &dyn TokenCounter) -> Vec<Recount> {
    let name = counter.stored_name();
    let mut recounts = Vec::new();
    for entry in &mut history.turns {
        let turn = &mut entry.turn;
        let stored = turn.tokens.as_ref().map(|count| count.counter.as_str());
        if stored == Some(name) {
            continue;
        }
        let replaces = cost_rank(stored) <= cost_rank(Some(name));
        let tokens = content_count(&turn.content, counter);
        if replaces && !turn.content.is_empty() {
            recounts.push(Recount {
                turn: turn.id,
                revision: turn.revision,
                tokens: tokens.clone(),
            });
        }
        turn.tokens = Some(tokens);
    }
    recounts
}

fn cost_rank(counter: Option<&str>) -> Option<usize> {
    KNOWN.iter().position(|known| Some(*known) == counter)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use vocative_contract::markup::mention_token;

    use super::super::testing::{history, kael, replying, said};
    use super::super::{ClassEstimate, Utf16Div4, assemble};
    use super::*;
    use crate::history::HistoryRole;
    use crate::options::AssemblerOptions;

    /// The longest text that was counted, and all of them together, in bytes.
    #[derive(Default)]
    struct Watched {
        longest: AtomicUsize,
        all: AtomicUsize,
    }

    impl TokenCounter for Watched {
        fn name(&self) -> &'static str {
            ClassEstimate.name()
        }

        fn count(&self, text: &str) -> u32 {
            self.longest.fetch_max(text.len(), Ordering::Relaxed);
            self.all.fetch_add(text.len(), Ordering::Relaxed);
            ClassEstimate.count(text)
        }

        fn per_message_overhead(&self) -> u32 {
            ClassEstimate.per_message_overhead()
        }
    }

    #[test]
    fn long_turns_that_are_counted_already_are_not_counted_again() {
        let long = "a long story ".repeat(1_000);
        let mut turns = vec![said(0, HistoryRole::Kept, "bob", &long.repeat(4))];
        turns.extend((1..80).map(|number| said(number, HistoryRole::Kept, "bob", &long)));
        turns.push(said(99, HistoryRole::Trigger, "alice", "and then?"));
        let mut history = history(turns);
        let recounts = count_turns(&mut history, &ClassEstimate);
        assert_eq!(recounts.len(), 81);
        assert_eq!(count_turns(&mut history, &ClassEstimate), []);

        let watched = Watched::default();
        let options = AssemblerOptions {
            token_budget: 150_000,
            rolling_summary_threshold: 100,
            ..AssemblerOptions::default()
        };
        let prompt = assemble(&history, &kael(), &options, &watched);
        assert!(prompt.turns.len() > 30 && prompt.omitted.len() > 20);
        // One turn is cut to its share: what stays of it is counted a few times, and nothing else.
        let cut_bytes = 4 * options.token_budget / 4 * 5;
        assert!(watched.longest.load(Ordering::Relaxed) <= cut_bytes);

        let watched = Watched::default();
        let options = AssemblerOptions {
            token_budget: 1_000_000,
            ..options
        };
        let prompt = assemble(&history, &kael(), &options, &watched);
        assert_eq!((prompt.turns.len(), prompt.omitted.len()), (81, 0));
        assert!(watched.longest.load(Ordering::Relaxed) < 20);
        assert!(watched.all.load(Ordering::Relaxed) < 81 * 20);
    }

    #[test]
    fn a_count_by_another_counter_or_an_older_version_is_not_used() {
        let counted = |name: &str| {
            let mut entry = said(1, HistoryRole::Kept, "bob", "hello there");
            entry.turn.tokens = Some(TokenCount {
                tokens: 1_000,
                counter: name.to_owned(),
            });
            entry
        };
        for (name, is_used, is_stored_anew) in [
            ("class_v2", true, false),
            ("class_v1", false, true),
            ("utf16_div4", false, true),
            ("o200k_v1", false, false),
        ] {
            let turn = counted(name).turn;
            let is_taken = tokens_of(&turn, &ClassEstimate) == 1_000;
            assert_eq!(is_taken, is_used, "{name}");
            let mut history = history(vec![counted(name)]);
            let recounts = count_turns(&mut history, &ClassEstimate);
            assert_eq!(!recounts.is_empty(), is_stored_anew, "{name}");
            let right = content_count("hello there", &ClassEstimate);
            let after = history.turns[0].turn.tokens.clone();
            assert_eq!(after == Some(right), !is_used, "{name}");
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-zA-Z äößéя,.;:'-]{0,30}",
            "[a-z0-9\n {}()=_]{0,30}",
            "[你好世界こんにちは안녕🙂]{0,10}",
            "[\r\n\u{0B}\u{0C}\u{85}\u{2028}\u{2029} ]{0,4}",
            Just(mention_token("UBOB")),
            Just(mention_token("UNOBODY")),
            any::<String>(),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    fn cost_and_whole(
        turn: crate::history::HistoryTurn,
        counter: &dyn TokenCounter,
    ) -> (usize, usize) {
        let mut history = history(vec![turn, said(9, HistoryRole::Trigger, "alice", "x")]);
        count_turns(&mut history, counter);
        let options = AssemblerOptions {
            token_budget: 1_000_000,
            ..AssemblerOptions::default()
        };
        let prompt = assemble(&history, &kael(), &options, counter);
        let last = counter.cost("Alice: x");
        let first = prompt
            .messages
            .first()
            .filter(|_| prompt.messages.len() == 2);
        first.map_or((0, 0), |first| {
            (prompt.tokens - last, counter.cost(&first.content))
        })
    }

    proptest! {
        #[test]
        fn the_parts_of_a_message_cost_what_the_whole_does(
            text in any_text(),
            quote in prop::option::of(any_text()),
            name in prop::sample::select(vec!["bob", "alice", "atlas"]),
        ) {
            let turn = replying(said(1, HistoryRole::Kept, name, &text), 5, quote.as_deref());
            let mentions = text.matches('\u{FFF9}').count() + quote.as_deref().map_or(0, |q| q.matches('\u{FFF9}').count());
            let (cost, whole) = cost_and_whole(turn, &ClassEstimate);
            prop_assert!(whole <= cost, "{cost} for {whole}: {text:?}");
            prop_assert!(cost <= whole + 2 + mentions, "{cost} for {whole}: {text:?}");
        }

        #[test]
        fn the_parts_of_an_own_message_cost_at_least_the_whole(text in any_text()) {
            let (cost, whole) = cost_and_whole(said(1, HistoryRole::Kept, "kael", &text), &ClassEstimate);
            let breaks = text.chars().filter(|c| c.is_whitespace()).count();
            prop_assert!(whole <= cost, "{cost} for {whole}: {text:?}");
            let mentions = text.matches('\u{FFF9}').count();
            prop_assert!(cost <= whole + 2 + mentions + 2 * breaks, "{cost} for {whole}: {text:?}");
        }
    }

    #[cfg(feature = "tiktoken")]
    #[test]
    fn the_parts_of_a_message_cost_about_what_the_whole_does_by_a_vocabulary() {
        use super::super::O200k;
        for text in [
            "hello",
            "Where is the key? I looked in the drawer.",
            "one\ntwo\n  three",
            "\u{FFF9}UBOB\u{FFFB} can you help \u{FFF9}UNOBODY\u{FFFB}?",
            "你好，世界",
            "fn main() {\n    println!(\"hi\");\n}",
        ] {
            for (name, quote) in [
                ("bob", None),
                ("alice", Some("quoted\nlines")),
                ("kael", None),
            ] {
                let turn = replying(said(1, HistoryRole::Kept, name, text), 5, quote);
                let (cost, whole) = cost_and_whole(turn, &O200k);
                assert!(
                    cost.abs_diff(whole) <= 4,
                    "{cost} for {whole}: {text:?} by {name}"
                );
            }
        }
    }

    #[test]
    fn the_counters_of_this_build_are_known() {
        assert_eq!(ClassEstimate.name(), KNOWN[0]);
        #[cfg(feature = "tiktoken")]
        assert_eq!(super::super::O200k.name(), KNOWN[1]);
        assert_eq!(cost_rank(Some(Utf16Div4.name())), None);
    }
}
