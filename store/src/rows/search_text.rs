//! The full-text index over turns: what is indexed, and how one conversation is found in it.
//!
//! The index holds no text of its own. Taking a turn out needs exactly the text that was put in, so
//! both go through here, and [`searchable`] changes only with a migration that indexes anew.

use crate::engine::sql::Connection;

use crate::StoreError;
use crate::registry::{ExportRule, Fate, OF_TURN, StoreTable, nobody, text};
use crate::rows::stem_index::{self, StemEntry, ask_for_indexing_txn, through_seq};
use crate::rows::vectors::forget_vector_txn;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "turn_text",
    "an index over turns, which are an account's",
    text(&["content"], &[], &["conversation"]),
    Fate {
        export: ExportRule::Nothing("it is an index"),
        ..OF_TURN
    },
)];

/// A text as it is indexed and searched: characters of scripts without spaces between words stand
/// alone, so that words of one or two characters are found as phrases.
pub(crate) fn searchable(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for c in text.chars() {
        if is_unspaced(c) {
            out.push(' ');
            out.push(c);
            out.push(' ');
        } else {
            out.push(c);
        }
    }
    out
}

/// Han, kana, Hangul, Thai, Lao, Myanmar and Khmer.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1100..=0x11ff | 0x1780..=0x17ff
        | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x3130..=0x318f | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0xff66..=0xff9f | 0x20000..=0x3ffff)
}

/// Goes through a text as the index compares it: lower case, without diacritics, one space between
/// words, at the start and at the end. `push` gets the byte where a character comes from, and it.
///
/// It is near to what the index does, not the same: a rare letter that only the index folds counts
/// as another letter here, which touches the order of hits, never whether one is found.
pub(crate) fn fold(text: &str, mut push: impl FnMut(usize, char)) {
    push(0, ' ');
    let mut is_spaced = true;
    for (at, c) in text.char_indices() {
        if c.is_ascii_alphanumeric() {
            push(at, c.to_ascii_lowercase());
            is_spaced = false;
        } else if is_unspaced(c) {
            if !is_spaced {
                push(at, ' ');
            }
            push(at, c);
            push(at, ' ');
            is_spaced = true;
        } else if c.is_alphanumeric() {
            for lower in c.to_lowercase() {
                push(at, base_letter(lower));
            }
            is_spaced = false;
        } else if !is_spaced && !is_combining(c) {
            push(at, ' ');
            is_spaced = true;
        }
    }
    if !is_spaced {
        push(text.len(), ' ');
    }
}

fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// A small letter of Latin, Greek or Cyrillic without its accent.
fn base_letter(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ạ'..='ặ' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'ẹ'..='ệ' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' => 'i',
        'ķ' => 'k',
        'ĺ' | 'ļ' | 'ľ' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ŏ' | 'ő' | 'ọ'..='ợ' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' => 's',
        'ţ' | 'ť' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ụ'..='ự' => 'u',
        'ý' | 'ÿ' | 'ŷ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' => 'υ',
        'ώ' => 'ω',
        'ё' | 'ѐ' => 'е',
        'й' => 'и',
        'ї' => 'і',
        other => other,
    }
}

/// The word that stands for a conversation in the index, by its row id.
pub(crate) fn conversation_term(conversation_row: i64) -> String {
    format!("c{conversation_row}")
}

/// Makes the list of turns that wait for the index, on the writer's connection.
///
/// The index writes its pending words out at every savepoint, and each job of a batch has one. So jobs
/// only list what is to be indexed, and [`index_waiting_txn`] does it once for the batch.
pub(crate) fn prepare_indexing(connection: &Connection) -> crate::engine::sql::Result<()> {
    connection.execute_batch("CREATE TEMP TABLE waiting_for_index (seq INTEGER PRIMARY KEY)")
}

/// Has a room-visible turn put into the index before the transaction ends, as it is then.
pub(crate) fn index_turn_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO temp.waiting_for_index (seq) VALUES (?1)")?
        .execute([seq])?;
    Ok(())
}

