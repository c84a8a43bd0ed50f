//! Reading a history and assembling its prompt, warm, in conversations of several sizes.

use std::time::Instant;

use vocative_core::ids::AgentName;
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::{AgentView, ClassEstimate, RunView, assemble, history_query};
use vocative_store::Store;

use crate::Fail;
use crate::bare::{Bare, BareRoom, Concerns};
use crate::place::{self, open};
use crate::sample::Sample;

const TIMES: usize = 1_000;
/// An agent that each line concerns; one that the first three lines and the last concern; one that was
/// added when the last twenty were said.
const AGENTS: [&str; 3] = ["steady", "rare", "new"];

pub(crate) async fn measure(turns: i64) -> Result<(), Fail> {
    let folder = place::BenchFolder::make("assemble")?;
    let path = folder.path("rooms.db");
    let (store, account) = open(&path).await?;
    store.close().await?;
    drop(store);
    let sizes = [100, 10_000, 100_000, turns];
    let bare = Bare::open(&path, account, true)?;
    bare.hurry()?;
    let mut rooms = Vec::new();
    for size in sizes {
        let room = bare.room(&format!("C{size}x{}", rooms.len()))?;
        bare.fill(&[room], 0..size, 5_000, Concerns::Steady)?;
        for n in [0, 1, 2, size - 1] {
            bare.involve(room, bare.seq_of(room, n)?, n, AGENTS[1])?;
        }
        for n in size - 20..size {
            bare.involve(room, bare.seq_of(room, n)?, n, AGENTS[2])?;
        }
        rooms.push((size, room));
    }
    drop(bare);
    let (store, _) = open(&path).await?;
    for agent in AGENTS {
        for (size, room) in &rooms {
            let (sample, rows, tokens) = assemble_often(&store, *room, agent).await?;
            println!(
                "assemble, {size} turns, agent `{agent}`: {}; {rows} rows read, {tokens} tokens",
                sample.shown()
            );
        }
    }
    store.close().await?;
    Ok(())
}

async fn assemble_often(
    store: &Store,
    room: BareRoom,
    agent: &str,
) -> Result<(Sample, u64, usize), Fail> {
    let name = AgentName::trusted(agent);
    let view = AgentView {
        name: name.clone(),
        display_name: agent.to_owned(),
        platform_ids: Vec::new(),
    };
    let options = AssemblerOptions::default();
    let (mut sample, mut rows, mut tokens) = (Sample::default(), 0, 0);
    for _ in 0..TIMES {
        let started = Instant::now();
        let query = history_query(room.id, RunView::default(), &name, &options, 0);
        let history = store.history(query).await?;
        let prompt = assemble(&history, &view, &options, &ClassEstimate);
        sample.push(started.elapsed());
        (rows, tokens) = (history.cost.rows, prompt.tokens);
    }
    Ok((sample, rows, tokens))
}
