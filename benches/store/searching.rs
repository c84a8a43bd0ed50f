//! Searching inside one conversation of several sizes.

use std::time::Instant;

use vocative_store::Store;
use vocative_store::contract::{SearchEffort, SearchQuery};

use crate::Fail;
use crate::bare::{Bare, BareRoom, Concerns};
use crate::place::{self, open};
use crate::sample::Sample;
use crate::texts::{ABSENT, COMMON, RARE};

const TIMES: usize = 200;
/// Of one word, of three and of five that are in many lines, and a question of twelve words.
const QUERIES: [&str; 6] = [
    COMMON,
    RARE,
    ABSENT,
    "deploy server cache",
    "deploy server cache region branch",
    "why has the deploy of the server in another region broken the cache",
];

pub(crate) async fn measure(turns: i64) -> Result<(), Fail> {
    let folder = place::BenchFolder::make("search")?;
    for size in [10_000, 100_000, turns] {
        let path = folder.path(&format!("{size}.db"));
        let (store, account) = open(&path).await?;
        store.close().await?;
        drop(store);
        let bare = Bare::open(&path, account, true)?;
        bare.hurry()?;
        let room = bare.room("C1")?;
        bare.fill(&[room], 0..size, 5_000, Concerns::Nobody)?;
        drop(bare);
        let bytes = std::fs::metadata(&path)?.len();
        let (store, _) = open(&path).await?;
        let started = Instant::now();
        while store.index_turns().await? {}
        let took = started.elapsed();
        let more = std::fs::metadata(&path)?.len().saturating_sub(bytes);
        println!("search, {size} turns: indexed in {took:.1?}, {more} bytes beside {bytes}");
        for words in QUERIES {
            let (sample, effort) = search_often(&store, room, words).await?;
            println!(
                "search, {size} turns, `{words}`: {}; {} postings, {} texts",
                sample.shown(),
                effort.postings,
                effort.texts
            );
        }
        store.close().await?;
    }
    Ok(())
}

async fn search_often(
    store: &Store,
    room: BareRoom,
    word: &str,
) -> Result<(Sample, SearchEffort), Fail> {
    let (mut sample, mut effort) = (Sample::default(), SearchEffort::default());
    for _ in 0..TIMES {
        let query = SearchQuery {
            text_max_chars: 400,
            ..SearchQuery::new(room.id, word)
        };
        let started = Instant::now();
        let found = store.search(query).await?;
        sample.push(started.elapsed());
        effort = found.effort;
    }
    Ok((sample, effort))
}
