use super::*;

#[tokio::test]
async fn hearing_a_chat_lifts_its_park_and_counts_its_turns() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    fixture
        .execute("UPDATE chats SET parked_until_ms = 9, parked_reason = 'kicked'")
        .await;
    fixture.hear(said("2", "two")).await;
    let row: String = fixture
        .value(
            "SELECT format('%s %s %s %s %s', c.turn_count, c.last_seq, c.last_activity_ms,
                           h.last_heard_ms, a.last_captured_ms)
             FROM conversations c JOIN chats h ON h.id = c.chat_id
             JOIN accounts a ON a.id = h.account_id
             WHERE h.parked_until_ms IS NULL AND h.parked_reason IS NULL",
        )
        .await;
    let heard_ms = NOW_MS + 500_000;
    assert_eq!(row, format!("2 2 {} {heard_ms} {heard_ms}", NOW_MS + 2_000));
}
