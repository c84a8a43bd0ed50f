//! A call that needs approval: its card is made and committed with the row that says that the call waits.

use vocative_contract::card::Card;
use vocative_contract::handles::Renderer;
use vocative_contract::outbound::Part;

use crate::agent::stepping::Stepping;
use vocative_core::approving::{
    ApprovalState, CardFacts, CardOutcome, DecidedBy, FittedCard, Requester, outcome_card,
    waiting_card,
};
use vocative_core::ids::ApprovalId;
use vocative_core::tool_call::StoredCall;
use vocative_store::contract::{AskOutcome, ConsentSought, NewApproval};
use vocative_store::{NewId as _, StoreError};

impl Stepping<'_> {
    /// Asks people about a call.
    pub(super) async fn ask_people(
        &self,
        call: &StoredCall,
        sought: ConsentSought,
    ) -> Result<AskOutcome, StoreError> {
        let run = self.claimed.run.id;
        let requesters = self.store.run_requesters(run).await?;
        let mut read = self.store.run_taints(run).await?;
        read.retain(|taint| taint.step < call.step);
        let names: Vec<&str> = requesters.iter().map(Requester::name).collect();
        let asked_by = names.join(", ");
        let now_ms = (self.clock)();
        let approval = self.toolbox.approval(&call.tool);
        let approvers = approval.map_or_else(Default::default, |it| it.approvers.clone());
        let after_ms = approval.and_then(|it| it.expires_after_ms);
        let expires_at_ms = after_ms.map(|after_ms| now_ms.saturating_add(after_ms));
        let target = self.toolbox.target(&call.tool);
        let changers = self.store.changers_of_call(call.id).await?;
        let mut changed_by: Vec<&str> = changers.iter().map(|changer| changer.who.name()).collect();
        changed_by.dedup();
        let id = ApprovalId::generate();
        let facts = CardFacts {
            approval: id,
            tool: &call.tool,
            target: &target,
            arguments: &call.arguments,
            asked_by: &asked_by,
            changed_by: &changed_by.join(", "),
            approvers: &approvers,
            expires_at_ms,
            read: &read,
            language: self.asked_in.language,
        };
        let FittedCard { part, is_whole } = self.card(&facts, call, requesters.len() == 1);
        let outcome = |state| outcome_part(self.asked_in.renderer, &facts, state);
        let new = NewApproval {
            id,
            run,
            token: self.claimed.token,
            call: call.id,
            sought,
            is_whole,
            place: self.asked_in.place.clone(),
            card: part,
            expired: outcome(ApprovalState::Expired),
            cancelled: outcome(ApprovalState::Cancelled),
            target: target.clone(),
            parameters: self.toolbox.parameters(&call.tool),
            approvers: approvers.clone(),
            expires_at_ms,
            now_ms,
        };
        self.store.ask_approval(new).await
    }

    /// The card of a call, and whether it shows the call completely.
    fn card(&self, facts: &CardFacts<'_>, call: &StoredCall, offers_grant: bool) -> FittedCard {
        let order = self.toolbox.argument_names(&call.tool);
        let order = order.iter().map(String::as_str);
        let render = |card: &Card| self.asked_in.renderer.render_card(card);
        let card = waiting_card(facts, order, &call.digest, offers_grant, &render);
        card.unwrap_or_else(|_| FittedCard {
            part: Part::plain(
                facts
                    .language
                    .waits_for_approval(&call.tool, facts.approval),
            ),
            is_whole: false,
        })
    }
}

/// The text that replaces a card on which nobody decided.
fn outcome_part(renderer: &dyn Renderer, facts: &CardFacts<'_>, state: ApprovalState) -> Part {
    let outcome = CardOutcome {
        state,
        via: None,
        by: &DecidedBy::default(),
    };
    let part = outcome_card(facts, &outcome, &|card| renderer.render_card(card));
    part.unwrap_or_else(|_| {
        Part::plain(format!(
            "{}: {}",
            state.label(facts.language).to_lowercase(),
            facts.tool
        ))
    })
}
