//! What shows in the room: signs that somebody works, and posts that wait, at a stop too.

use super::*;

#[tokio::test]
async fn a_stop_waits_for_posts_that_are_due_soon() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let agents = stage.agents(|| Box::pin(async { Ok(says("one\ntwo")) }));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();

    stage
        .platform
        .answers
        .lock()
        .unwrap()
        .push_back(ChannelError::RetryAfter {
            operation: "post",
            wait_ms: 100,
        });
    let start_ms = (stage.clock)();
    let started = std::time::Instant::now();
    let clock: Clock =
        Arc::new(move || start_ms + i64::try_from(started.elapsed().as_millis()).unwrap());
    let delivery = stage.delivery(&clock);
    let draining = delivery.run(stage.stop.clone(), stage.drain_until.clone());
    tokio::time::timeout(WAIT, draining).await.expect("drained");
    assert_eq!(*stage.platform.posted.borrow(), ["one", "two"]);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_posts_that_are_due_late() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let agents = stage.agents(|| Box::pin(async { Ok(says("one")) }));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    stage
        .platform
        .answers
        .lock()
        .unwrap()
        .push_back(ChannelError::RetryAfter {
            operation: "post",
            wait_ms: 240_000,
        });
    let delivery = stage.delivery(&stage.clock);
    let draining = delivery.run(stage.stop.clone(), stage.drain_until.clone());
    tokio::time::timeout(WAIT, draining).await.expect("drained");
    assert_eq!(
        stage
            .store
            .status((stage.clock)())
            .await
            .unwrap()
            .posts_pending,
        1
    );
}

#[tokio::test]
async fn people_are_shown_again_and_again_that_a_run_works() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let signs = stage.platform.signs.subscribe();
    let agents = stage.agents(move || {
        let mut signs = signs.clone();
        Box::pin(async move {
            signs.wait_for(|signs| *signs >= 2).await.unwrap();
            Ok(says("done"))
        })
    });
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    assert_eq!(*stage.platform.signs.borrow(), 2);
}

#[tokio::test]
async fn a_post_that_must_wait_for_the_platforms_rate_waits_on_disk_and_holds_up_no_other_room() {
    let stage = Stage::new().await;
    let wait = Duration::from_secs(30);
    let waits = || stage.platform.waits.lock().unwrap();
    waits().insert("7".to_owned(), wait);
    let agents = stage.agents(|| Box::pin(async { Ok(says("here")) }));
    stage.ask_in("7", "busy?").await;
    stage.until_posts_wait().await;
    stage.ask_in("8", "quiet?").await;
    let (stop, drain_until) = (CancellationToken::new(), CancellationToken::new());
    let delivery = tokio::spawn(
        stage
            .delivery(&stage.clock)
            .run(stop.clone(), drain_until.clone()),
    );
    let posted = stage.platform.posted.subscribe();
    let until = |count: usize| {
        let mut posted = posted.clone();
        async move {
            let enough = posted.wait_for(|posted| posted.len() >= count);
            tokio::time::timeout(WAIT, enough).await.unwrap().unwrap();
        }
    };
    until(1).await;
    let put_off = async {
        let due_ms = (stage.clock)() + 30_000;
        while stage.store.next_post_due_ms().await.unwrap() != Some(due_ms) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, put_off).await.unwrap();
    assert_eq!(posted.borrow().len(), 1);
    waits().clear();
    stage.advance(30_000);
    stage.wake.posts.notify_one();
    until(2).await;
    for token in [&stage.stop, &stop] {
        token.cancel();
    }
    agents.await.unwrap();
    delivery.await.unwrap();
}

#[tokio::test]
async fn fifty_posts_that_wait_in_one_room_hold_up_no_other_and_go_in_order() {
    const LINES: usize = 17;
    const OTHERS: usize = 20;
    let stage = Stage::new().await;
    let busy = |n: usize| format!("busy {n}");
    let answers = AtomicUsize::new(0);
    let agents = stage.agents(move || {
        let n = answers.fetch_add(1, Ordering::Relaxed);
        let lines: Vec<String> = (n * LINES..(n + 1) * LINES).map(busy).collect();
        let text = if n < 3 {
            lines.join("\n")
        } else {
            "here".to_owned()
        };
        Box::pin(async move { Ok(says(&text)) })
    });
    let wanted = async |count: usize| {
        let waiting = async {
            let pending = async || stage.store.status(0).await.unwrap().posts_pending;
            while pending().await != count as u64 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT, waiting).await.unwrap();
    };
    for n in 1..=3 {
        stage.ask_in("7", &format!("question {n}")).await;
        wanted(n * LINES).await;
    }
    for n in 0..OTHERS {
        stage.ask_in(&(100 + n).to_string(), "and here?").await;
    }
    wanted(3 * LINES + OTHERS).await;

    let hour = Duration::from_secs(3_600);
    stage
        .platform
        .waits
        .lock()
        .unwrap()
        .insert("7".to_owned(), hour);
    let (stop, drain_until) = (CancellationToken::new(), CancellationToken::new());
    let delivery = stage.delivery(&stage.clock);
    let delivery = tokio::spawn(delivery.run(stop.clone(), drain_until.clone()));
    let until = async |count: usize| {
        let mut posted = stage.platform.posted.subscribe();
        let enough = posted.wait_for(|posted| posted.len() >= count);
        tokio::time::timeout(WAIT, enough).await.unwrap().unwrap();
    };
    until(OTHERS).await;
    wanted(3 * LINES).await;
    assert!(stage.platform.posted.borrow().iter().all(|it| it == "here"));
    // Once it was put off nobody asks again before its time.
    assert_eq!(stage.platform.asked_in_vain.load(Ordering::Relaxed), 1);

    stage.platform.waits.lock().unwrap().clear();
    stage.advance(3_600_000);
    stage.wake.posts.notify_one();
    until(OTHERS + 3 * LINES).await;
    let posted = stage.platform.posted.borrow()[OTHERS..].to_vec();
    assert_eq!(posted, (0..3 * LINES).map(busy).collect::<Vec<_>>());
    for token in [&stage.stop, &stop] {
        token.cancel();
    }
    agents.await.unwrap();
    delivery.await.unwrap();
}
