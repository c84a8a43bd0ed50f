//! A `result.json` of a million messages, imported by `vocative import` as a process of its own.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use crate::Fail;
use crate::stage::{BenchStage, telegram_room};

const MESSAGES: u64 = 1_000_000;
/// How many people take turns.
const PEOPLE: u64 = 500;
const WORDS: [&str; 12] = [
    "deploy", "the", "build", "is", "green", "who", "rotates", "keys", "tomorrow", "at", "nine",
    "maybe",
];

pub(crate) async fn measure() -> Result<(), Fail> {
    let stage = BenchStage::build(0, 1).await?;
    // It learns whose account it is.
    stage.spawn_connected().await?.stop().await?;
    let path = stage.folder().join("result.json");
    let bytes = make_export(&path)?;
    println!(
        "imports: {MESSAGES} messages in {} MiB of JSON",
        bytes >> 20
    );
    let path = path.display().to_string();
    for round in ["new", "all known"] {
        let since = Instant::now();
        let import = stage.spawn_command(&["import", "--channel", "team", &path])?;
        let peak_kib = import.watch().await?;
        let seconds = since.elapsed().as_secs_f64();
        println!(
            "imports, {round}: {:.0} messages a second ({seconds:.1} s), at most {:.1} MiB resident",
            MESSAGES as f64 / seconds,
            peak_kib as f64 / 1_024.0
        );
    }
    let database = std::fs::metadata(stage.folder().join("data/vocative.db"))?;
    println!(
        "imports: {} bytes of database a message",
        database.len() / MESSAGES
    );
    Ok(())
}

/// Writes a supergroup's history as Telegram Desktop does, a message at a time.
fn make_export(path: &Path) -> Result<u64, Fail> {
    let mut file = BufWriter::new(File::create(path)?);
    let bare = -1_000_000_000_000 - telegram_room(0);
    write!(
        file,
        r#"{{"name": "Room 0", "type": "private_supergroup", "id": {bare}, "messages": ["#
    )?;
    for id in 1..=MESSAGES {
        let comma = if id > 1 { "," } else { "" };
        let (person, at) = (id * 7 % PEOPLE, 1_600_000_000 + id * 60);
        let text: Vec<&str> = (0..8 + id % 9)
            .map(|word| WORDS[((id * 31 + word * word * 7) % 12) as usize])
            .collect();
        let text = text.join(" ");
        let reply = if id % 5 == 0 {
            format!(r#""reply_to_message_id": {}, "#, id - 3)
        } else {
            String::new()
        };
        write!(
            file,
            r#"{comma}
 {{"id": {id}, "type": "message", "date": "2020-09-13T12:26:40", "date_unixtime": "{at}", "from": "Person {person}", "from_id": "user{}", {reply}"text": "{text} {id}", "text_entities": [{{"type": "plain", "text": "{text} {id}"}}]}}"#,
            80_000 + person
        )?;
    }
    write!(file, "]}}")?;
    file.flush()?;
    Ok(std::fs::metadata(path)?.len())
}
