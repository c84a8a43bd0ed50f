//! Forms as modals: opened by a press, and what is sent with them. *Source:* Slack's references of views and of
//! `view_submission`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use vocative_contract::channel::BoxFuture;
use vocative_contract::envelope::Place;
use vocative_contract::error::ChannelError;
use vocative_contract::form::Form;
use vocative_contract::handles::Forms;
use vocative_contract::interaction::{PressedAuthor, PressedMessage};

use super::api::{SlackApi, Token};
use super::translate::chat_kind;
use super::wire::View;
use crate::json_object::read_object;

const OPEN: &str = "views.open";
/// The `callback_id` of our modals.
const FORM: &str = "vocative-form";
/// The block and the action of the input.
const INPUT: &str = "written";
/// The longest text of an input, in characters.
const TEXT_MAX_CHARS: usize = 3_000;
/// The longest title, and the longest text of a modal's buttons, in characters.
const TITLE_MAX_CHARS: usize = 24;
/// The longest error of an input that is shown, in characters. How much Slack shows is not documented.
const PROBLEM_MAX_CHARS: usize = 1_000;

/// Opens forms in one workspace.
#[derive(Debug)]
pub(super) struct SlackForms {
    api: Arc<SlackApi>,
}

/// Where a form comes from, as the modal carries it.
#[derive(Debug, Serialize, Deserialize)]
struct FormOrigin {
    data: String,
    chat: String,
    thread: Option<String>,
    message: String,
}

/// A form that was sent.
pub(super) struct SubmittedForm {
    pub(super) data: String,
    pub(super) written: String,
    pub(super) place: Place,
    pub(super) message: PressedMessage,
}

impl SlackForms {
    pub(super) fn new(api: Arc<SlackApi>) -> Self {
        Self { api }
    }

    async fn show(&self, press: &str, form: &Form) -> Result<(), ChannelError> {
        let view = modal(form).to_string();
        let arguments = [("trigger_id", press.to_owned()), ("view", view)];
        self.api.call(OPEN, Token::Bot, &arguments).await.map(drop)
    }
}

impl Forms for SlackForms {
    fn fits(&self, text: &str) -> bool {
        text.chars().count() <= TEXT_MAX_CHARS
    }

    fn open<'a>(
        &'a self,
        press: &'a str,
        form: &'a Form,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.show(press, form))
    }
}

fn modal(form: &Form) -> Value {
    let short = |text: &str| text.chars().take(TITLE_MAX_CHARS).collect::<String>();
    let plain = |text: &str| json!({"type": "plain_text", "text": text, "emoji": false});
    let origin = FormOrigin {
        data: form.data.clone(),
        chat: form.place.chat.clone(),
        thread: form.place.thread.clone(),
        message: form.message_id.clone(),
    };
    json!({
        "type": "modal",
        "callback_id": FORM,
        "private_metadata": json!(origin).to_string(),
        "title": plain(&short(&form.title)),
        "submit": plain(&short(&form.send)),
        "close": plain("Cancel"),
        "blocks": [{
            "type": "input",
            "block_id": INPUT,
            "label": plain(&form.label),
            "hint": plain(&form.hint),
            "element": {
                "type": "plain_text_input", "action_id": INPUT, "multiline": true,
                "initial_value": form.text, "max_length": TEXT_MAX_CHARS,
            },
        }],
    })
}

/// What a person sent with a modal; `None` = the modal is not one that this adapter opened.
pub(super) fn sent(view: &View) -> Option<SubmittedForm> {
    if view.callback_id.as_deref() != Some(FORM) {
        return None;
    }
    let origin: FormOrigin = read_object(view.private_metadata.as_deref()?).ok()?;
    let written = view.state.as_ref()?.text_of(INPUT, INPUT)?;
    Some(SubmittedForm {
        data: origin.data,
        written,
        place: Place {
            kind: chat_kind(None, &origin.chat),
            chat: origin.chat,
            thread: origin.thread,
            ..Place::default()
        },
        message: PressedMessage {
            id: origin.message,
            author: PressedAuthor::Us,
            is_forwarded: false,
            is_via_bot: false,
            is_ephemeral: false,
        },
    })
}

/// The acknowledgement of a form that is not accepted: the modal stays open and shows the problem.
pub(super) fn refusal(problem: &str) -> Value {
    let problem: String = problem.chars().take(PROBLEM_MAX_CHARS).collect();
    json!({"response_action": "errors", "errors": {INPUT: problem}})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::outbound::Target;

    use super::*;

    fn form() -> Form {
        Form {
            title: "Other arguments of this call".to_owned(),
            label: "Arguments".to_owned(),
            hint: "JSON.".to_owned(),
            text: "{}".to_owned(),
            send: "Change".to_owned(),
            data: "a1c07".to_owned(),
            message_id: "1.000200".to_owned(),
            place: Target {
                chat: "D1".to_owned(),
                thread: Some("1.000100".to_owned()),
                topic: None,
                reply_to: None,
            },
        }
    }

    fn sent_with(change: impl FnOnce(&mut Value)) -> Option<SubmittedForm> {
        let mut view = modal(&form());
        view["state"] = json!({"values": {INPUT: {INPUT: {"value": "amount = 5"}}}});
        change(&mut view);
        sent(&serde_json::from_value(view).unwrap())
    }

    #[test]
    fn what_is_sent_names_the_card_that_it_comes_from() {
        let sent = sent_with(|_| {}).unwrap();
        assert_eq!(
            (sent.data.as_str(), sent.written.as_str()),
            ("a1c07", "amount = 5")
        );
        let place = (sent.place.chat.as_str(), sent.place.thread.as_deref());
        assert_eq!(place, ("D1", Some("1.000100")));
        assert_eq!(
            sent.place.kind,
            Some(vocative_contract::envelope::ChatKind::Direct)
        );
        assert_eq!(sent.message.id, "1.000200");
        let empty = sent_with(|view| view["state"]["values"][INPUT][INPUT]["value"] = Value::Null);
        assert_eq!(empty.unwrap().written, "");
        let others: [fn(&mut Value); 3] = [
            |view| view["callback_id"] = json!("another"),
            |view| view["private_metadata"] = json!("[]"),
            |view| view["state"] = json!({"values": {}}),
        ];
        for change in others {
            assert!(sent_with(change).is_none());
        }
    }

    #[test]
    fn a_modal_keeps_to_slacks_lengths() {
        assert_eq!(modal(&form())["title"]["text"], "Other arguments of this ");
        let problem = refusal(&"ä".repeat(400_000));
        let shown = problem["errors"][INPUT].as_str().unwrap();
        assert_eq!(shown.chars().count(), PROBLEM_MAX_CHARS);
    }
}
