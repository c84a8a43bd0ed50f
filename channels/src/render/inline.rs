//! Cuts a paragraph's runs into pieces: at a line end, a sentence end or a space; never inside a
//! grapheme, a mention, a link or a short piece of code, unless that alone is longer than a post.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

use vocative_contract::work::looked_at;

use super::parse::trimmed;
use super::split::{PostCost, PostMeasure, Surroundings};
use super::tree::{Block, StyledRun};

/// How many times a longer piece is tried.
const WIDENED_MAX: usize = 6;
/// The highest factor by which an estimate can be too high.
const ESTIMATE_FACTOR_MAX: usize = 8;

/// How good it is to cut behind an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CutRank {
    /// It would cut a grapheme.
    Never,
    /// Inside a word.
    Word,
    /// Between words.
    Space,
    /// Between sentences.
    Sentence,
    /// Between lines.
    Line,
}

/// A stretch of text that is never cut.
struct InlineAtom {
    from: (usize, usize),
    to: (usize, usize),
    length: usize,
    rank: CutRank,
}

/// What pieces are cut from, and which block they become.
pub(super) struct Cutting<'a> {
    pub(super) form: &'a dyn PostMeasure,
    pub(super) place: &'a Surroundings,
    pub(super) runs: &'a [StyledRun],
    /// Makes a block of a piece.
    pub(super) block: &'a dyn Fn(Vec<StyledRun>) -> Block,
}

/// The pieces of a paragraph: the first within `first`, the others within `full`. The first one is
/// empty if nothing of the paragraph fits.
pub(super) fn cut_runs(
    cutting: &Cutting<'_>,
    first: PostCost,
    full: PostCost,
) -> Vec<Vec<StyledRun>> {
    let Cutting {
        form, place, runs, ..
    } = *cutting;
    let atoms = atoms(form, place, runs, full);
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut room = first;
    while at < atoms.len() {
        let is_first = pieces.is_empty();
        let (length, estimate) = piece_end(form, place, runs, &atoms[at..], room);
        if length == 0 && is_first {
            pieces.push(Vec::new());
            room = full;
            continue;
        }
        // Not even one atom fits a whole post: it is sent anyway, and the platform's own last resort cuts it.
        let end = match length {
            0 => at + 1,
            length => at + cutting.widened(&atoms[at..], length, estimate, room),
        };
        pieces.push(trimmed(piece(runs, atoms[at].from, atoms[end - 1].to)));
        at = end;
        room = full;
    }
    let mut kept = Vec::with_capacity(pieces.len());
    for (n, piece) in pieces.into_iter().enumerate() {
        if n == 0 || !piece.is_empty() {
            kept.push(piece);
        }
    }
    kept
}

impl Cutting<'_> {
    /// How many atoms really fit a piece that takes `length` of them by its estimate. Estimates are too high: the room
    /// that they leave is filled, and the last piece is never one that would have fitted with the one before it. Two
    /// pieces in one post would show the cut as a paragraph's end.
    fn widened(
        &self,
        atoms: &[InlineAtom],
        length: usize,
        estimate: PostCost,
        room: PostCost,
    ) -> usize {
        let cost = |length: usize| {
            let runs = piece(self.runs, atoms[0].from, atoms[length - 1].to);
            let block = (self.block)(trimmed(runs));
            self.form.block_cost(&block, self.place, room)
        };
        // A piece that is far too long is not even built: that would copy the whole rest once for each piece.
        let generous = PostCost {
            length: room.length.saturating_mul(ESTIMATE_FACTOR_MAX),
            count: room.count.saturating_mul(ESTIMATE_FACTOR_MAX),
        };
        let (near, _) = piece_end(self.form, self.place, self.runs, atoms, generous);
        if near == atoms.len() && cost(atoms.len()).is_within(room) {
            return atoms.len();
        }
        let (mut length, mut estimate) = (length, estimate);
        let mut wide = scaled(room, estimate, cost(length));
        for _ in 0..WIDENED_MAX {
            let (next, next_estimate) = piece_end(self.form, self.place, self.runs, atoms, wide);
            if next <= length {
                break;
            }
            let spent = cost(next);
            if spent.is_within(room) {
                (length, estimate) = (next, next_estimate);
                wide = scaled(room, estimate, spent);
            } else {
                // The added atoms cost more than the average before: a narrower room is tried next.
                wide = PostCost {
                    length: usize::midpoint(wide.length, estimate.length),
                    count: usize::midpoint(wide.count, estimate.count),
                };
            }
        }
        length
    }
}

