//! The pieces in which rows are played: a long row is cut, so that its pieces are played side by side and
//! no core idles while one row ends alone. Pure.
//!
//! A piece has a name and chance of its own, both from its row and its number: what a piece plays does
//! not depend on what else is played, and it can be played again alone.

use super::plan::PlanRow;
use crate::args::{CrashArgs, CrashPlatform, CrashTransport};

/// Kills of a piece at most: one scene of random kills, two of the others.
const KILLS_OF_PIECE_MAX: usize = 8;

/// Some of a row's kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowPiece {
    /// Of which row: its place in the table.
    pub(super) place: usize,
    /// That row, with this piece's kills.
    pub(super) row: PlanRow,
    /// Which of its pieces, from 1 on.
    pub(super) number: usize,
}

impl RowPiece {
    /// Its name on the command line.
    pub(super) fn name(&self) -> String {
        format!(
            "{}/{}/{}",
            self.row.platform(),
            self.row.name(),
            self.number
        )
    }

    /// What chance begins with.
    pub(super) fn seed(&self, args: &CrashArgs) -> u64 {
        let hash = self.name().bytes().fold(0xcbf2_9ce4_8422_2325, hashed);
        args.seed ^ hash
    }

    /// The command that plays it again, alone.
    pub(super) fn command(&self, args: &CrashArgs) -> String {
        let mut command = format!(
            "vocative-lab crash --rounds {} --seed {}",
            args.rounds, args.seed
        );
        let platform = args.platform.map(|platform| match platform {
            CrashPlatform::Slack => "slack",
            CrashPlatform::Telegram => "telegram",
        });
        let transport = args.transport.map(|transport| match transport {
            CrashTransport::Connect => "connect",
            CrashTransport::Http => "http",
        });
        let named = [
            ("platform", platform),
            ("transport", transport),
            ("point", args.point.as_deref()),
            ("sabotage", args.sabotage.as_deref()),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                command.extend([" --", name, " ", value]);
            }
        }
        if args.faults {
            command.push_str(" --faults");
        }
        command.extend([" --piece '", self.name().as_str(), "'"]);
        command
    }
}

fn hashed(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// The pieces of these rows that are to be played: all, one share, or the one of a name.
pub(super) fn pieces(rows: &[PlanRow], args: &CrashArgs) -> Vec<RowPiece> {
    let (only, (share, shares)) = (args.piece.as_deref(), args.share.unwrap_or((1, 1)));

    let cut = rows.iter().enumerate().flat_map(|(place, row)| {
        (0..row.kills.div_ceil(KILLS_OF_PIECE_MAX)).map(move |n| RowPiece {
            place,
            row: PlanRow {
                kills: (row.kills - n * KILLS_OF_PIECE_MAX).min(KILLS_OF_PIECE_MAX),
                ..*row
            },
            number: n + 1,
        })
    });
    cut.enumerate()
        .filter(|(n, _)| n % shares == share - 1)
        .map(|(_, piece)| piece)
        .filter(|piece| only.is_none_or(|name| piece.name() == name))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;

    use clap::Parser as _;

    use super::super::plan::rows;
    use super::*;
    use crate::args::{LabCli, LabCommand};

    fn args(line: &str) -> CrashArgs {
        let words = line.split('\'').enumerate().flat_map(|(n, part)| {
            // What stands between quotes is one word.
            let is_quoted = n % 2 == 1;
            let is_blank = |c: char| !is_quoted && c.is_whitespace();
            let words: Vec<&str> = part.split(is_blank).filter(|it| !it.is_empty()).collect();
            words
        });
        let LabCommand::Crash(args) = LabCli::try_parse_from(words).unwrap().command else {
            panic!("{line} is no crash matrix");
        };
        args
    }

    #[test]
    fn a_row_is_cut_into_pieces_that_have_all_its_kills_and_differ_in_chance() {
        let args = args("vocative-lab crash --rounds 1000");
        let rows = rows(&args, None);
        let all = pieces(&rows, &args);
        let seeds: HashSet<u64> = all.iter().map(|piece| piece.seed(&args)).collect();
        assert_eq!(seeds.len(), all.len());
        assert!(all.len() > rows.len() + 50, "{}", all.len());
        assert!(all.iter().all(|it| (1..=8).contains(&it.row.kills)));
        for (place, row) in rows.iter().enumerate() {
            let of_row = all.iter().filter(|piece| piece.place == place);
            let kills: usize = of_row.map(|piece| piece.row.kills).sum();
            assert_eq!(kills, row.kills, "{row:?}");
        }
    }

    #[test]
    fn the_shares_together_are_all_pieces() {
        let whole = args("vocative-lab crash --rounds 120 --seed 7");
        let rows = rows(&whole, None);
        let mut shared = Vec::new();
        for share in ["1/3", "2/3", "3/3"] {
            let line = format!("vocative-lab crash --rounds 120 --seed 7 --share {share}");
            shared.extend(pieces(&rows, &args(&line)));
        }
        shared.sort_by_key(|piece| (piece.place, piece.number));
        assert_eq!(shared, pieces(&rows, &whole));
    }

    #[test]
    fn the_command_of_a_piece_plays_that_piece_and_no_other() {
        let lines = [
            "vocative-lab crash --rounds 1000 --seed 7 --faults",
            "vocative-lab crash --rounds 90 --platform telegram --transport http",
            "vocative-lab crash --rounds 60 --point random",
        ];
        for line in lines {
            let args_of_all = args(line);
            for piece in pieces(&rows(&args_of_all, None), &args_of_all) {
                let again = args(&piece.command(&args_of_all));
                let found = pieces(&rows(&again, None), &again);
                assert_eq!(found, [piece], "{line}");
                assert_eq!(found[0].seed(&again), piece.seed(&args_of_all));
                assert_eq!(again.faults, args_of_all.faults);
            }
        }
    }
}
