//! One pass over the chats of an account: first missed messages, then messages from before the bot came.

use std::collections::{BTreeMap, HashSet};

use futures_util::stream::{StreamExt, TryStreamExt};
use tracing::{debug, info, warn};
use vocative_contract::channel::BoxFuture;
use vocative_contract::crash;
use vocative_contract::envelope::Place;

use super::asking::{HistoryRefused, ask};
use super::bounds::CatchupBounds;
use super::room::{ChatRead, ChatReader, ReadSpan, ThreadToRead};
use super::words;
use vocative_core::judging::origin::CaptureOrigin;
use vocative_store::StoreError;
use vocative_store::contract::{AccountReach, ChatReach, HistoryGap};

/// How far our clock may be behind the platform's, or ahead of it, in milliseconds.
const CLOCK_SKEW_MS: i64 = 60_000;
/// The most threads known to the store that reading the chat may not find, because their roots are older.
const OLD_THREADS_MAX: usize = 200;
/// The chats that are read at the same time.
const CHATS_AT_ONCE: usize = 4;
/// For a gap up to this long, in milliseconds, the platform mostly sends the events again by itself (Slack for some
/// minutes): then no further pages are searched for roots of threads.
const SHORT_GAP_MS: i64 = 1_800_000;
/// How long a thread counts as active after its last reply, in milliseconds, when a short gap is read.
const ACTIVE_MS: i64 = 86_400_000;
/// The most pages before the missed messages that are searched for roots of threads.
const ROOT_PAGES_MAX: usize = 100;
/// How long before a loss replies in threads are read again, in milliseconds, because they may have been edited
/// meanwhile. History can only be asked for messages by when they were written.
const EDITED_MS: i64 = 900_000;

/// What became of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatOutcome {
    Read,
    Refused,
}

/// Why a chat was not read.
enum ChatFailure {
    Refused(String),
    Store(StoreError),
}

impl From<HistoryRefused> for ChatFailure {
    fn from(HistoryRefused(reason): HistoryRefused) -> Self {
        Self::Refused(reason)
    }
}

impl From<StoreError> for ChatFailure {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

/// One pass.
pub(super) struct Pass<'a> {
    pub(super) reader: &'a ChatReader,
    /// When it began, in milliseconds since the Unix epoch.
    pub(super) began_ms: i64,
    pub(super) bounds: &'a CatchupBounds,
    /// Whether there was a loss since that is not stored.
    pub(super) is_lost: &'a (dyn Fn() -> bool + Send + Sync),
}

