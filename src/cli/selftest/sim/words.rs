//! The words by which a text is known again: every message that people write has one of its own, and it
//! names its room.

/// Lines of a long answer; short ones have one.
pub(super) const LONG_LINES: usize = 6;

/// A word: `q` asks, `m` only says something; its number in the room's history; its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Word {
    pub(super) is_question: bool,
    pub(super) number: usize,
    pub(super) room: usize,
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_question { 'q' } else { 'm' };
        write!(f, "{kind}{}r{}", self.number, self.room)
    }
}

impl Word {
    /// The word of `q12r3` or, in an answer, of its line `q12r3.4`.
    fn parse(text: &str) -> Option<(Self, Option<usize>)> {
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
        let word = Self {
            is_question,
            number: number.parse().ok()?,
            room: room.parse().ok()?,
        };
        Some((word, line))
    }
}

/// All words of a text, lines of answers included.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word> {
    let words = text.split_whitespace().filter_map(Word::parse);
    words.map(|(word, _)| word)
}

/// The lines of answers in a post, in its order.
pub(super) fn answered_lines(text: &str) -> impl Iterator<Item = (Word, usize)> {
    let words = text.split_whitespace().filter_map(Word::parse);
    words.filter_map(|(word, line)| Some((word, line?)))
}

/// An answer to a question.
pub(super) fn answer(word: Word, lines: usize) -> String {
    let line =
        |n| format!("{word}.{n} is what there is to say about it, as far as anybody knows.\n");
    (1..=lines).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_again_in_what_is_said_and_answered() {
        let word = |is_question, number, room| Word {
            is_question,
            number,
            room,
        };
        let said = "Ann: @vocative q12r3 and m4r0, qr or q1rx?";
        assert_eq!(words(said).collect::<Vec<_>>(), [word(true, 12, 3)]);
        let answered = answer(word(true, 1, 2), 2);
        let lines: Vec<_> = answered_lines(&answered).collect();
        assert_eq!(lines, [(word(true, 1, 2), 1), (word(true, 1, 2), 2)]);
    }
}
