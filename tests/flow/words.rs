//! What the daemon itself says, in the language of the channel.

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::approvals::{made, refund, refunding};
use crate::harness::FlowBuilder;

const GENERAL: &str = "#general";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_hears_its_language_and_another_one_its_own() {
    let builder = FlowBuilder::default().slack("language = \"de\"");
    let (flow, shop) = refunding(builder, "approvers = \"requester\"").await;

    // Commands, what is looked up and what is planned.
    for (typed, expected) in [
        ("help", "Ich verstehe:"),
        ("status", "aufbewahrt"),
        ("approvals", "Hier wartet keine eigene Entscheidung"),
        ("remind", "Hier ist nichts geplant."),
        ("memory", "nichts Persönliches"),
    ] {
        flow.slack
            .slash_command(GENERAL, "U0ANN", "/vocative", typed);
        flow.told_privately("U0ANN", expected).await;
    }

    // A card, a press that does not count, and one that does.
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let card = flow.card(&asked).await;
    let shown = card.blocks.clone().unwrap_or_default().to_string();
    assert!(shown.contains("Darf ich das tun?"), "{shown}");
    flow.press("bob", &card, "Erlauben");
    let told = flow.told_privately("U0BOB", "Entscheidung").await;
    assert!(
        told.ends_with("Entscheiden können: wer gefragt hat."),
        "{told}"
    );
    flow.model.enqueue(ModelReply::text("It is refunded."));
    flow.press("ann", &card, "Erlauben");
    let outcome = flow.outcome(&card, "Erlaubt").await;
    assert!(outcome.contains("von Ann"), "{outcome}");
    flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == "It is refunded."
    })
    .await;
    assert_eq!(made(&shop).len(), 1);

    // How a run ends, and another channel.
    flow.model.enqueue(ModelReply::status(400));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative and now?");
    let end = flow.slack_reply(GENERAL, &asked).await;
    assert!(
        end.text.starts_with("Das ließ sich leider nicht"),
        "{}",
        end.text
    );
    let (group, ann) = (TelegramWorld::GROUP, TelegramWorld::ANN);
    let stop = flow.telegram.say(group, ann, "/stop@vocative_bot");
    let told = flow.telegram_reply(group, stop).await;
    assert!(told.text.starts_with("Stopped."), "{}", told.text);

    // A reload takes another language.
    flow.reconfigure("language = \"de\"", "language = \"en\"");
    flow.reload().await;
    flow.slack
        .slash_command(GENERAL, "U0ANN", "/vocative", "help");
    flow.told_privately("U0ANN", "I understand:").await;
}
