//! Presses of buttons, and forms that a press opened. A press on an approval's card is judged in the transaction that
//! captures it, by the lists and the directory as they are now; any other press is stored, and its person gets an
//! empty answer.

use std::sync::Arc;

use vocative_contract::card::CardMisfit;
use vocative_contract::channel::Accepted;
use vocative_contract::crash;
use vocative_contract::envelope::Place;
use vocative_contract::handles::Renderer;
use vocative_contract::interaction::{Control, Interaction};
use vocative_contract::markup::neutral_text;
use vocative_contract::outbound::Part;

use crate::capture::changes::ChangeWish;
use crate::capture::forms::{FormDesk, how_without_form};
use crate::capture::gate::Haste;
use crate::capture::inbound::{ChannelIntake, cut_text};
use vocative_core::addressing::{Access, ChangedCall, WaitingCall};
use vocative_core::approving::{
    ApprovalButton, ApprovalState, CardFacts, CardOutcome, DecidedBy, DecidedVia, Decider,
    NoDecision, PressFacts, PressVerdict, StoredApproval, outcome_card, press, told_text,
};
use vocative_core::judging::access::access;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_core::questioning::{
    AnswerFacts, AnswerVerdict, QuestionButton, QuestionCard, answer, answered_card,
    fitted_question, not_counted_text,
};
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::{
    ApprovalFacts, NewPress, NonMessage, OptionAnswer, OptionFacts, PressAnswer, PressedButton,
    PressedCard, PressedOption, SentForm,
};

impl ChannelIntake {
    pub(super) async fn take_interaction(
        &self,
        interaction: Interaction,
        now_ms: i64,
        policy: &Arc<ChannelPolicy>,
    ) -> Result<Accepted, StoreError> {
        let max_bytes = policy.limits.inbound_text_max_bytes;
        let event = NonMessage {
            account: policy.account,
            id: interaction.id.clone(),
            kind: "interaction",
            sender_id: interaction.sender.id.clone(),
            chat: interaction.place.as_ref().map(|place| place.chat.clone()),
            text: cut_text(&neutral_text(&interaction.data), max_bytes),
            received_at_ms: now_ms,
        };
        let (Some(place), Some(message), Some(target)) = (
            interaction.place.as_ref(),
            interaction.message.as_ref(),
            interaction.answer_target(),
        ) else {
            let (place, sender) = (interaction.place.as_ref(), &interaction.sender);
            let kept = self.keep_non_message(event, place, sender, policy);
            return kept.await.map(|()| Accepted::default());
        };
        let mut sender = interaction.sender.clone();
        let (belonging, is_member, name) = tokio::join!(
            self.gate.belonging(place, &sender, Haste::Live),
            self.is_in_room(&interaction, place),
            self.name_of(&interaction),
        );
        let is_served = access(place, place.kind, &sender, belonging, policy) == Access::Served;
        sender.display_name = name.or(sender.display_name);
        let judging = Judging {
            can_count: interaction.refusal().is_none(),
            is_served,
            is_member,
            presser: sender.id.clone(),
            presser_name: sender
                .display_name
                .clone()
                .or_else(|| sender.username.clone()),
            policy: Arc::clone(policy),
            renderer: self.cards.clone(),
            forms: self.forms.clone(),
            now_ms,
        };
        let pressed = match interaction.control {
            Control::Form => judging.sent_form(&interaction),
            Control::Button | Control::Other => judging.pressed(&interaction.data),
        };
        let new = NewPress {
            event,
            is_kept: is_served,
            pressed,
            message_id: message.id.clone(),
            sender,
            place: target.clone(),
        };
        crash::point("press.before-commit");
        let pressed = self.store().capture_press(new).await?;
        crash::point("press.after-commit");
        if pressed.is_decided {
            self.wake.runs.notify_one();
        }
        self.wake.posts.notify_one();
        if pressed.opens_form {
            let language = policy.manners.language;
            self.open_form(&interaction, &message.id, target, language)
                .await;
        }
        Ok(Accepted {
            form_problem: pressed.form_problem,
        })
    }
}

