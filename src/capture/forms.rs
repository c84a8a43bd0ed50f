//! Forms in which a person changes the arguments of a waiting call. A form is opened in parallel with the
//! acknowledgement of the press that asked for it: nothing waits for the form or depends on it, and a person who sees
//! none presses again. The sent form is judged in `presses`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use vocative_contract::form::Form;
use vocative_contract::handles::Forms;
use vocative_contract::interaction::Interaction;
use vocative_contract::outbound::Target;

use crate::capture::inbound::ChannelIntake;
use vocative_core::approving::{ApprovalButton, StoredApproval, arguments_to_change, visible_line};
use vocative_core::words::Language;

/// The most forms of a channel that are being opened at once; further ones are not opened.
const AT_ONCE_MAX: usize = 16;
/// How long opening one may take. *Source:* Slack takes a `trigger_id` for 3 s.
const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// Opens a channel's forms.
pub(super) struct FormDesk {
    forms: Arc<dyn Forms>,
    seats: Arc<Semaphore>,
}

impl FormDesk {
    pub(super) fn new(forms: Arc<dyn Forms>) -> Self {
        Self {
            forms,
            seats: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        }
    }

    /// Opens a form for the person who pressed, without waiting for it.
    fn open(&self, press: String, form: Form) {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            return tracing::warn!("a form was not opened: too many are being opened");
        };
        let forms = Arc::clone(&self.forms);
        tokio::spawn(async move {
            match tokio::time::timeout(OPEN_LIMIT, forms.open(&press, &form)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(reason = error.reason(), "a form was not opened");
                }
                Err(_) => tracing::warn!("a form was not opened in time"),
            }
            drop(seat);
        });
    }
}

/// The text that tells the person who pressed how to change a call without a form; `None` = a form is opened.
pub(super) fn how_without_form(
    desk: Option<&FormDesk>,
    approval: &StoredApproval,
    language: Language,
) -> Option<String> {
    match desk {
        None => Some(language.how_to_change()),
        Some(desk) if desk.forms.fits(&arguments_to_change(&approval.arguments)) => None,
        Some(_) => Some(language.too_long_to_change(approval.id)),
    }
}

impl ChannelIntake {
    /// Opens a form for other arguments, if the channel has forms and the arguments fit into one.
    pub(super) async fn open_form(
        &self,
        interaction: &Interaction,
        message_id: &str,
        place: Target,
        language: Language,
    ) {
        let button = ApprovalButton::read(&interaction.data);
        let (Some(desk), Some(button)) = (&self.forms, button) else {
            return;
        };
        let approval = match self.store().approval(button.approval).await {
            Ok(approval) => approval,
            Err(cause) => {
                return tracing::warn!(error = %cause, approval.id = %button.approval, "no form for a call: it could not be read");
            }
        };
        let text = arguments_to_change(&approval.arguments);
        if !desk.forms.fits(&text) {
            return;
        }
        let form = Form {
            title: language.form_title(),
            label: language.form_label(visible_line(&approval.tool)),
            hint: language.form_hint(),
            text,
            send: language.button_change(),
            data: interaction.data.clone(),
            message_id: message_id.to_owned(),
            place,
        };
        desk.open(interaction.id.clone(), form);
    }
}
