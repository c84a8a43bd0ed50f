use super::*;

#[tokio::test]
async fn each_addressed_agent_gets_one_run_in_the_turns_conversation() {
    let fixture = Fixture::new().await;
    let captured = turn_of(fixture.hear_for(&["b", "a"], said("1", "you two")).await);
    assert_eq!(captured.new_runs.len(), 2);
    let runs: Vec<String> = fixture
        .column(
            "SELECT format('%s %s %s %s', r.agent, r.state, g.revision, p.platform_id)
             FROM runs r JOIN run_triggers g ON g.run_id = r.id AND g.turn_seq = 1
             JOIN participants p ON p.id = r.person_participant_id
             WHERE r.conversation_id = 1 AND r.chat_id = 1 ORDER BY r.id",
        )
        .await;
    assert_eq!(runs, ["b queued 1 U1", "a queued 1 U1"]);
}