impl Pass<'_> {
    /// Reads everything to be read since the last loss. If it is killed anywhere and begun again, the resulting turns
    /// are the same.
    ///
    /// # Errors
    /// Storage refuses.
    pub(super) async fn run(&self, reach: AccountReach) -> Result<(), StoreError> {
        let (reader, store) = (self.reader, &self.reader.store);
        let places = self.list(reach).await?;
        let chats = store.chats_to_read(reader.account).await?;
        let chats: Vec<(ChatReach, Place)> = chats
            .into_iter()
            .map(|chat| {
                let place = places.get(&chat.chat).cloned();
                let place = place.unwrap_or_else(|| chat.place());
                (chat, place)
            })
            // A chat that is not listed and was never heard was left since.
            .filter(|(chat, _)| chat.is_heard || places.contains_key(&chat.chat))
            .filter(|(_, place)| reader.intake.serves(place))
            .collect();
        let mut refused = HashSet::new();
        if self.bounds.catches_up() {
            let mut reading: Vec<BoxFuture<'_, Result<ChatOutcome, StoreError>>> = Vec::new();
            for (chat, place) in &chats {
                reading.push(Box::pin(self.catch_up(reach, chat, place)));
            }
            let reading = futures_util::stream::iter(reading).buffered(CHATS_AT_ONCE);
            let outcomes: Vec<ChatOutcome> = reading.try_collect().await?;
            let refusing = chats.iter().zip(outcomes);
            let refusing = refusing.filter(|(_, outcome)| *outcome == ChatOutcome::Refused);
            refused.extend(refusing.map(|((chat, _), _)| chat.chat.as_str()));
        }
        // A loss during the pass concerns chats that were read before it: the hole stays for another pass.
        if !(self.is_lost)() {
            let now_ms = (reader.clock)();
            store
                .close_reach(reader.account, reach.epoch, now_ms)
                .await?;
        }
        reader.intake.report_old_triggers();
        if self.bounds.backfills() {
            for (chat, place) in &chats {
                let is_readable = !refused.contains(chat.chat.as_str());
                if let Some(joined_ms) = chat.backfill_until_ms.filter(|_| is_readable) {
                    self.backfill(place, joined_ms).await?;
                }
            }
        }
        Ok(())
    }

    /// The chats that the bot is in. If they can't be listed, the chats that were heard before.
    async fn list(&self, reach: AccountReach) -> Result<BTreeMap<String, Place>, StoreError> {
        let reader = self.reader;
        let listed = ask(&reader.channel, || reader.history.chats()).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(HistoryRefused(reason)) => {
                warn!(channel.id = %reader.channel, reason, "chats can't be listed; those that were heard before are read");
                Vec::new()
            }
        };
        let served = listed
            .into_iter()
            .filter(|place| reader.intake.serves(place));
        let places: BTreeMap<String, Place> =
            served.map(|place| (place.chat.clone(), place)).collect();
        let until_ms = reach.unread_from_ms.unwrap_or_else(|| (reader.clock)());
        let until_ms = Some(until_ms).filter(|_| self.bounds.backfills());
        let chats: Vec<String> = places.keys().cloned().collect();
        reader
            .store
            .note_chats(reader.account, chats, until_ms)
            .await?;
        Ok(places)
    }

    async fn catch_up(
        &self,
        reach: AccountReach,
        chat: &ChatReach,
        place: &Place,
    ) -> Result<ChatOutcome, StoreError> {
        let now_ms = (self.reader.clock)();
        let Some(missed_from_ms) = missed_from_ms(reach, chat, now_ms) else {
            return Ok(ChatOutcome::Read);
        };
        let floor_ms = self.bounds.catch_up_from_ms(now_ms);
        let missed = self.read_missed(place, missed_from_ms, floor_ms, now_ms);
        match missed.await {
            Ok(read) => {
                let reader = self.reader;
                crash::point("catch-up.before-commit");
                // Our estimate of the platform's time may be ahead: messages sent after the page was made would count
                // as read.
                let through_ms = now_ms - CLOCK_SKEW_MS;
                reader
                    .store
                    .note_read(reader.account, place.chat.clone(), through_ms)
                    .await?;
                crash::point("catch-up.after-commit");
                self.tell_cut(place, missed_from_ms, now_ms, read).await?;
                Ok(ChatOutcome::Read)
            }
            Err(ChatFailure::Refused(reason)) => {
                let text = words::unread(missed_from_ms, now_ms, &reason);
                let gap = self.gap(place, now_ms, text, reason, now_ms);
                self.tell(HistoryGap {
                    may_be_read_later: true,
                    unread_from_ms: Some(missed_from_ms),
                    ..gap
                })
                .await?;
                Ok(ChatOutcome::Refused)
            }
            Err(ChatFailure::Store(cause)) => Err(cause),
        }
    }

    async fn read_missed(
        &self,
        place: &Place,
        missed_from_ms: i64,
        floor_ms: i64,
        now_ms: i64,
    ) -> Result<(ChatRead, bool), ChatFailure> {
        let reader = self.reader;
        let is_older = missed_from_ms < floor_ms
            && reader.is_anything(place, missed_from_ms, floor_ms).await?;
        let from_ms = missed_from_ms.max(floor_ms);
        let is_short = now_ms.saturating_sub(from_ms) <= SHORT_GAP_MS;
        let active_from_ms = match is_short {
            true => floor_ms.max(from_ms.saturating_sub(ACTIVE_MS)),
            false => floor_ms,
        };
        let (store, chat) = (&reader.store, &place.chat);
        let active = store
            .active_threads(
                reader.account,
                chat.clone(),
                active_from_ms,
                OLD_THREADS_MAX,
            )
            .await?;
        let edited_from_ms = floor_ms.max(from_ms.saturating_sub(EDITED_MS));
        // An edit does not make a thread active: a question in a recently asked thread may have been edited.
        let asked = store
            .asked_threads(
                reader.account,
                chat.clone(),
                edited_from_ms,
                OLD_THREADS_MAX,
            )
            .await?;
        let thread = |root: String, is_asked_in| ThreadToRead {
            root_sent_at_ms: sent_at_ms_of(&root),
            root,
            is_asked_in,
        };
        let asked = asked.into_iter().map(|root| thread(root, true));
        let active = active.into_iter().map(|root| thread(root, false));
        let read = reader
            .read(&ReadSpan {
                place: place.clone(),
                from_ms,
                until_ms: now_ms + CLOCK_SKEW_MS,
                roots_from_ms: floor_ms,
                root_pages_max: if is_short { 0 } else { ROOT_PAGES_MAX },
                edited_from_ms,
                threads: active.chain(asked).collect(),
                messages_max: self.bounds.catch_up_messages_max,
                origin: CaptureOrigin::CatchUp {
                    began_ms: self.began_ms,
                },
            })
            .await?;
        let what = "a chat was caught up on";
        log_read(&reader.channel, &place.chat, read.messages, what);
        Ok((read, is_older))
    }

    /// Notes in the timeline which missed messages are not read, because they are too many or too old.
    async fn tell_cut(
        &self,
        place: &Place,
        missed_from_ms: i64,
        now_ms: i64,
        (read, is_older): (ChatRead, bool),
    ) -> Result<(), StoreError> {
        let bounds = self.bounds;
        if let Some(cut_at_ms) = read.cut_at_ms {
            let text = words::too_many(missed_from_ms, cut_at_ms, bounds);
            let reason = "more was missed than catch_up_messages_max".to_owned();
            return self
                .tell(self.gap(place, cut_at_ms, text, reason, now_ms))
                .await;
        }
        if is_older {
            let floor_ms = bounds.catch_up_from_ms(now_ms);
            let text = words::too_old(missed_from_ms, floor_ms, bounds);
            let reason = "messages older than catch_up_days were missed".to_owned();
            return self
                .tell(self.gap(place, floor_ms, text, reason, now_ms))
                .await;
        }
        Ok(())
    }

    async fn backfill(&self, place: &Place, joined_ms: i64) -> Result<(), StoreError> {
        let now_ms = (self.reader.clock)();
        match self.read_before(place, joined_ms).await {
            Ok(cut_at_ms) => {
                let reader = self.reader;
                reader
                    .store
                    .note_backfilled(reader.account, place.chat.clone())
                    .await?;
                let Some(cut_at_ms) = cut_at_ms else {
                    return Ok(());
                };
                let text = words::before_cut(cut_at_ms, self.bounds);
                let reason = "more was said before the bot joined than is read".to_owned();
                self.tell(self.gap(place, cut_at_ms, text, reason, now_ms))
                    .await
            }
            Err(HistoryRefused(reason)) => {
                let text = words::before_unread(joined_ms, &reason);
                let gap = self.gap(place, joined_ms, text, reason, now_ms);
                self.tell(HistoryGap {
                    may_be_read_later: true,
                    ..gap
                })
                .await
            }
        }
    }

    /// Reads messages from before the bot joined; returns the time before which there are more, if any.
    async fn read_before(
        &self,
        place: &Place,
        joined_ms: i64,
    ) -> Result<Option<i64>, HistoryRefused> {
        let from_ms = self.bounds.backfill_from_ms(joined_ms);
        let read = self
            .reader
            .read(&ReadSpan {
                place: place.clone(),
                from_ms,
                until_ms: joined_ms,
                roots_from_ms: from_ms,
                root_pages_max: 0,
                edited_from_ms: from_ms,
                threads: Vec::new(),
                messages_max: self.bounds.backfill_messages_max,
                origin: CaptureOrigin::Backfill,
            })
            .await?;
        let what = "what was said before the bot joined was read";
        log_read(&self.reader.channel, &place.chat, read.messages, what);
        if read.cut_at_ms.is_some() {
            return Ok(read.cut_at_ms);
        }
        let is_older = self.reader.is_anything(place, 0, from_ms).await?;
        Ok(is_older.then_some(from_ms))
    }

    fn gap(
        &self,
        place: &Place,
        at_ms: i64,
        text: String,
        reason: String,
        now_ms: i64,
    ) -> HistoryGap {
        HistoryGap {
            account: self.reader.account,
            place: place.clone(),
            at_ms,
            text,
            reason,
            may_be_read_later: false,
            unread_from_ms: None,
            now_ms,
        }
    }

    async fn tell(&self, gap: HistoryGap) -> Result<(), StoreError> {
        let reader = self.reader;
        warn!(channel.id = %reader.channel, chat.id = %gap.place.chat, reason = gap.reason, "something is missing in a chat; its timeline says so");
        reader.store.note_gap(gap).await
    }
}

