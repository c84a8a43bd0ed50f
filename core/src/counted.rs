//! Numbers of things, as people say them.

use std::fmt::Display;

/// `1 turn`, and `0 turns` or `12 turns`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(
    count: N,
    one: &str,
    many: &str,
) -> String {
    let what = if count == N::from(1) { one } else { many };
    format!("{count} {what}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_one_and_none_are_many() {
        let turns = |count: u64| counted(count, "turn", "turns");
        assert_eq!([0, 1, 2].map(turns), ["0 turns", "1 turn", "2 turns"]);
        assert_eq!(counted(1_usize, "entry", "entries"), "1 entry");
    }
}