/// The room that estimates would have to fill so that the real cost fills `room`, if they stay too high by the same
/// factor.
fn scaled(room: PostCost, estimate: PostCost, spent: PostCost) -> PostCost {
    let scale = |room: usize, estimate: usize, spent: usize| {
        let spent = spent.max(1);
        room.saturating_mul(estimate.max(spent)) / spent
    };
    PostCost {
        length: scale(room.length, estimate.length, spent.length),
        count: scale(room.count, estimate.count, spent.count),
    }
}

/// How many atoms the next piece takes, and its estimate.
fn piece_end(
    form: &dyn PostMeasure,
    place: &Surroundings,
    runs: &[StyledRun],
    atoms: &[InlineAtom],
    room: PostCost,
) -> (usize, PostCost) {
    let mut spent = PostCost::default();
    let mut best: Option<((usize, CutRank), (usize, PostCost))> = None;
    for (n, atom) in atoms.iter().enumerate() {
        let mut cost = PostCost {
            length: atom.length,
            count: 0,
        };
        for (run, run_of) in runs
            .iter()
            .enumerate()
            .take(atom.to.0 + 1)
            .skip(atom.from.0)
        {
            looked_at(1);
            let is_opened = n == 0 || run > atom.from.0 || atom.from.1 == 0;
            if is_opened {
                cost = cost.plus(form.run_cost(run_of, place));
            }
        }
        spent = spent.plus(cost);
        if !spent.is_within(room) {
            return best.map_or((0, PostCost::default()), |(_, end)| end);
        }
        // A cut in the first half would make many small pieces, one in the first quarter more so.
        let share =
            (4 * spent.length / room.length.max(1)).max(4 * spent.count / room.count.max(1));
        let worth = match (atom.rank, share) {
            (CutRank::Never, _) => continue,
            (CutRank::Word, _) | (_, 0) => (0, CutRank::Word),
            (rank, 1) => (1, rank),
            (rank, _) => (2, rank),
        };
        if best.is_none_or(|(of_best, _)| worth >= of_best) {
            best = Some((worth, (n + 1, spent)));
        }
    }
    (atoms.len(), spent)
}

fn piece(runs: &[StyledRun], from: (usize, usize), to: (usize, usize)) -> Vec<StyledRun> {
    let mut piece = Vec::new();
    for (n, run) in runs.iter().enumerate().take(to.0 + 1).skip(from.0) {
        let start = if n == from.0 { from.1 } else { 0 };
        let end = if n == to.0 { to.1 } else { run.text.len() };
        looked_at(end.saturating_sub(start));
        if start < end {
            piece.push(run.with_text(&run.text[start..end]));
        }
    }
    piece
}

fn atoms(
    form: &dyn PostMeasure,
    place: &Surroundings,
    runs: &[StyledRun],
    full: PostCost,
) -> Vec<InlineAtom> {
    let mut atoms = Vec::new();
    let mut n = 0;
    while n < runs.len() {
        let group = group_len(&runs[n..]);
        let grouped = &runs[n..n + group];
        let is_whole = runs[n].link.is_some() || runs[n].is_code || runs[n].mention.is_some();
        if is_whole && group_cost(form, place, grouped, full).is_within(full) {
            let length = grouped
                .iter()
                .map(|run| text_length(form, place, &run.text))
                .sum();
            atoms.push(InlineAtom {
                from: (n, 0),
                to: (n + group - 1, runs[n + group - 1].text.len()),
                length,
                rank: CutRank::Word,
            });
        } else {
            for (offset, run) in grouped.iter().enumerate() {
                let overhead = form.run_cost(run, place).length;
                let longest = full.length.saturating_sub(overhead).max(1);
                push_words(&mut atoms, form, place, n + offset, &run.text, longest);
            }
        }
        n += group;
    }
    forbid_cuts_in_graphemes(&mut atoms, runs);
    atoms
}

