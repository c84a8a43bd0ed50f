//! What people see of a call that waits, and of what became of it.

use serde_json::Value;
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardMisfit, CardText};
use vocative_contract::outbound::Part;

use crate::approving::{
    ApprovalButton, ApprovalChoice, ApprovalState, Approvers, CardButtons, DecidedBy, DecidedVia,
    FittedCard, StoredApproval, Taint, decided_line, fitted_card, read_words, shown_arguments, utc,
    visible_line,
};
use crate::ids::ApprovalId;
use crate::tool_call::CallDigest;
use crate::words::Language;

/// A call that people are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFacts<'a> {
    /// Which approval.
    pub approval: ApprovalId,
    /// The tool.
    pub tool: &'a str,
    /// Where the tool's calls go; empty = not shown.
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
    /// In which language the card speaks.
    pub language: Language,
}

impl<'a> CardFacts<'a> {
    /// The facts of a stored approval; `asked_by` names those who asked.
    #[must_use]
    pub fn of(approval: &'a StoredApproval, asked_by: &'a str, language: Language) -> Self {
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
            language,
        }
    }

    fn texts<'o>(&self, order: impl IntoIterator<Item = &'o str>) -> Vec<CardText> {
        let arguments = serde_json::from_str(self.arguments);
        let arguments = arguments.unwrap_or_else(|_| Value::String(self.arguments.to_owned()));
        shown_arguments(&arguments, order, self.language)
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardOutcome<'a> {
    /// How its approval stands.
    pub state: ApprovalState,
    /// How it was decided.
    pub via: Option<DecidedVia>,
    /// Who decided.
    pub by: &'a DecidedBy,
}

/// The card of a call that waits: with all that the call will do, or without a button that allows it. `order` names the
/// arguments that come first.
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
    let language = facts.language;
    let button = |choice, label, style| CardButton {
        data: ApprovalButton::new(facts.approval, choice, digest).data(),
        label,
        style,
    };
    let approve = button(
        ApprovalChoice::Approve,
        language.button_approve(),
        ButtonStyle::Positive,
    );
    let grant = button(
        ApprovalChoice::Grant,
        language.button_grant(),
        ButtonStyle::Plain,
    );
    let deny = button(
        ApprovalChoice::Deny,
        language.button_deny(),
        ButtonStyle::Negative,
    );
    let change = button(
        ApprovalChoice::Change,
        language.button_change(),
        ButtonStyle::Plain,
    );
    let show_all = button(
        ApprovalChoice::ShowAll,
        language.button_show_all(),
        ButtonStyle::Plain,
    );
    let grant = offers_grant.then_some(grant);
    let buttons = CardButtons {
        whole: [approve]
            .into_iter()
            .chain(grant)
            .chain([deny.clone(), change])
            .collect(),
        cut: vec![show_all, deny],
    };
    let card = Card {
        heading: language.may_i(visible_line(facts.tool)),
        facts: waiting_facts(facts),
        ..Card::default()
    };
    fitted_card(&card, &facts.texts(order), &buttons, language, render)
}

/// What a waiting card says beside the arguments.
fn waiting_facts(facts: &CardFacts<'_>) -> Vec<CardFact> {
    let language = facts.language;
    let changed =
        (!facts.changed_by.is_empty()).then(|| fact(language.fact_changed_by(), facts.changed_by));
    let target = (!facts.target.is_empty()).then(|| fact(language.fact_goes_to(), facts.target));
    let read = (!facts.read.is_empty()).then(|| {
        let read = read_words(facts.read, language);
        fact(language.fact_after_reading(), &read)
    });
    let deciders = facts.approvers.words(language);
    let until = facts.expires_at_ms;
    let until = until.map(|at_ms| fact(language.fact_until(), &utc(at_ms)));
    [fact(language.fact_asked_by(), facts.asked_by)]
        .into_iter()
        .chain(changed)
        .chain(target)
        .chain(read)
        .chain([fact(language.fact_deciders(), &deciders)])
        .chain(until)
        .collect()
}

/// The card that replaces a waiting card once the outcome of the call is known: with the arguments if a person decided
/// and they fit.
///
/// # Errors
/// The [`CardMisfit`] of a card without any arguments.
pub fn outcome_card(
    facts: &CardFacts<'_>,
    outcome: &CardOutcome<'_>,
    render: &dyn Fn(&Card) -> Result<Part, CardMisfit>,
) -> Result<Part, CardMisfit> {
    let (by, language) = (outcome.by, facts.language);
    let label = outcome.state.label(language);
    let by_whom = decided_line(outcome.state, outcome.via, by, language);
    let note = by.note.as_ref();
    let note = note.map(|note| fact(language.fact_note(), note));
    let now = (outcome.state == ApprovalState::Changed)
        .then(|| fact(language.fact_now(), &language.see_card_below()));
    let said = [fact(label.clone(), &by_whom)];
    let said = said.into_iter().chain(now).chain(note);
    let asked_by = fact(language.fact_asked_by(), facts.asked_by);
    let short = Card {
        heading: format!("{label}: {}", visible_line(facts.tool)),
        facts: said.chain([asked_by]).collect(),
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

fn fact(label: String, value: &str) -> CardFact {
    CardFact {
        label,
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
            language: Language::English,
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
    fn a_card_speaks_the_language_of_its_room() {
        let approvers = Approvers::from_text("requester,admins;four_eyes").unwrap();
        let read = [Taint::of_prompt(OutsideSource::File)];
        let facts = CardFacts {
            language: Language::German,
            read: &read,
            ..facts(r#"{"amount":120}"#, &approvers)
        };
        let show = |max_chars| {
            let render = |card: &Card| shown(card, max_chars);
            waiting_card(&facts, [], &[7; 32], true, &render).unwrap()
        };
        insta::assert_snapshot!(show(4_000).part.text, @r"
        Darf ich das tun? refund
        Gefragt von: Ann\u{202E}
        Geht an: POST https://shop.example/refunds
        Nach dem Lesen von: einer Datei oder einem Bild
        Entscheiden können: wer gefragt hat, meine Administratoren; davon nur: alle hier, nur nicht, wer gefragt hat
        Bis: 2023-11-14 22:13 UTC
        amount = 120
        [Erlauben]
        [Hier 24 h erlauben]
        [Ablehnen]
        [Ändern]
        ");
        let ann = DecidedBy {
            name: Some("Ann".to_owned()),
            at_ms: 1_700_000_000_000,
            note: None,
        };
        let outcome = CardOutcome {
            state: ApprovalState::Changed,
            via: Some(DecidedVia::Card),
            by: &ann,
        };
        let part = outcome_card(&facts, &outcome, &|card| shown(card, 4_000)).unwrap();
        insta::assert_snapshot!(part.text, @r"
        Geändert: refund
        Geändert: von Ann, 2023-11-14 22:13 UTC
        Jetzt: siehe die Karte darunter
        Gefragt von: Ann\u{202E}
        amount = 120
        ");
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
        insta::assert_snapshot!(show(ApprovalState::Approved, Some(DecidedVia::Card), &ann), @r"
        Approved: refund
        Approved: by Ann, 2023-11-14 22:13 UTC
        Note: fine
        Asked by: Ann\u{202E}
        amount = 120
        ");
        insta::assert_snapshot!(show(ApprovalState::Denied, Some(DecidedVia::Cli), &ann), @r"
        Denied: refund
        Denied: by Ann, who runs me, 2023-11-14 22:13 UTC
        Note: fine
        Asked by: Ann\u{202E}
        amount = 120
        ");
        // The arguments of a call that nobody decided about are not repeated.
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
