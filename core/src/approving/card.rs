//! What people see of a call that waits, and of what became of it.

use serde_json::Value;
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardMisfit, CardText};
use vocative_contract::outbound::Part;

use crate::approving::{
    ApprovalButton, ApprovalState, Approvers, CardButtons, Choice, DecidedBy, FittedCard,
    StoredApproval, Taint, Via, decided_line, fitted_card, read_words, shown_arguments, utc,
    visible_line,
};
use crate::ids::ApprovalId;
use crate::tool_call::CallDigest;

/// A call that people are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFacts<'a> {
    /// Which approval.
    pub approval: ApprovalId,
    /// The tool.
    pub tool: &'a str,
    /// Where its calls go; empty = it needs no saying.
    pub target: &'a str,
    /// The arguments, byte for byte as they are made.
    pub arguments: &'a str,
    /// Who asked.
    pub asked_by: &'a str,
    /// Who changed the arguments before; empty = nobody did.
    pub changed_by: &'a str,
    /// Who may decide.
    pub approvers: &'a Approvers,
    /// When it expires, in milliseconds since the Unix epoch; `None` = never.
    pub expires_at_ms: Option<i64>,
    /// What its run had read that its askers did not write.
    pub read: &'a [Taint],
}

impl<'a> CardFacts<'a> {
    /// Those of a stored approval, whose askers are named so.
    #[must_use]
    pub fn of(approval: &'a StoredApproval, asked_by: &'a str) -> Self {
        Self {
            approval: approval.id,
            tool: &approval.tool,
            target: &approval.target,
            arguments: &approval.arguments,
            asked_by,
            changed_by: "",
            approvers: &approval.approvers,
            expires_at_ms: approval.expiry.expires_at_ms,
            read: &approval.read,
        }
    }

    fn texts<'o>(&self, order: impl IntoIterator<Item = &'o str>) -> Vec<CardText> {
        let arguments = serde_json::from_str(self.arguments);
        let arguments = arguments.unwrap_or_else(|_| Value::String(self.arguments.to_owned()));
        shown_arguments(&arguments, order)
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardOutcome<'a> {
    /// How its approval stands.
    pub state: ApprovalState,
    /// How it was decided.
    pub via: Option<Via>,
    /// Who decided.
    pub by: &'a DecidedBy,
}

/// The card of a call that waits: with all that it will do, or without a button that allows it. Arguments stand in
/// that order.
///
/// # Errors
/// The [`CardMisfit`] of a card without any arguments.
pub fn waiting_card<'o>(
    facts: &CardFacts<'_>,
    order: impl IntoIterator<Item = &'o str>,
    digest: &CallDigest,
    offers_grant: bool,
    render: &dyn Fn(&Card) -> Result<Part, CardMisfit>,
) -> Result<FittedCard, CardMisfit> {
    let button = |choice, label: &str, style| CardButton {
        data: ApprovalButton::new(facts.approval, choice, digest).data(),
        label: label.to_owned(),
        style,
    };
    let approve = button(Choice::Approve, "Approve", ButtonStyle::Positive);
    let grant = button(Choice::Grant, "Allow here for 24 h", ButtonStyle::Plain);
    let deny = button(Choice::Deny, "Deny", ButtonStyle::Negative);
    let change = button(Choice::Change, "Change", ButtonStyle::Plain);
    let show_all = button(Choice::ShowAll, "How to see all", ButtonStyle::Plain);
    let grant = offers_grant.then_some(grant);
    let buttons = CardButtons {
        whole: [approve]
            .into_iter()
            .chain(grant)
            .chain([deny.clone(), change])
            .collect(),
        cut: vec![show_all, deny],
    };
    let target = (!facts.target.is_empty()).then(|| fact("Goes to", facts.target));
    let until = facts
        .expires_at_ms
        .map(|expires_at_ms| fact("Until", &utc(expires_at_ms)));
    let read = (!facts.read.is_empty()).then(|| fact("After reading", &read_words(facts.read)));
    let changed = (!facts.changed_by.is_empty()).then(|| fact("Changed by", facts.changed_by));
    let about = [fact("Asked by", facts.asked_by)]
        .into_iter()
        .chain(changed)
        .chain(target)
        .chain(read);
    let decides = fact("Can be decided by", &facts.approvers.words());
    let card = Card {
        heading: format!("May I do this? {}", visible_line(facts.tool)),
        facts: about.chain([decides]).chain(until).collect(),
        ..Card::default()
    };
    fitted_card(&card, &facts.texts(order), &buttons, render)
}

/// What takes the card's place once it is known what became of the call: with its arguments if somebody decided and
/// they fit.
///
/// # Errors
/// The [`CardMisfit`] of a card without any arguments.
pub fn outcome_card(
    facts: &CardFacts<'_>,
    outcome: &CardOutcome<'_>,
    render: &dyn Fn(&Card) -> Result<Part, CardMisfit>,
) -> Result<Part, CardMisfit> {
    let by = outcome.by;
    let label = match outcome.state {
        ApprovalState::Open => "Waits",
        ApprovalState::Approved => "Approved",
        ApprovalState::Denied => "Denied",
        ApprovalState::Expired => "Expired",
        ApprovalState::Cancelled => "Cancelled",
        ApprovalState::Changed => "Changed",
    };
    let by_whom = decided_line(outcome.state, outcome.via, by);
    let note = by.note.as_ref().map(|note| fact("Note", note));
    let now = (outcome.state == ApprovalState::Changed).then(|| fact("Now", "see the card below"));
    let said = [fact(label, &by_whom)].into_iter().chain(now).chain(note);
    let short = Card {
        heading: format!("{label}: {}", visible_line(facts.tool)),
        facts: said.chain([fact("Asked by", facts.asked_by)]).collect(),
        ..Card::default()
    };
    if by.name.is_none() {
        return render(&short);
    }
    let whole = Card {
        texts: facts.texts([]),
        ..short.clone()
    };
    render(&whole).or_else(|_| render(&short))
}

