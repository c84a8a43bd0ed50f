//! Where answers go: each kind of place on both platforms.

use vocative_sandbox::model::ModelReply;

use crate::harness::Flow;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_in_a_slack_channel_is_answered_in_its_thread() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    let answer = flow.slack_reply("#general", &question).await;
    assert_eq!(answer.text, "At three.");
    flow.settle().await;
    assert_eq!(
        flow.slack_posts("#general"),
        [(Some(question), "At three.".to_owned())]
    );
    assert_eq!(
        flow.model_history(0),
        [("user".to_owned(), "Ann: @Vocative when is it?".to_owned())]
    );
}
