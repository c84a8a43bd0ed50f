//! Which turns the full-text index has, as text of SQL, so that every statement means the same.

/// SQL: whether the index has a turn. Commands came into it as what their person said.
macro_rules! in_index {
    ($turn:literal) => {
        concat!(
            "(",
            $turn,
            ".visibility = 'room' OR (",
            $turn,
            ".visibility = 'timeline' AND ",
            $turn,
            ".kind = 'message' AND ",
            $turn,
            ".is_inbound = 1))"
        )
    };
}
pub(crate) use in_index;