fn fact(label: &str, value: &str) -> CardFact {
    CardFact {
        label: label.to_owned(),
        value: visible_line(value),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::approving::OutsideSource;

    fn lines(card: &Card) -> String {
        let facts = card
            .facts
            .iter()
            .map(|fact| format!("{}: {}", fact.label, fact.value));
        let texts = card
            .texts
            .iter()
            .map(|text| format!("{} = {}", text.title, text.text));
        let buttons = card
            .buttons
            .iter()
            .map(|button| format!("[{}]", button.label));
        let lines = [card.heading.clone()].into_iter().chain(facts);
        let lines: Vec<String> = lines.chain(texts).chain(buttons).collect();
        lines.join("\n")
    }

    fn shown(card: &Card, max_chars: usize) -> Result<Part, CardMisfit> {
        let text = lines(card);
        match text.chars().count() > max_chars {
            true => Err(CardMisfit::TooLong),
            false => Ok(Part::plain(text)),
        }
    }

    fn facts<'a>(arguments: &'a str, approvers: &'a Approvers) -> CardFacts<'a> {
        CardFacts {
            approval: "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap(),
            tool: "refund",
            target: "POST https://shop.example/refunds",
            arguments,
            asked_by: "Ann\u{202e}",
            changed_by: "",
            approvers,
            expires_at_ms: Some(1_700_000_000_000),
            read: &[],
        }
    }

    #[test]
    fn a_card_shows_all_or_can_not_be_approved() {
        let approvers = Approvers::from_text("requester").unwrap();
        let facts = facts(r#"{"order":"A7","amount":120}"#, &approvers);
        let long = format!(r#"{{"order":"{}"}}"#, "A".repeat(5_000));
        let show = |arguments, max_chars| {
            let facts = CardFacts { arguments, ..facts };
            waiting_card(&facts, ["amount"], &[7; 32], true, &|card| {
                shown(card, max_chars)
            })
            .unwrap()
        };
        let whole = show(facts.arguments, 4_000);
        insta::assert_snapshot!(whole.part.text, @r#"
        May I do this? refund
        Asked by: Ann\u{202E}
        Goes to: POST https://shop.example/refunds
        Can be decided by: the person who asked
        Until: 2023-11-14 22:13 UTC
        amount = 120
        order = "A7"
        [Approve]
        [Allow here for 24 h]
        [Deny]
        [Change]
        "#);
        assert!(whole.is_whole);
        let read = [Taint::of_prompt(OutsideSource::File)];
        let facts = CardFacts {
            read: &read,
            ..facts
        };
        let after = waiting_card(&facts, [], &[7; 32], false, &|card| shown(card, 4_000)).unwrap();
        let line = "\nAfter reading: a file or picture\n";
        assert!(after.part.text.contains(line), "{}", after.part.text);
        let cut = show(&long, 4_000);
        assert!(!cut.is_whole);
        assert!(!cut.part.text.contains("[Approve]"), "{}", cut.part.text);
        assert!(cut.part.text.contains("[Deny]"), "{}", cut.part.text);
    }

    #[test]
    fn an_outcome_says_who_and_when() {
        let approvers = Approvers::from_text("requester").unwrap();
        let facts = facts(r#"{"amount":120}"#, &approvers);
        let ann = DecidedBy {
            name: Some("Ann".to_owned()),
            at_ms: 1_700_000_000_000,
            note: Some("fine".to_owned()),
        };
        let nobody = DecidedBy::default();
        let show = |state, via, by| {
            let outcome = CardOutcome { state, via, by };
            let part = outcome_card(&facts, &outcome, &|card| shown(card, 4_000));
            part.unwrap().text
        };
        insta::assert_snapshot!(show(ApprovalState::Approved, Some(Via::Card), &ann), @r"
        Approved: refund
        Approved: by Ann, 2023-11-14 22:13 UTC
        Note: fine
        Asked by: Ann\u{202E}
        amount = 120
        ");
        insta::assert_snapshot!(show(ApprovalState::Denied, Some(Via::Cli), &ann), @r"
        Denied: refund
        Denied: by Ann, who runs me, 2023-11-14 22:13 UTC
        Note: fine
        Asked by: Ann\u{202E}
        amount = 120
        ");
        // Of what nobody decided the arguments are not said once more.
        insta::assert_snapshot!(show(ApprovalState::Expired, None, &nobody), @r"
        Expired: refund
        Expired: nobody decided in time
        Asked by: Ann\u{202E}
        ");
        insta::assert_snapshot!(show(ApprovalState::Cancelled, None, &nobody), @r"
        Cancelled: refund
        Cancelled: its question is not answered any more
        Asked by: Ann\u{202E}
        ");
    }
}