impl ChannelIntake {
    /// Whether the person who pressed is in the chat, if the card to which the press may belong asks for members.
    async fn is_in_room(&self, interaction: &Interaction, place: &Place) -> bool {
        let Some(button) = ApprovalButton::read(&interaction.data) else {
            return false;
        };
        if interaction.refusal().is_some() {
            return false;
        }
        match self.store().approval(button.approval).await {
            Ok(approval) if approval.approvers.ask_for_members() => {
                self.gate.is_member(place, &interaction.sender.id).await
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// The display name of the person who pressed a button of ours, if the press does not give it: Slack's presses
    /// give only the account's name, which then stands for both.
    async fn name_of(&self, interaction: &Interaction) -> Option<String> {
        let is_ours = ApprovalButton::read(&interaction.data).is_some()
            || QuestionButton::read(&interaction.data).is_some();
        let sender = &interaction.sender;
        let is_told = sender.display_name.is_some() && sender.display_name != sender.username;
        if !is_ours || is_told || interaction.refusal().is_some() {
            return None;
        }
        self.gate.shown_name(&sender.id).await
    }
}

/// The facts by which a press is judged.
struct Judging {
    /// Whether a person pressed it in a message that may be ours.
    can_count: bool,
    is_served: bool,
    is_member: bool,
    presser: String,
    presser_name: Option<String>,
    policy: Arc<ChannelPolicy>,
    renderer: Option<Arc<dyn Renderer>>,
    forms: Option<Arc<FormDesk>>,
    now_ms: i64,
}

impl Judging {
    /// A form of ours that was sent.
    fn sent_form(self, interaction: &Interaction) -> Option<PressedButton> {
        let button = ApprovalButton::read(&interaction.data)?;
        let (of, written) = (button.clone(), interaction.written.clone()?);
        let not_valid = self.language().form_not_valid();
        let judge = Box::new(move |facts| self.judge_form(&of, facts, written));
        Some(PressedButton::Form(SentForm {
            button,
            judge,
            not_valid,
        }))
    }

    fn language(&self) -> Language {
        self.policy.manners.language
    }

    /// How a sent form changes a call; `Err`: what is wrong with it, worded for its sender.
    fn judge_form(
        self,
        button: &ApprovalButton,
        facts: ApprovalFacts,
        written: String,
    ) -> Result<ChangedCall, String> {
        let (approval, language) = (&facts.approval, self.language());
        if !self.can_count || !self.is_served {
            return Err(language.press_not_counted());
        }
        let told = |told| told_text(told, &approval.approvers, &approval.decided, language);
        if !facts.is_in_card || !button.is_for(&approval.digest) {
            return Err(told(NoDecision::NotThisCard));
        }
        let parameters = facts.parameters.clone();
        let parameters = parameters.ok_or_else(|| told(NoDecision::Unchangeable))?;
        let wish = ChangeWish {
            text: written,
            sender: self.presser,
            sender_name: self.presser_name,
            is_member: self.is_member,
            policy: self.policy,
            renderer: self.renderer,
            now_ms: self.now_ms,
        };
        wish.changed(&WaitingCall {
            is_requester: facts.is_requester,
            sender_name: facts.presser_name.clone(),
            approval: facts.approval,
            parameters,
        })
    }

    /// The button of ours that a press may be of, by its data.
    fn pressed(self, data: &str) -> Option<PressedButton> {
        if let Some(button) = ApprovalButton::read(data) {
            let of = button.clone();
            let judge = Box::new(move |facts| self.judge(&of, &facts));
            return Some(PressedButton::Card(PressedCard { button, judge }));
        }
        let button = QuestionButton::read(data)?;
        let judge = Box::new(move |facts| self.judge_option(button, &facts));
        Some(PressedButton::Question(PressedOption { button, judge }))
    }

    fn judge_option(self, button: QuestionButton, facts: &OptionFacts) -> OptionAnswer {
        let (question, language) = (&facts.question, self.language());
        let verdict = answer(&AnswerFacts {
            state: question.state,
            expiry: question.expiry,
            is_post_known: facts.is_post_known,
            is_at_post: facts.is_at_post,
            is_asked: facts.is_asked && self.is_served && self.can_count,
            now_ms: self.now_ms,
        });
        let asked = question.asked_names(language);
        let told = match verdict {
            AnswerVerdict::Counts => String::new(),
            AnswerVerdict::Not(_) if !self.can_count => language.press_not_counted(),
            AnswerVerdict::Not(not) => not_counted_text(not, &asked, language),
        };
        let by = facts.presser_name.clone().or(self.presser_name);
        let by = by.unwrap_or(self.presser);
        let card = QuestionCard {
            id: question.id,
            text: &question.text,
            options: &question.options,
            asked: &asked,
            expires_at_ms: question.expiry.expires_at_ms.unwrap_or_default(),
            language,
        };
        let option = question.options.get(button.option).map(String::as_str);
        let card = answered_card(&card, Some(&by), option);
        let outcome = fitted_question(&card, &|card| match &self.renderer {
            Some(renderer) => renderer.render_card(card),
            None => Err(CardMisfit::NoButtons),
        });
        OptionAnswer {
            verdict,
            outcome: (verdict == AnswerVerdict::Counts).then_some(outcome),
            told: Part::plain(told),
        }
    }

    fn judge(self, button: &ApprovalButton, facts: &ApprovalFacts) -> PressAnswer {
        let (approval, language) = (&facts.approval, self.language());
        let names = [&facts.presser_name, &self.presser_name];
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let mut changers = approval.changed_by.iter();
        let verdict = press(&PressFacts {
            state: approval.state,
            expiry: approval.expiry,
            choice: button.choice,
            is_card_known: facts.is_card_known,
            is_in_card: facts.is_in_card,
            is_same_call: button.is_for(&approval.digest),
            is_whole: approval.is_whole,
            is_changer: changers.any(|changer| changer.may_be(&self.presser, &names)),
            changes: (facts.parameters.as_ref()).map(|_| approval.changed_by.len()),
            has_one_requester: approval.requesters.len() == 1,
            approvers: &approval.approvers,
            decider: Decider {
                channel: self.policy.channel.as_str(),
                id: &self.presser,
                is_requester: facts.is_requester,
                is_admin: self.policy.admins.contains(&self.presser),
                is_served: self.is_served && self.can_count,
                is_member: self.is_member,
            },
            now_ms: self.now_ms,
        });
        let how = how_without_form(self.forms.as_deref(), approval, language);
        let state = match verdict {
            PressVerdict::Approve { .. } => Some(ApprovalState::Approved),
            PressVerdict::Deny => Some(ApprovalState::Denied),
            PressVerdict::ShowAll | PressVerdict::Change | PressVerdict::Tell(_) => None,
        };
        let by = DecidedBy {
            name: Some(
                facts
                    .presser_name
                    .clone()
                    .or(self.presser_name)
                    .unwrap_or(self.presser),
            ),
            at_ms: self.now_ms,
            note: None,
        };
        PressAnswer {
            verdict,
            outcome: state.map(|state| {
                let card = (self.renderer.as_deref(), language);
                outcome_part(card, approval, state, DecidedVia::Card, &by)
            }),
            answer: Part::plain(match verdict {
                PressVerdict::Approve { .. } | PressVerdict::Deny => String::new(),
                PressVerdict::ShowAll => language.how_to_see_all(approval.id),
                PressVerdict::Change => how.unwrap_or_default(),
                PressVerdict::Tell(_) if !self.can_count => language.press_not_counted(),
                PressVerdict::Tell(told) => {
                    told_text(told, &approval.approvers, &approval.decided, language)
                }
            }),
        }
    }
}

/// The text that replaces an approval's card once it is decided, in the language of its room.
#[must_use]
pub fn outcome_part(
    (renderer, language): (Option<&dyn Renderer>, Language),
    approval: &StoredApproval,
    state: ApprovalState,
    via: DecidedVia,
    by: &DecidedBy,
) -> Part {
    let asked_by = approval.asked_by();
    let facts = CardFacts::of(approval, &asked_by, language);
    let outcome = CardOutcome {
        state,
        via: Some(via),
        by,
    };
    let plain = || {
        Part::plain(format!(
            "{}: {}",
            state.label(language).to_lowercase(),
            approval.tool
        ))
    };
    renderer.map_or_else(plain, |renderer| {
        let part = outcome_card(&facts, &outcome, &|card| renderer.render_card(card));
        part.unwrap_or_else(|_| plain())
    })
}