/// Puts what waits into the index: the last thing in a batch's transaction.
pub(crate) fn index_waiting_txn(connection: &Connection) -> Result<(), StoreError> {
    let mut waiting = connection.prepare_cached(
        "SELECT t.seq, t.conversation_id, t.content
         FROM temp.waiting_for_index w CROSS JOIN turns t ON t.seq = w.seq
         WHERE t.content <> '' ORDER BY w.seq",
    )?;
    let mut rows = waiting.query([])?;
    let mut seqs: Option<(i64, i64)> = None;
    let through = through_seq(connection)?;
    while let Some(row) = rows.next()? {
        let content = row
            .get_ref("content")?
            .as_str()
            .map_err(crate::engine::sql::Error::from)?;
        let seq: i64 = row.get("seq")?;
        add_to_index(connection, seq, row.get("conversation_id")?, content)?;
        if seq <= through {
            add_stems_txn(connection, seq)?;
        } else {
            seqs = Some((seqs.map_or(seq, |(first, _)| first), seq));
        }
    }
    connection
        .prepare_cached("DELETE FROM temp.waiting_for_index")?
        .execute([])?;
    match seqs {
        Some(seqs) => ask_for_indexing_txn(connection, seqs, through),
        None => Ok(()),
    }
}

/// Puts a changed turn back into the index of stems, which it was in before.
fn add_stems_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    match stem_index::indexed_turn(connection, seq)? {
        Some(turn) => stem_index::add_txn(connection, &StemEntry::of(turn)),
        None => Ok(()),
    }
}

fn add_to_index(
    connection: &Connection,
    seq: i64,
    conversation_row: i64,
    content: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO turn_text (rowid, conversation, content) VALUES (?1, ?2, ?3)")?
        .execute((
            seq,
            conversation_term(conversation_row),
            searchable(content),
        ))?;
    Ok(())
}

/// Removes a turn and its words from the index; `content` is what was put in.
pub(crate) fn unindex_turn_txn(
    connection: &Connection,
    seq: i64,
    conversation_row: i64,
    content: &str,
) -> Result<(), StoreError> {
    forget_vector_txn(connection, seq)?;
    let was_waiting = connection
        .prepare_cached("DELETE FROM temp.waiting_for_index WHERE seq = ?1")?
        .execute([seq])?;
    if was_waiting > 0 || content.is_empty() {
        return Ok(());
    }
    if seq <= through_seq(connection)? {
        stem_index::remove_txn(connection, seq, conversation_row, content)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO turn_text (turn_text, rowid, conversation, content)
             VALUES ('delete', ?1, ?2, ?3)",
        )?
        .execute((
            seq,
            conversation_term(conversation_row),
            searchable(content),
        ))?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn characters_of_scripts_without_spaces_stand_alone() {
        let cases = [
            ("deploy at nine", "deploy at nine"),
            ("東京 tower", " 東  京  tower"),
            ("カナ", " カ  ナ "),
            ("한국어!", " 한  국  어 !"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(searchable(text), expected);
        }
    }

    #[test]
    fn a_text_is_compared_without_case_accents_and_punctuation() {
        let cases = [
            ("Deploy -- at NINE!", " deploy at nine "),
            ("Café, cafe\u{301}", " cafe cafe "),
            ("東京tower", " 東 京 tower "),
            ("Ёлка й", " елка и "),
            ("", " "),
            (" \u{1f389} ", " "),
        ];
        for (text, expected) in cases {
            let mut folded = String::new();
            fold(text, |_, c| folded.push(c));
            assert_eq!(folded, expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn the_words_of_a_turn_taken_out_are_gone_from_the_index_files() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let gone = scene.say(&room, "zebraword horse", 1).await;
        let kept = scene.say(&room, "lionword horse", 2).await;
        let row = room.row;
        scene
            .write(move |connection| {
                unindex_turn_txn(connection, gone.seq.0, row, "zebraword horse")
            })
            .await;
        let left = "SELECT rowid FROM turn_text WHERE turn_text MATCH 'content:(horse)'";
        assert_eq!(scene.value::<i64>(left).await, kept.seq.0);
        let blocks = "SELECT count(*) FROM turn_text_data
                      WHERE instr(block, CAST('zebraword' AS BLOB)) > 0";
        assert_eq!(scene.value::<i64>(blocks).await, 0);
    }
}
