//! Vectors alone, as a yardstick: the lines whose vectors are most like a question's, without words.

use std::time::{Duration, Instant};

use vocative::cli::CliError;
use vocative::embeddings::client::EmbeddingClient;
use vocative_core::vector::Vector;

use super::facts::{RecallQuestion, RecallRoom};
use super::{HITS, RecallAnswer, answer, failed};

/// Its name in the table.
pub(super) const NAME: &str = "vectors alone";

/// Texts of one request.
const BATCH: usize = 64;
/// How long a request may take: a model on two cores is slow.
const WITHIN: Duration = Duration::from_secs(120);
/// Softens the first ranks where several wordings are joined. *Source:* `docs/adr/0039`.
const RANK_CONSTANT: f32 = 60.0;

/// A room's vectors.
pub(super) struct Meanings<'a> {
    client: &'a EmbeddingClient,
    lines: Vec<Vector>,
}

/// A client of an embedding server that wants no key.
pub(super) fn client(base_url: &str, model: &str) -> EmbeddingClient {
    EmbeddingClient {
        http: reqwest::Client::new(),
        base_url: base_url.trim_end_matches('/').to_owned(),
        model: model.to_owned(),
        dimensions: None,
        api_key: None,
    }
}

impl<'a> Meanings<'a> {
    pub(super) async fn of(
        room: &RecallRoom,
        client: &'a EmbeddingClient,
    ) -> Result<Self, CliError> {
        let texts: Vec<String> = room.lines.iter().map(|line| line.text.clone()).collect();
        let mut lines = Vec::with_capacity(texts.len());
        for texts in texts.chunks(BATCH) {
            lines.extend(embedded(client, texts).await?);
        }
        Ok(Self { client, lines })
    }

    pub(super) async fn search(
        &self,
        room: &RecallRoom,
        question: &RecallQuestion,
    ) -> Result<RecallAnswer, CliError> {
        let queries = embedded(self.client, &question.wordings).await?;
        let started = Instant::now();
        let mut scores = vec![0.0; self.lines.len()];
        for query in &queries {
            for (line, rank) in self.nearest(query).into_iter().zip(1_u8..) {
                scores[line] += 1.0 / (RANK_CONSTANT + f32::from(rank));
            }
        }
        let mut lines: Vec<usize> = (0..scores.len()).filter(|it| scores[*it] > 0.0).collect();
        lines.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        lines.truncate(HITS.into());
        Ok(answer(room, lines, started.elapsed()))
    }

    fn nearest(&self, query: &Vector) -> Vec<usize> {
        let likeness = |line: &Vector| {
            query
                .likeness(line.scale, &line.as_bytes())
                .unwrap_or_default()
        };
        let mut near: Vec<(f32, usize)> = self.lines.iter().map(likeness).zip(0..).collect();
        near.sort_by(|one, other| other.0.total_cmp(&one.0));
        let near = near.into_iter().map(|(_, line)| line);
        near.take(HITS.into()).collect()
    }
}

async fn embedded(client: &EmbeddingClient, texts: &[String]) -> Result<Vec<Vector>, CliError> {
    let asked = client.embed(texts, WITHIN).await;
    let embedded = asked.map_err(|cause| failed(cause.to_string()))?;
    Ok(embedded.vectors)
}
