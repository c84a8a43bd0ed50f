//! A disk as a power cut leaves it, from the log of what was written to it.
//!
//! Whatever was written to a file before its last sync is there. Of what came after, any part may be:
//! writes are torn at 4 KiB, and each piece is there or not, independent of the others, as the seed
//! says. A file that was removed may be there again until its folder was synced. A file that was made
//! is there, if only empty.

use std::collections::BTreeMap;
use std::path::Path;

/// How the shim names the folder itself.
const FOLDER: &str = ".";
/// Disks write so many bytes whole.
const PIECE_BYTES: usize = 4_096;

/// One call of the program, as the shim logged it.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Write {
        name: String,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        name: String,
        length: usize,
    },
    Sync {
        name: String,
    },
    Remove {
        name: String,
    },
}

/// Reads a log of the shim.
pub(crate) fn read_log(path: &Path) -> Vec<Operation> {
    let log = std::fs::read(path).unwrap();
    let mut rest = log.as_slice();
    let mut operations = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        let words: Vec<&str> = line.split(' ').collect();
        let name = words[1].to_owned();
        operations.push(match words[0] {
            "W" => {
                let (bytes, after) = rest.split_at(words[3].parse().unwrap());
                rest = after;
                Operation::Write {
                    name,
                    offset: words[2].parse().unwrap(),
                    bytes: bytes.to_vec(),
                }
            }
            "T" => Operation::Truncate {
                name,
                length: words[2].parse().unwrap(),
            },
            "S" => Operation::Sync { name },
            "U" => Operation::Remove { name },
            other => panic!("{other} is not an operation"),
        });
    }
    operations
}

/// Numbers that look random, the same ones for the same seed (SplitMix64).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// What of the writes since the last sync is there after a cut.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nothing,
    All,
    Some,
    /// The newer half of the writes: the disk wrote in another order.
    Newer,
}

const KEPT: [Kept; 5] = [
    Kept::Nothing,
    Kept::All,
    Kept::Some,
    Kept::Some,
    Kept::Newer,
];

impl Kept {
    fn keeps(self, is_newer: bool, seed: &mut Seed) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Some => seed.below(2) == 0,
            Self::Newer => is_newer,
        }
    }
}

/// One file: what is safe, and what came since its last sync.
#[derive(Clone, Debug, Default)]
struct File {
    safe: Option<Vec<u8>>,
    pending: Vec<Operation>,
}

impl File {
    /// What came before the last removal is gone for good.
    fn settle_removal(&mut self) {
        let is_removal = |operation: &Operation| matches!(operation, Operation::Remove { .. });
        if let Some(place) = self.pending.iter().rposition(is_removal) {
            self.pending.drain(..=place);
            self.safe = None;
        }
    }
}

/// All files, as far as the log was applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    files: BTreeMap<String, File>,
}

impl Disk {
    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Sync { name } if name == FOLDER => {
                self.files.values_mut().for_each(File::settle_removal);
            }
            Operation::Sync { name } => {
                let file = self.files.entry(name.clone()).or_default();
                let mut content = file.safe.take();
                for operation in file.pending.drain(..) {
                    change(&mut content, &operation);
                }
                file.safe = content;
            }
            Operation::Write { name, .. }
            | Operation::Truncate { name, .. }
            | Operation::Remove { name } => {
                let file = self.files.entry(name.clone()).or_default();
                file.pending.push(operation.clone());
            }
        }
    }

    /// Writes the files as a power cut at this instant leaves them.
    pub(crate) fn cut(&self, seed: &mut Seed, folder: &Path) {
        for (name, file) in &self.files {
            let mut content = file.safe.clone();
            // A name that was given again after its removal is another file: that much is certain.
            let removed = file
                .pending
                .iter()
                .rposition(|operation| matches!(operation, Operation::Remove { .. }));
            let is_made_again = removed.is_some_and(|place| place + 1 < file.pending.len());
            let certain = removed
                .filter(|_| is_made_again)
                .map_or(0, |place| place + 1);
            if certain > 0 {
                content = None;
            }
            let kept = KEPT[seed.below(KEPT.len())];
            let middle = file.pending.len() / 2;
            for (place, operation) in file.pending.iter().enumerate() {
                for piece in pieces(operation) {
                    if kept.keeps(place >= middle, seed) {
                        change(&mut content, &piece);
                    }
                }
            }
            if let Some(content) = content {
                std::fs::write(folder.join(name), content).unwrap();
            }
        }
    }
}

/// What of an operation is done or not by itself.
fn pieces(operation: &Operation) -> Vec<Operation> {
    let Operation::Write {
        name,
        offset,
        bytes,
    } = operation
    else {
        return vec![operation.clone()];
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let to_border = PIECE_BYTES - (offset + start) % PIECE_BYTES;
        let end = bytes.len().min(start + to_border);
        pieces.push(Operation::Write {
            name: name.clone(),
            offset: offset + start,
            bytes: bytes[start..end].to_vec(),
        });
        start = end;
    }
    pieces
}

fn change(content: &mut Option<Vec<u8>>, operation: &Operation) {
    match operation {
        Operation::Write { offset, bytes, .. } => {
            let content = content.get_or_insert_default();
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset..end].copy_from_slice(bytes);
        }
        Operation::Truncate { length, .. } => content.get_or_insert_default().resize(*length, 0),
        Operation::Remove { .. } => *content = None,
        Operation::Sync { .. } => {}
    }
}