/// The time from which messages of a chat may be missing. A time in the future was written by a wrong clock and is
/// ignored. Pure.
fn missed_from_ms(reach: AccountReach, chat: &ChatReach, now_ms: i64) -> Option<i64> {
    let is_past = |time_ms: &i64| *time_ms <= now_ms + CLOCK_SKEW_MS;
    let own_ms = chat.unread_from_ms.filter(is_past);
    let read_ms = chat.read_through_ms.filter(is_past);
    own_ms.or_else(|| {
        reach
            .unread_from_ms
            .map(|hole_ms| read_ms.map_or(hole_ms, |read_ms| hole_ms.max(read_ms)))
    })
}

/// When a thread's root was posted, from its id: seconds since the Unix epoch before a point.
fn sent_at_ms_of(root: &str) -> Option<i64> {
    let seconds = root.split('.').next()?.parse::<i64>().ok()?;
    seconds.checked_mul(1_000)
}

/// Logs at debug level if nothing was missed: that is the case in most chats.
fn log_read(channel: &str, chat: &str, messages: usize, what: &'static str) {
    if messages > 0 {
        info!(channel.id = %channel, chat.id = %chat, messages, "{what}");
    } else {
        debug!(channel.id = %channel, chat.id = %chat, messages, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_read_from_where_it_was_known_and_never_from_the_future() {
        const NOW_MS: i64 = 10_000_000;
        const FUTURE_MS: i64 = NOW_MS + 7_200_000;
        let table = [
            // The account's hole, the chat's own, read through; then the time from which it is read.
            (Some(500), None, None, Some(500)),
            (Some(500), None, Some(700), Some(700)),
            (Some(500), Some(300), Some(700), Some(300)),
            (Some(500), None, Some(FUTURE_MS), Some(500)),
            (Some(500), Some(FUTURE_MS), Some(FUTURE_MS), Some(500)),
            (None, None, Some(700), None),
        ];
        for (hole_ms, own_ms, read_ms, expected) in table {
            let reach = AccountReach {
                unread_from_ms: hole_ms,
                epoch: 1,
            };
            let chat = ChatReach {
                chat: "C1".to_owned(),
                kind: None,
                is_heard: true,
                read_through_ms: read_ms,
                unread_from_ms: own_ms,
                backfill_until_ms: None,
            };
            assert_eq!(missed_from_ms(reach, &chat, NOW_MS), expected);
        }
    }
}
