//! What lies in the unused bytes of a page of the database file. Pure.
//!
//! With `secure_delete` SQLite overwrites a row in place when it is deleted. When SQLite moves rows between pages
//! it leaves copies of them between a page's list of cells and its cells, and those stay when the rows are deleted.
//! *Source:* <https://www.sqlite.org/fileformat2.html#b_tree_pages>.

/// The length of the header in front of the first page.
const FILE_HEADER: usize = 100;
/// The offsets in a page's header of its first free block, its number of cells and the start of its cells.
const FREE_BLOCK: usize = 1;
const CELL_COUNT: usize = 3;
const FIRST_CELL: usize = 5;

/// The most pages that a file may have so that its kinds of pages can be told apart: a page without cells begins with a
/// page number or with zeros, and up to this number the first byte never is that of a page of a table or an index.
pub(crate) const PAGES_MAX: i64 = (2 << 24) - 1;

/// Overwrites the unused bytes of a page with zeros; returns whether any was not zero. A page that belongs to no table
/// or index stays as it is, in a file of at most [`PAGES_MAX`] pages without `auto_vacuum`. Fragments of up to three
/// bytes between cells may stay, because they can't be told from a cell.
pub(crate) fn blank_unused(page: &mut [u8], number: i64) -> bool {
    let Some(unused) = unused(page, number) else {
        return false;
    };
    let mut is_changed = false;
    for (from, to) in unused {
        let bytes = &mut page[from..to];
        is_changed |= bytes.iter().any(|byte| *byte != 0);
        bytes.fill(0);
    }
    is_changed
}

/// The unused stretches of a page of a table or an index.
fn unused(page: &[u8], number: i64) -> Option<Vec<(usize, usize)>> {
    let header = if number == 1 { FILE_HEADER } else { 0 };
    let header_length = match page.get(header)? {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let cells = header + header_length;
    let cells_end = cells + 2 * word(page, header + CELL_COUNT)?;
    let first_cell = match word(page, header + FIRST_CELL)? {
        0 => 65_536,
        at => at,
    };
    let is_cell =
        |at: usize| word(page, at).is_some_and(|cell| (first_cell..page.len()).contains(&cell));
    let is_whole = cells_end <= first_cell
        && first_cell <= page.len()
        && (cells..cells_end).step_by(2).all(is_cell);
    if !is_whole {
        return None;
    }
    let mut unused = vec![(cells_end, first_cell)];
    let mut block = word(page, header + FREE_BLOCK)?;
    let mut behind = first_cell;
    while block != 0 {
        let end = block.checked_add(word(page, block + 2)?)?;
        if block < behind || end < block + 4 || end > page.len() {
            return None;
        }
        unused.push((block + 4, end));
        behind = end;
        block = word(page, block)?;
    }
    Some(unused)
}

fn word(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..at.checked_add(2)?)?;
    Some(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of a table with cells at these places and free blocks of that length at those.
    fn leaf(cells: &[u8], blocks: &[(u8, u8)]) -> Vec<u8> {
        let mut page = vec![b'x'; 128];
        let first = cells.iter().chain(blocks.iter().map(|(at, _)| at)).min();
        let head = [13, 0, blocks.first().map_or(0, |(at, _)| *at), 0];
        page[..4].copy_from_slice(&head);
        page[4] = u8::try_from(cells.len()).expect("few cells");
        page[5..8].copy_from_slice(&[0, first.copied().unwrap_or(128), 0]);
        for (n, cell) in cells.iter().enumerate() {
            page[8 + 2 * n..10 + 2 * n].copy_from_slice(&[0, *cell]);
        }
        for (n, (at, length)) in blocks.iter().enumerate() {
            let next = blocks.get(n + 1).map_or(0, |(at, _)| *at);
            let place = usize::from(*at);
            page[place..place + 4].copy_from_slice(&[0, next, 0, *length]);
        }
        page
    }

    fn kept(page: &[u8]) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in (0..page.len()).filter(|at| page[*at] == b'x') {
            match runs.last_mut() {
                Some((_, to)) if *to == at => *to = at + 1,
                _ => runs.push((at, at + 1)),
            }
        }
        runs
    }

    #[test]
    fn what_no_cell_holds_is_overwritten_and_every_cell_stays() {
        let table = [
            (leaf(&[100], &[]), vec![(100, 128)]),
            (leaf(&[], &[]), vec![]),
            (leaf(&[60, 110], &[(80, 20)]), vec![(60, 80), (100, 128)]),
            (
                leaf(&[50], &[(60, 4), (100, 28)]),
                vec![(50, 60), (64, 100)],
            ),
        ];
        for (mut page, expected) in table {
            assert!(blank_unused(&mut page, 2));
            assert_eq!(kept(&page), expected);
            assert!(!blank_unused(&mut page, 2), "it is clean");
        }
    }

    #[test]
    fn what_is_no_page_of_a_table_or_an_index_stays() {
        let damaged = |at: usize, byte: u8| {
            let mut page = leaf(&[60, 110], &[(80, 20)]);
            page[at] = byte;
            page
        };
        // Another kind; cells before their area; an area before the list; free blocks that go back or out.
        for mut page in [
            damaged(0, 0),
            damaged(9, 30),
            damaged(6, 9),
            damaged(81, 70),
            damaged(83, 200),
            damaged(83, 3),
            vec![0; 128],
            vec![13; 3],
            Vec::new(),
        ] {
            let before = page.clone();
            assert!(!blank_unused(&mut page, 2));
            assert_eq!(page, before);
        }
    }

    #[test]
    fn the_first_page_begins_behind_the_files_header() {
        let mut page = vec![b'x'; 100];
        page.extend(leaf(&[], &[]));
        // No cell: its area begins at the end of the page.
        page[106] = 228;
        assert!(blank_unused(&mut page, 1));
        assert_eq!(kept(&page), [(0, 100)]);
    }
}
