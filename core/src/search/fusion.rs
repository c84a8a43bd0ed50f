//! One ranked list from several.

use std::collections::HashMap;
use std::hash::Hash;

/// How much less a lower rank counts. *Source:* Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
/// Condorcet and individual rank learning methods", 2009.
pub const RANK_CONSTANT: f64 = 60.0;

/// Joins ranked lists by the ranks of what is in them (reciprocal rank fusion), the best first. What is in more
/// lists, and higher, comes first; of equal ones, what an earlier list has higher.
#[must_use]
pub fn fused<K: Copy + Eq + Hash>(lists: &[Vec<K>]) -> Vec<(K, f64)> {
    let mut scores: HashMap<K, (f64, usize)> = HashMap::new();
    let mut seen = 0;
    for list in lists {
        for (rank, key) in (1_u32..).zip(list) {
            let entry = scores.entry(*key).or_insert((0.0, seen));
            entry.0 += 1.0 / (RANK_CONSTANT + f64::from(rank));
            seen += 1;
        }
    }
    let mut fused: Vec<(K, (f64, usize))> = scores.into_iter().collect();
    fused.sort_by(|(_, (a, a_seen)), (_, (b, b_seen))| b.total_cmp(a).then(a_seen.cmp(b_seen)));
    fused
        .into_iter()
        .map(|(key, (score, _))| (key, score))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lists: &[&[u8]]) -> Vec<u8> {
        let lists: Vec<Vec<u8>> = lists.iter().map(|list| list.to_vec()).collect();
        fused(&lists).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn what_more_lists_have_higher_comes_first() {
        let cases: [(&[&[u8]], &[u8]); 5] = [
            (&[], &[]),
            (&[&[3, 1, 2]], &[3, 1, 2]),
            (&[&[1, 2], &[2, 3]], &[2, 1, 3]),
            (&[&[1], &[2]], &[1, 2]),
            (&[&[1, 2, 3], &[3, 4], &[3, 5]], &[3, 1, 2, 4, 5]),
        ];
        for (lists, expected) in cases {
            assert_eq!(order(lists), expected, "{lists:?}");
        }
    }
}
