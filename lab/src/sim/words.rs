//! The words by which a text is recognised: every message that people write has one of its own, and it names its room.

/// The words that confirm a fresh start.
pub(super) const FRESH_START: &str = "A fresh start";
/// Lines of a long answer; short ones have one.
pub(super) const LONG_LINES: usize = 6;

/// A word: `q` asks, `m` only says something; its number in the room's history; its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SimWord {
    pub(super) is_question: bool,
    pub(super) number: usize,
    pub(super) room: usize,
}

impl std::fmt::Display for SimWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_question { 'q' } else { 'm' };
        write!(f, "{kind}{}r{}", self.number, self.room)
    }
}

/// What a text says with one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SaidWord {
    pub(super) word: SimWord,
    /// In an answer: which of its lines.
    pub(super) line: Option<usize>,
    /// How often the question had been edited when it said this, or was answered like this.
    pub(super) edits: usize,
}

impl SaidWord {
    /// `q12r3`, edited `q12r3+1`; in an answer its lines, `q12r3.4` and `q12r3.4+1`.
    fn parse(text: &str) -> Option<Self> {
        let (text, edits) = match text.split_once('+') {
            Some((text, edits)) => (text, edits.parse().ok()?),
            None => (text, 0),
        };
        let (word, line) = match text.split_once('.') {
            Some((word, line)) => (word, Some(line.parse().ok()?)),
            None => (text, None),
        };
        let is_question = match word.chars().next()? {
            'q' => true,
            'm' => false,
            _ => return None,
        };
        let (number, room) = word.get(1..)?.split_once('r')?;
        let word = SimWord {
            is_question,
            number: number.parse().ok()?,
            room: room.parse().ok()?,
        };
        Some(Self { word, line, edits })
    }
}

/// All words of a text, lines of answers included.
pub(super) fn words(text: &str) -> impl Iterator<Item = SimWord> {
    said(text).map(|said| said.word)
}

/// All words of a text, with their lines and edits.
pub(super) fn said(text: &str) -> impl Iterator<Item = SaidWord> {
    text.split_whitespace().filter_map(SaidWord::parse)
}

/// The lines of answers in a post, in its order.
pub(super) fn answered_lines(text: &str) -> impl Iterator<Item = (SimWord, usize)> {
    said(text).filter_map(|said| Some((said.word, said.line?)))
}

/// What a question says after a number of edits.
pub(super) fn asked(word: SimWord, edits: usize) -> String {
    format!("{word}{}", edited(edits))
}

/// An answer to a question after that many edits.
pub(super) fn answer(word: SimWord, edits: usize, lines: usize) -> String {
    let edited = edited(edits);
    let line = |n| {
        format!("{word}.{n}{edited} is what there is to say about it, as far as anybody knows.\n")
    };
    (1..=lines).map(line).collect()
}

fn edited(edits: usize) -> String {
    match edits {
        0 => String::new(),
        edits => format!("+{edits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_again_in_what_is_said_and_answered() {
        let word = |is_question, number, room| SimWord {
            is_question,
            number,
            room,
        };
        let text = "Ann: @vocative q12r3 and m4r0, qr or q1rx?";
        assert_eq!(words(text).collect::<Vec<_>>(), [word(true, 12, 3)]);
        let answered = answer(word(true, 1, 2), 0, 2);
        let lines: Vec<_> = answered_lines(&answered).collect();
        assert_eq!(lines, [(word(true, 1, 2), 1), (word(true, 1, 2), 2)]);
        let (asked, answered) = (asked(word(true, 1, 2), 3), answer(word(true, 1, 2), 3, 1));
        let edits = |text: &str| said(text).map(|said| (said.edits, said.line)).next();
        assert_eq!(edits(&asked), Some((3, None)));
        assert_eq!(edits(&answered), Some((3, Some(1))));
    }
}