/// How many runs are one link; 1 for anything else.
fn group_len(runs: &[StyledRun]) -> usize {
    match &runs[0].link {
        Some(link) => {
            let same = runs
                .iter()
                .take_while(|run| run.link.as_ref() == Some(link));
            let same = same.count();
            looked_at(same);
            same
        }
        None => 1,
    }
}

/// What a group costs, counted only until it is too much.
fn group_cost(
    form: &dyn PostMeasure,
    place: &Surroundings,
    group: &[StyledRun],
    room: PostCost,
) -> PostCost {
    let mut cost = PostCost::default();
    for run in group {
        let length = text_length(form, place, &run.text);
        cost = cost
            .plus(form.run_cost(run, place))
            .plus(PostCost { length, count: 0 });
        if !cost.is_within(room) {
            break;
        }
    }
    cost
}

fn text_length(form: &dyn PostMeasure, place: &Surroundings, text: &str) -> usize {
    looked_at(text.len());
    text.chars().map(|c| form.char_length(c, place)).sum()
}

/// The words of a text with the white space behind them; a word longer than `longest` in pieces of whole graphemes, or
/// of characters where a grapheme is longer.
fn push_words(
    atoms: &mut Vec<InlineAtom>,
    form: &dyn PostMeasure,
    place: &Surroundings,
    run: usize,
    text: &str,
    longest: usize,
) {
    let mut start = 0;
    let mut length = 0;
    let mut has_space = false;
    let mut push = |start: usize, end: usize, length: usize| {
        if start < end {
            let rank = rank(&text[start..end]);
            atoms.push(InlineAtom {
                from: (run, start),
                to: (run, end),
                length,
                rank,
            });
        }
    };
    for (at, grapheme) in text.grapheme_indices(true) {
        let is_space = grapheme.chars().all(char::is_whitespace);
        let cost = text_length(form, place, grapheme);
        if length + cost > longest || (has_space && !is_space) {
            push(start, at, length);
            (start, length, has_space) = (at, 0, false);
        }
        if cost > longest {
            for (offset, c) in grapheme.char_indices() {
                let c_length = form.char_length(c, place);
                if length + c_length > longest {
                    push(start, at + offset, length);
                    (start, length) = (at + offset, 0);
                }
                length += c_length;
            }
            continue;
        }
        length += cost;
        has_space = is_space;
    }
    push(start, text.len(), length);
}

fn rank(word: &str) -> CutRank {
    let bare = word.trim_end();
    match () {
        () if bare.len() == word.len() => CutRank::Word,
        () if word[bare.len()..].contains('\n') => CutRank::Line,
        () if bare.ends_with(['.', '!', '?', '…', '。', '！', '？']) => CutRank::Sentence,
        () => CutRank::Space,
    }
}

/// Forbids cuts inside a grapheme, also where two runs meet in one.
fn forbid_cuts_in_graphemes(atoms: &mut [InlineAtom], runs: &[StyledRun]) {
    for n in 1..atoms.len() {
        let (before, after) = (atoms[n - 1].to, atoms[n].from);
        if before.0 == after.0 {
            continue;
        }
        let left = tail(&runs[before.0].text[..before.1]);
        let right = head(&runs[after.0].text[after.1..]);
        let joined = format!("{left}{right}");
        let mut cursor = GraphemeCursor::new(left.len(), joined.len(), true);
        if cursor.is_boundary(&joined, 0) == Ok(false) {
            atoms[n - 1].rank = CutRank::Never;
        }
    }
}

/// The last few characters of a text.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
    &text[start..]
}

/// The first few characters of a text.
fn head(text: &str) -> &str {
    let end = text.char_indices().nth(4).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
