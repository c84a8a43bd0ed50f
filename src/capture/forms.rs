//! Forms for other arguments of a call that waits. One is opened beside the acknowledgement of the press that asked for
//! it: nothing waits for it or hangs on it, and who sees none presses once more. What is sent with one is judged in
//! `presses`.

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

/// Forms of a channel that are opened at once; one more is not.
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

    /// Opens a form for who made a press, without waiting for it.
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

/// How a call is changed for which no form is opened, in words for who pressed; `None` = one is.
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
    /// Asks who pressed for other arguments, where the channel has forms and they fit one.
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
