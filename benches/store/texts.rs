//! Lines as a room has them: the n-th is always the same, 124 bytes in the mean.

/// In three quarters of the lines.
pub(crate) const COMMON: &str = "deploy";
/// In under a hundred lines, however long the room.
pub(crate) const RARE: &str = "quokka";
/// In no line.
pub(crate) const ABSENT: &str = "zeppelin";

/// How many lines hold [`RARE`].
const RARE_LINES: i64 = 88;
/// One line in this number holds [`RARE`], while there are any left.
const RARE_EVERY: i64 = 7;

const WORDS: [&str; 64] = [
    "the", "build", "server", "is", "green", "again", "after", "we", "moved", "cache", "to",
    "another", "region", "and", "nobody", "saw", "errors", "since", "monday", "please", "look",
    "at", "logs", "before", "you", "merge", "that", "branch", "because", "tests", "took", "longer",
    "than", "usual", "last", "night", "maybe", "database", "was", "busy", "with", "backup", "or",
    "network", "had", "trouble", "customer", "asked", "about", "invoice", "from", "june", "can",
    "someone", "check", "whether", "release", "notes", "mention", "it", "thanks", "lunch",
    "meeting", "tomorrow",
];

/// The n-th line of a room.
pub(crate) fn line(n: i64) -> String {
    // A multiplicative step through all words, other for each line.
    let mut state = n.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = 6 + state % 29;
    let mut text = String::with_capacity(200);
    if n % 4 != 0 {
        text.push_str(COMMON);
        text.push(' ');
    }
    for _ in 0..words {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[usize::try_from(state >> 58).unwrap_or_default()]);
        text.push(' ');
    }
    if n % RARE_EVERY == 0 && n / RARE_EVERY < RARE_LINES {
        text.push_str(RARE);
    }
    text.truncate(text.trim_end().len());
    text
}
