//! Which runs end when a person says stop, or gives the command.

/// An open run where stop was said, or of a thread that was opened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppableRun {
    /// Whether one of its messages stands behind the one that says stop.
    pub is_asked_later: bool,
    /// Whether other people than the one who says stop have asked for it, too.
    pub is_asked_by_others: bool,
}

impl StoppableRun {
    /// Whether it ends: what one person asked alone before they said so, or what everybody asked before.
    #[must_use]
    pub fn ends(self, of_everybody: bool) -> bool {
        !self.is_asked_later && (of_everybody || !self.is_asked_by_others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reaches_what_was_asked_before_it_and_an_admins_also_what_others_asked() {
        let table = [
            (false, false, [true, true]),
            (false, true, [false, true]),
            (true, false, [false, false]),
            (true, true, [false, false]),
        ];
        for (is_asked_later, is_asked_by_others, expected) in table {
            let run = StoppableRun {
                is_asked_later,
                is_asked_by_others,
            };
            assert_eq!([run.ends(false), run.ends(true)], expected, "{run:?}");
        }
    }
}
