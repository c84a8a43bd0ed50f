//! Searching inside one conversation of several sizes.

use std::time::Instant;

use vocative_store::Store;
use vocative_store::contract::SearchQuery;

use crate::Fail;
use crate::bare::{Bare, BareRoom, Concerns};
use crate::place::{self, open};
use crate::sample::Sample;
use crate::texts::{ABSENT, COMMON, RARE};

const TIMES: usize = 200;

pub(crate) async fn measure(turns: i64) -> Result<(), Fail> {
    let folder = place::Place::make("search")?;
    for size in [1_000, 100_000, turns] {
        let path = folder.path(&format!("{size}.db"));
        let (store, account) = open(&path).await?;
        store.close().await?;
        drop(store);
        let bare = Bare::open(&path, account, true)?;
        bare.hurry()?;
        let room = bare.room("C1")?;
        bare.fill(&[room], 0..size, 5_000, Concerns::Nobody)?;
        drop(bare);
        let (store, _) = open(&path).await?;
        for word in [COMMON, RARE, ABSENT] {
            let (sample, matches) = search_often(&store, room, word).await?;
            println!(
                "search, {size} turns, `{word}`: {}; {matches} matches looked at",
                sample.shown()
            );
        }
        store.close().await?;
    }
    Ok(())
}

async fn search_often(store: &Store, room: BareRoom, word: &str) -> Result<(Sample, usize), Fail> {
    let (mut sample, mut matches) = (Sample::default(), 0);
    for _ in 0..TIMES {
        let query = SearchQuery {
            text_max_chars: 400,
            ..SearchQuery::new(room.id, word)
        };
        let started = Instant::now();
        let found = store.search(query).await?;
        sample.push(started.elapsed());
        matches = found.matches;
    }
    Ok((sample, matches))
}
