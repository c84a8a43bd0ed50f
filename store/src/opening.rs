//! Opening a store: the engine opens the database, and what a predecessor left there is settled.

use std::path::Path;
use std::sync::Arc;

use crate::acts::erasure::settle_at_open;
use crate::acts::settling::{settle_contents_txn, settle_leases_txn};
use crate::engine::beside::files_beside;
use crate::engine::damage::DamageSign;
use crate::engine::faults::{not_opened, unusable, while_opening};
use crate::engine::open::{
    OpenParts, StoreOptions, checkpoint_at_close, in_transaction, open_readers, open_whole,
};
use crate::engine::reader::Readers;
use crate::engine::restore_traces::clear_traces;
use crate::engine::schema::MIGRATIONS;
use crate::engine::sql;
use crate::engine::upgrade::upgrade;
use crate::engine::watch::{OpenPhase, OpenWatch};
use crate::engine::work::WorkCounters;
use crate::engine::writer::Writer;
use crate::engine::writer::inline::AccessGate;
use crate::rows::search_text::{index_waiting_txn, prepare_indexing};
use crate::{Store, StoreError};

/// What opening did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// What an upgrade did, with the copy it kept; empty if no upgrade was needed.
    pub migrations: Vec<String>,
    /// Leases of a predecessor that were taken back.
    pub leases_taken_back: u64,
    /// Sentences about a restore that was killed.
    pub restores: Vec<String>,
    /// Sentences about erasures that were finished, and what a person should know of the ledger.
    pub erasures: Vec<String>,
    /// Sentences about stored files that were removed or lost.
    pub files: Vec<String>,
}

impl Store {
    /// Opens for writing: takes the lock, checks the database for damage, migrates, takes back a
    /// predecessor's leases (runs go back to queued; outbox entries whose send had started become
    /// unknown).
    ///
    /// # Errors
    /// `Locked` if another process has it open, `Newer` if a newer version wrote it, `Damaged` if it
    /// is damaged, in which case nothing was written; `Unusable` says what is in the way, and `Open`
    /// that it is not ours or can't be migrated.
    pub fn open(options: &StoreOptions, now_ms: i64) -> Result<(Self, OpenReport), StoreError> {
        Self::open_watched(options, now_ms, &OpenWatch::default())
    }

    /// Like [`Self::open`], for a caller that shows the progress of opening, or may stop it.
    ///
    /// # Errors
    /// As [`Self::open`]; `Stopped` if it was given up before the database was changed.
    pub fn open_watched(
        options: &StoreOptions,
        now_ms: i64,
        watch: &OpenWatch,
    ) -> Result<(Self, OpenReport), StoreError> {
        Self::open_for(options, now_ms, None, watch)
    }

    /// Like [`Self::open`], for a simulation: without threads. Every write is a transaction of its own,
    /// made where it is called; every access first passes the gate. Nothing is synced to disk.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_inline(
        options: &StoreOptions,
        now_ms: i64,
        gate: AccessGate,
    ) -> Result<(Self, OpenReport), StoreError> {
        Self::open_for(options, now_ms, Some(gate), &OpenWatch::default())
    }

    fn open_for(
        options: &StoreOptions,
        now_ms: i64,
        inline: Option<AccessGate>,
        watch: &OpenWatch,
    ) -> Result<(Self, OpenReport), StoreError> {
        let (path, held) = OpenParts::take(options)?;
        let is_durable = options.path.is_some() && inline.is_none();
        let restores = match is_durable {
            true => clear_traces(&path)?,
            false => Vec::new(),
        };
        let mut connection = open_whole(&path, options.page_cache_kib, is_durable)?;
        prepare_indexing(&sql::Connection::of(&connection))
            .map_err(|error| not_opened(&path, "", &error))?;
        let mut report = OpenReport {
            migrations: upgrade(&mut connection, &path, MIGRATIONS, now_ms, watch)?,
            restores,
            ..OpenReport::default()
        };
        watch.enter(OpenPhase::Settling);
        let failed = |error| while_opening(&path, error);
        let settled = in_transaction(&mut connection, |inside| settle_leases_txn(inside, now_ms));
        report.leases_taken_back = settled.map_err(failed)?;
        if is_durable {
            report.erasures = settle_at_open(&mut connection, &path, now_ms).map_err(failed)?;
            let settled = in_transaction(&mut connection, |inside| {
                settle_contents_txn(inside, &files_beside(&path), now_ms)
            });
            report.files = settled.map_err(failed)?;
        }
        let connections = open_readers(&path, options.readers.max(1), options.page_cache_kib)?;
        let work = Arc::new(WorkCounters::default());
        let readers = Readers::new(connections, Arc::clone(&work), inline.clone());
        held.lock
            .note_used()
            .map_err(|error| unusable(&path, &error))?;
        checkpoint_at_close(&connection, true).map_err(|error| not_opened(&path, "", &error))?;
        let damage = DamageSign::new();
        let sign = damage.clone();
        let writer = match inline {
            Some(gate) => {
                Writer::without_thread(connection, index_waiting_txn, sign, work, held, gate)
            }
            None => Writer::start(connection, is_durable, index_waiting_txn, sign, work, held)
                .map_err(|error| unusable(&path, &error))?,
        };
        let database = options.path.clone();
        let files = files_beside(&path);
        let store = Self::with(readers, Some(writer), database, files, damage);
        Ok((store, report))
    }

    /// Opens read-only, without the lock, beside a running daemon.
    ///
    /// # Errors
    /// `Newer` if a newer version wrote it; `Damaged`, `Unusable`, or `Open` if it is not ours or has
    /// an older schema.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        const READERS: usize = 1;
        const PAGE_CACHE_KIB: u32 = 4_096;
        let connections = open_readers(path, READERS, PAGE_CACHE_KIB)?;
        let readers = Readers::new(connections, Arc::default(), None);
        let database = Some(path.to_owned());
        let files = files_beside(path);
        Ok(Self::with(
            readers,
            None,
            database,
            files,
            DamageSign::new(),
        ))
    }
}
