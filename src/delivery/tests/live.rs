#![allow(clippy::unwrap_used)]

use vocative_contract::capability::LengthUnit;
use vocative_core::sending::policy::LivePolicy;

use super::*;

fn capabilities(live_edit_ms: u64, live_preview_ms: u64) -> Capabilities {
    Capabilities {
        text_max: 4_000,
        text_unit: LengthUnit::Chars,
        has_threads: false,
        has_replies: false,
        can_read_back: live_preview_ms == 0,
        can_read_history: false,
        uploads_files: false,
        echoes_posts: false,
        working_sign_ms: 0,
        chat_interval_ms: 0,
        live_edit_ms,
        live_preview_ms,
        live_stream_ms: 0,
    }
}

/// How it shows, in short: `post every 3000`.
fn shown(live: Live, on_unknown: OnUnknown, can: &Capabilities, kind: ChatKind) -> String {
    let policy = LivePolicy {
        live,
        ..LivePolicy::default()
    };
    let place = LivePlace {
        kind: Some(kind),
        is_thread: false,
    };
    match plan(policy, on_unknown, can, place) {
        None => "not".to_owned(),
        Some(plan) => format!("{:?} every {}", plan.way, plan.interval.as_millis()),
    }
}

#[test]
fn how_an_answer_shows_depends_on_the_setting_the_platform_and_the_chat() {
    let (slack, telegram) = (capabilities(3_000, 0), capabilities(6_000, 1_000));
    let mute = capabilities(0, 0);
    let (direct, public) = (ChatKind::Direct, ChatKind::Public);
    let table = [
        (Live::Auto, &slack, direct, "Post every 3000"),
        (Live::Auto, &slack, public, "not"),
        (Live::Auto, &slack, ChatKind::GroupDirect, "not"),
        (Live::On, &slack, public, "Post every 3000"),
        (Live::Edit, &slack, direct, "Post every 3000"),
        (Live::Off, &slack, direct, "not"),
        (Live::Auto, &telegram, direct, "Preview every 1000"),
        (Live::Auto, &telegram, public, "not"),
        (Live::On, &telegram, public, "Post every 6000"),
        (Live::Edit, &telegram, direct, "Post every 6000"),
        (Live::On, &mute, direct, "not"),
    ];
    for (live, can, kind, expected) in table {
        let found = shown(live, OnUnknown::Resend, can, kind);
        assert_eq!(found, expected, "{live:?} {kind:?}");
    }
    // A post that may be there and can't be looked for could not be taken back.
    let held = |live, can, kind| shown(live, OnUnknown::Hold, can, kind);
    assert_eq!(held(Live::On, &telegram, public), "not");
    assert_eq!(held(Live::On, &telegram, direct), "Preview every 1000");
    assert_eq!(held(Live::On, &slack, public), "Post every 3000");
    let unknown = plan(
        LivePolicy {
            live: Live::Auto,
            ..LivePolicy::default()
        },
        OnUnknown::Resend,
        &slack,
        LivePlace {
            kind: None,
            is_thread: true,
        },
    );
    assert_eq!(unknown, None);
}

#[test]
fn only_a_thread_of_a_platform_that_has_streams_is_streamed_to() {
    let slack = Capabilities {
        live_stream_ms: 1_000,
        ..capabilities(3_000, 0)
    };
    let telegram = capabilities(6_000, 1_000);
    let way = |live, can: &Capabilities, kind, is_thread| {
        let policy = LivePolicy {
            live,
            ..LivePolicy::default()
        };
        let place = LivePlace {
            kind: Some(kind),
            is_thread,
        };
        plan(policy, OnUnknown::Hold, can, place).map(|plan| plan.way)
    };
    let (direct, public) = (ChatKind::Direct, ChatKind::Public);
    let table = [
        (Live::Stream, &slack, public, true, Some(LiveWay::Stream)),
        (Live::Stream, &slack, direct, true, Some(LiveWay::Stream)),
        (Live::Stream, &slack, direct, false, Some(LiveWay::Post)),
        (Live::Stream, &slack, public, false, None),
        (Live::On, &slack, public, true, Some(LiveWay::Post)),
        (Live::Auto, &slack, public, true, None),
        (Live::Stream, &telegram, public, true, None),
    ];
    for (live, can, kind, is_thread, expected) in table {
        let found = way(live, can, kind, is_thread);
        assert_eq!(found, expected, "{live:?} {kind:?} {is_thread}");
    }
}

/// Lets a model add a word every `word_ms`, and shows what is due. When states showed, in milliseconds.
fn paced(plan: LivePlan, word_ms: u64, until_ms: u64, refusals: &[(u64, u64)]) -> Vec<u64> {
    let start = Instant::now();
    let mut pacing = Pacing::new(plan);
    let mut refusals = refusals.iter().peekable();
    let mut shown_ms = Vec::new();
    for now_ms in 0..until_ms {
        let now = start + Duration::from_millis(now_ms);
        let state = 1 + now_ms / word_ms;
        if pacing.due(now, Some(state)) != Due::Now {
            continue;
        }
        match refusals.peek() {
            Some((from_ms, wait_ms)) if now_ms >= *from_ms => {
                pacing.note_wait(now, Duration::from_millis(*wait_ms));
                refusals.next();
            }
            _ => {
                pacing.note_shown(now, state);
                shown_ms.push(now_ms);
            }
        }
    }
    shown_ms
}

#[test]
fn states_show_after_a_delay_at_a_pace_and_a_refusal_is_kept_to() {
    let slack = LivePlan {
        way: LiveWay::Post,
        delay: Duration::from_millis(500),
        interval: Duration::from_millis(3_000),
        edit_interval: Duration::from_secs(3),
    };
    // An answer of half a minute at twenty words a second.
    let edits = paced(slack, 50, 30_000, &[]);
    assert_eq!(edits.len(), 10);
    assert_eq!(edits[..3], [500, 3_500, 6_500]);
    // One that is there before the delay is over is one post.
    assert!(paced(slack, 50, 500, &[]).is_empty());
    let refused = paced(slack, 50, 12_000, &[(3_500, 5_000)]);
    assert_eq!(refused, [500, 8_500, 11_500]);
}

#[test]
fn nothing_is_shown_twice_but_a_preview_that_would_go() {
    let plan = |way| LivePlan {
        way,
        delay: Duration::ZERO,
        interval: Duration::from_secs(1),
        edit_interval: Duration::from_secs(3),
    };
    // The model adds something once a minute.
    assert_eq!(paced(plan(LiveWay::Post), 60_000, 59_000, &[]), [0]);
    let previews = paced(plan(LiveWay::Preview), 60_000, 59_000, &[]);
    assert_eq!(previews, [0, 20_000, 40_000]);
}

#[test]
fn what_is_heard_is_bounded_and_a_restart_forgets_it() {
    let (sender, receiver) = watch::channel(TextSoFar::default());
    let ear = LiveEar(sender);
    for _ in 0..100_000 {
        ear.text("ten bytes ");
    }
    let (length, state) = {
        let heard = receiver.borrow();
        (heard.text.len(), heard.state)
    };
    assert!((HEARD_MAX_BYTES - 10..=HEARD_MAX_BYTES).contains(&length));
    ear.restart();
    assert_eq!(receiver.borrow().text, "");
    ear.text("anew");
    assert_eq!(receiver.borrow().text, "anew");
    assert!(receiver.borrow().state > state);
}
