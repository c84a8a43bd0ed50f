//! What is kept raw: events that did not translate, envelopes for debugging, and what is no message.

use crate::capability::MayCapture;
use crate::engine::sql::{Connection, params};

use crate::contract::{NewMessage, NonMessage, RawStub};
use crate::registry::{
    Class, ErasureRule, ExpiryRule, ExportRule, Fate, OF_TURN, OTHER_SOURCE, STATE, StoreTable,
    account, text,
};
use crate::{Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "non_messages",
        text(
            &["text"],
            &[],
            &["kind", "platform_id", "sender_id", "chat"],
        ),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Nothing(OTHER_SOURCE),
            expiry: ExpiryRule::Deleted(Class::Raw),
            export: ExportRule::Nothing("commands are no messages of the room"),
            ..STATE
        },
    ),
    account(
        "raw_envelopes",
        text(&["raw"], &[], &["reason"]),
        Fate {
            expiry: ExpiryRule::Deleted(Class::Raw),
            ..OF_TURN
        },
    )
    .follows(&["turn_seq"])
    .goes_with_turn("turn_seq"),
];

impl<C: MayCapture> Store<C> {
    /// Keeps an event that did not translate.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn keep_raw(&self, stub: RawStub) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    stub.account,
                    stub.reason,
                    stub.raw,
                    stub.received_at_ms
                ])?;
            Ok(())
        })
        .await
    }

    /// Keeps a command or interaction, once by (account, kind, id). Returns whether it was new.
    ///
    /// # Errors
    /// `Unavailable` if storage refuses.
    pub async fn keep_non_message(&self, event: NonMessage) -> Result<bool, StoreError> {
        self.write(move |connection| keep_non_message_txn(connection, &event))
            .await
    }
}

/// Keeps a command or interaction; returns whether it was new.
pub(crate) fn keep_non_message_txn(
    connection: &Connection,
    event: &NonMessage,
) -> Result<bool, StoreError> {
    let added = connection
        .prepare_cached(
            "INSERT INTO non_messages (account_id, kind, platform_id, sender_id, chat, text,
                    received_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            event.account,
            event.kind,
            event.id,
            event.sender_id,
            event.chat,
            event.text,
            event.received_at_ms
        ])?;
    Ok(added > 0)
}

/// Whether an event was kept before.
pub(crate) fn is_kept_non_message(
    connection: &Connection,
    event: &NonMessage,
) -> Result<bool, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM non_messages
                            WHERE account_id = ?1 AND kind = ?2 AND platform_id = ?3) AS is_kept",
        )?
        .query_row((event.account, event.kind, &event.id), |row| {
            row.get("is_kept")
        })?;
    Ok(found)
}

/// Keeps a captured message's own JSON, where that is asked for.
pub(crate) fn keep_envelope_txn(
    connection: &Connection,
    message: &NewMessage,
    turn_seq: i64,
) -> Result<(), StoreError> {
    if let Some(raw) = &message.raw {
        connection
            .prepare_cached(
                "INSERT INTO raw_envelopes (account_id, raw, turn_seq, received_at_ms)
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                message.account,
                raw,
                turn_seq,
                message.received_at_ms
            ])?;
    }
    Ok(())
}
