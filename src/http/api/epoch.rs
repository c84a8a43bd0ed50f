//! Which timeline an event's id belongs to. A restored backup goes back in time and on from there: what a reader was
//! told between the backup and the restore never was, though its id is smaller than later ones.

use vocative_core::ids::EventId;

/// When the newest backup was restored, in milliseconds since the Unix epoch; `None` in a database that was never
/// restored. Events' ids carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(pub(super) Option<i64>);

impl Epoch {
    /// An event's id as readers get it.
    pub(super) fn name(self, id: EventId) -> String {
        match self.0 {
            None => id.to_string(),
            Some(restored_at_ms) => format!("{id}-{restored_at_ms}"),
        }
    }

    /// The id that a reader sends back: `Some(None)` if it is of another timeline, `None` if it is no id. 0 is
    /// before all events of every timeline.
    pub(super) fn read(self, text: &str) -> Option<Option<EventId>> {
        let (id, epoch) = match text.split_once('-') {
            None => (text, None),
            Some((id, epoch)) => (id, Some(epoch.parse::<u64>().ok()?)),
        };
        let id = EventId::read(id)?;
        let own = self.0.and_then(|at_ms| u64::try_from(at_ms).ok());
        Some((epoch == own || id == EventId(0)).then_some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_timeline_is_not_gone_on_from() {
        let (never, restored) = (Epoch(None), Epoch(Some(5)));
        let id = |n| Some(Some(EventId(n)));
        let table = [
            (never, "7", id(7)),
            (never, "7-5", Some(None)),
            (restored, "7-5", id(7)),
            (restored, "7-4", Some(None)),
            (restored, "7", Some(None)),
            (restored, "0", id(0)),
            (restored, "7-", None),
            (restored, "7-5-5", None),
            (never, "x", None),
            (never, "-1", None),
        ];
        for (epoch, text, expected) in table {
            assert_eq!(epoch.read(text), expected, "{epoch:?} {text}");
        }
        assert_eq!(
            (never.name(EventId(7)), restored.name(EventId(7))),
            ("7".to_owned(), "7-5".to_owned())
        );
    }
}
