//! Where something that is stored was said, and by whom. The access lists are asked about it again before anything
//! further is made of it, as they may have changed since it was stored.

use crate::engine::sql::{OptionalExtension, Row, params};
use vocative_contract::envelope::Place;

use crate::rows::columns::chat_kind_from_name;
use crate::rows::places::find_chat;
use crate::{Reader, StoreError};
use vocative_core::ids::{AccountId, ChatId, FileId};

/// A place, and the platform's id of a person there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where.
    pub place: Place,
    /// Who said it.
    pub person: Option<String>,
}

impl Reader {
    /// The message that a file came with; `None` if it is gone.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn file_origin(&self, file: FileId) -> Result<Option<Origin>, StoreError> {
        self.read(move |connection| {
            let origin = connection
                .prepare_cached(
                    "SELECT h.platform_id, h.kind, p.platform_id AS person
                     FROM files f JOIN turns t ON t.seq = f.turn_seq
                     JOIN conversations c ON c.id = t.conversation_id
                     JOIN chats h ON h.id = c.chat_id
                     LEFT JOIN participants p ON p.id = t.participant_id AND p.kind = 'user'
                     WHERE f.id = ?1",
                )?
                .query_row([file], |row| {
                    Ok(Origin {
                        place: place(row)?,
                        person: row.get("person")?,
                    })
                })
                .optional()?;
            Ok(origin)
        })
        .await
    }

    /// A chat as a place.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn place_of(&self, chat: ChatId) -> Result<Place, StoreError> {
        self.read(move |connection| {
            Ok(connection
                .prepare_cached("SELECT platform_id, kind FROM chats WHERE id = ?1")?
                .query_row(params![chat], place)?)
        })
        .await
    }

    /// Whether anything is stored of a chat.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn knows_chat(&self, account: AccountId, chat: String) -> Result<bool, StoreError> {
        self.read(move |connection| Ok(find_chat(connection, account, &chat)?.is_some()))
            .await
    }
}

/// A place of the columns `platform_id` and `kind`.
fn place(row: &Row<'_>) -> crate::engine::sql::Result<Place> {
    let kind: Option<String> = row.get("kind")?;
    Ok(Place {
        chat: row.get("platform_id")?,
        kind: kind.as_deref().and_then(chat_kind_from_name),
        ..Place::default()
    })
}
