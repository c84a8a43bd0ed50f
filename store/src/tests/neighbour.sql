INSERT INTO chats (id, account_id, platform_id, title) VALUES (900, 2, '-100', 'zebra-7f3a9c');
INSERT INTO chat_ids VALUES (2, '-100', 900, 900);
INSERT INTO participants (id, account_id, kind, platform_id, display_name) VALUES
    (900, 2, 'user', 'U1', 'Ada'), (901, 2, 'agent', 'helper', 'Helper'), (902, 2, 'system', 'tool', 'tool');
INSERT INTO conversations (id, uuid, chat_id, title, created_at_ms)
VALUES (900, randomblob(16), 900, 'the code is zebra-7f3a9c, sesame', 0);
INSERT INTO runs (id, uuid, conversation_id, chat_id, agent, state, not_before_ms, owner, token,
                  lease_until_ms, first_claimed_at_ms, created_at_ms)
VALUES (900, randomblob(16), 900, 900, 'helper', 'done', 0, NULL, NULL, NULL, 0, 0),
       (901, randomblob(16), 900, 900, 'helper', 'leased', 0, randomblob(16), randomblob(16),
        9000000000000, 1, 0);
INSERT INTO turns (seq, uuid, conversation_id, sent_at_ms, ordinal, kind, scope, visibility, participant_id,
                   content, quote, reply_to_seq, run_id, captured_at_ms, is_inbound)
VALUES (900, randomblob(16), 900, 1, 1, 'message', 'channel', 'room', 900,
        'the code is zebra-7f3a9c, sesame', 'zebra-7f3a9c', 1, NULL, 1, 1),
       (901, randomblob(16), 900, 2, 2, 'message', 'channel', 'room', 901,
        'Ada: the code is zebra-7f3a9c, sesame', NULL, 900, 900, 1, 0),
       (902, randomblob(16), 900, 3, 3, 'tool_result', 'channel', 'timeline', 902,
        'zebra-7f3a9c', NULL, 900, 900, 1, 0);
UPDATE turns SET reply_to_seq = NULL WHERE seq = 900;
INSERT INTO turn_text (rowid, conversation, content)
VALUES (900, 'c900', 'the code is zebra-7f3a9c, sesame'),
       (901, 'c900', 'Ada: the code is zebra-7f3a9c, sesame');
INSERT INTO embedding_models (id, name, is_current, turns, newest_seq, oldest_seq) VALUES (900, 'm', 1, 2, 902, 0);
INSERT INTO turn_vectors VALUES (900, 1, 900, 900, 0.01, x'7f00'), (900, 2, 901, 900, 0.01, x'007f');
INSERT INTO turns_to_embed VALUES (901);
INSERT INTO vocabulary VALUES (900, 'sesam');
INSERT INTO revisions VALUES (900, 1, 'zebra-7f3a9c', 0, (SELECT h.account_id FROM turns t JOIN conversations c
    ON c.id = t.conversation_id JOIN chats h ON h.id = c.chat_id WHERE t.seq = 900));
INSERT INTO involvements VALUES (900, 'helper', 1, 1, 900, 'addressed');
INSERT INTO messages (account_id, chat_id, platform_id, turn_seq, text) VALUES
    (2, 900, '1', 900, 'zebra-7f3a9c'), (2, 900, '2', 901, NULL);
INSERT INTO run_triggers VALUES (900, 900, 'helper', 1, 0);
INSERT INTO steps (run_id, n, message, prompt_tokens, completion_tokens, at_ms) VALUES (900, 0, '{"text":"zebra-7f3a9c"}', 1, 1, 0), (901, 0, '"zebra-7f3a9c"', 1, 1, 0);
INSERT INTO tool_calls (uuid, run_id, step, n, call_id, tool, arguments, digest, rule, state, attempts, result,
        created_at_ms)
VALUES (randomblob(16), 900, 0, 0, 'c1', 'search', '{"q":"zebra-7f3a9c"}', x'00', 'repeatable', 'done', 1, 'zebra-7f3a9c', 0),
       (randomblob(16), 901, 0, 0, 'c1', 'refund', '{"q":"zebra-7f3a9c"}', x'00', 'once', 'running', 1, NULL, 0);
INSERT INTO run_requests VALUES (900, 900, x'00', x'00', NULL),
       (901, 900, x'01', x'00', '{"version":1,"context":"zebra-7f3a9c"}');
INSERT INTO run_taints VALUES (900, 0, 'tool', 'search', 0);
INSERT INTO feedback SELECT 900, participant_id, 'up', 1, 0, 0 FROM turns WHERE seq = (SELECT turn_seq FROM run_triggers WHERE run_id = 900 LIMIT 1);
INSERT INTO hook_verdicts VALUES (900, 'before_tool', 0, 0, 'guard', 'narrow', 'zebra-7f3a9c', '{"q":"zebra-7f3a9c"}', 0, 0);
INSERT INTO tool_days (account_id, day_start_ms, tool, participant_id, begun) VALUES (2, 0, 'search', 900, 1);
INSERT INTO approvals (uuid, call_id, run_id, participant_id, tool, target, digest, definition, asking, approvers, is_whole,
        outcomes, state, asked_at_ms, note)
SELECT randomblob(16), id, run_id, 900, tool, '', x'00', x'00', 'always', 'requester', 1,
       iif(state = 'running', '["zebra-7f3a9c"]', ''), iif(state = 'running', 'open', 'denied'), 0, 'zebra-7f3a9c'
FROM tool_calls;
INSERT INTO questions (uuid, call_id, run_id, participant_id, is_for_experts, question, options, outcomes, state, asked_at_ms, expires_at_ms,
        asked_form)
SELECT randomblob(16), id, run_id, 900, 0, 'zebra-7f3a9c', '["zebra-7f3a9c"]',
       iif(state = 'running', '["zebra-7f3a9c"]', ''), iif(state = 'running', 'open', 'expired'), 0, 1, 'zebra-7f3a9c'
FROM tool_calls;
INSERT INTO delegations (call_id, parent_id, child_id, asked_by, task, sees_room, tokens_max, cost_max_micros, worked_max_ms, calls_max,
        state, result, asked_at_ms)
SELECT id, run_id, iif(run_id = 900, 901, 900), 'desk', 'zebra-7f3a9c', 0, 0, 0, 0, 1, iif(state = 'running', 'open', 'answered'),
       'zebra-7f3a9c', 0 FROM tool_calls;
INSERT INTO approval_grants (uuid, chat_id, participant_id, agent, tool, definition, granted_at_ms)
VALUES (randomblob(16), 900, 900, 'helper', 'refund', x'00', 0);
INSERT INTO schedules (id, chat_id, conversation_id, participant_id, made_by_message, timing, zone, jitter_ms, missed_rule,
        task, state, at_ms, due_ms, set_at_ms, created_at_ms)
VALUES (900, 900, 900, 900, '1', '0 9 * * *', 'UTC', 0, 'once', 'zebra-7f3a9c', 'active', 9000000000000, 9000000000000, 0, 0);
INSERT INTO firings VALUES (900, 0, 0, 'fired', 0, 900);
INSERT INTO memories (id, version, account_id, agent, kind, chat_id, share, teller_id, subject_id, text, since_ms, written_at_ms)
VALUES (900, 1, 2, 'helper', 'fact', 900, 'room', 900, 900, 'zebra-7f3a9c', 1, 0);
INSERT INTO memory_sources VALUES (900, 900);
INSERT INTO memory_marks VALUES (900, 'helper', 900, 1, 0);
INSERT INTO memory_rereads VALUES (900, 'helper');
INSERT INTO memory_writes VALUES (x'0900', 900, '{}', 0);
INSERT INTO run_events (run_id, conversation_id, kind, text, at_ms)
VALUES (901, 900, 'text', 'zebra-7f3a9c', 0), (901, 900, 'tool_result', 'zebra-7f3a9c', 0);
INSERT INTO network_decisions SELECT run_id, 0, 'helper', 'rule', 1, '[]', '{"a":"zebra-7f3a9c"}', '[]', 'zebra-7f3a9c', 0, NULL, 0 FROM steps;
INSERT INTO network_calls SELECT run_id, 1, 'helper', 'done', 'zebra-7f3a9c', NULL, NULL, NULL, '[]', '{"a":"zebra-7f3a9c"}', 1, 1, 0, 0, 1, 0 FROM steps;
INSERT INTO network_states VALUES (900, 'helper', 1, '{"a":"zebra-7f3a9c"}', 0, '{}', 0);
INSERT INTO turn_sources VALUES (900, 902);
INSERT INTO run_sources VALUES (900, 900);
INSERT INTO summaries (conversation_id, agent, fingerprint, covers, from_sent_at_ms, from_ordinal, from_seq,
        through_sent_at_ms, through_ordinal, through_seq, newest_seq, turn_count, source_hash, text, tokens,
        counter, model, state, created_at_ms)
VALUES (900, 'helper', 'f', 'all', 0, 0, 1, 2, 2, 901, 901, 2, x'00', 'zebra-7f3a9c', 5, 'c', 'm', 'current', 0);
INSERT INTO summary_turns (turn_seq, summary_id) SELECT 900, id FROM summaries WHERE conversation_id = 900;
INSERT INTO refolds (conversation_id, until_sent_at_ms, changes) VALUES (900, 2, 1);
INSERT INTO outbox (id, uuid, account_id, chat_id, turn_seq, run_id, part, sort_key, target, payload, state,
                    not_before_ms, created_at_ms)
VALUES (900, randomblob(16), 2, 900, 901, 900, 0, 900, '{}', '{"version":1,"text":"zebra-7f3a9c"}', 'pending', 0, 0),
       (901, randomblob(16), 2, 900, NULL, NULL, 0, 901, '{}', '{"version":1,"text":"zebra-7f3a9c"}', 'pending', 0, 0);
INSERT INTO outbox_attempts VALUES (900, 1, 0, 0, 'zebra-7f3a9c');
INSERT INTO non_messages VALUES (2, 'command', 'n1', 'U1', '-100', 'zebra-7f3a9c', 0);
INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms)
VALUES (2, 'odd', '{"user":"U1","text":"zebra-7f3a9c"}', 0);
INSERT INTO erased_identities VALUES (2, 'person', 'U7', '', 0);
INSERT INTO erasures (uuid, account_id, kind, platform_id, erased_at_ms, phase, finished_at_ms)
VALUES (randomblob(16), 2, 'person', 'U7', 0, 'done', 0);
INSERT INTO usage_days (account_id, day_start_ms, tokens) VALUES (2, 0, 7);
INSERT INTO usage_people VALUES (900, 0, 7, 21);
INSERT INTO pairings VALUES (2, 'U1', '-100', NULL, 0, 'en', 1, 'ops');
INSERT INTO link_codes VALUES (900, 'd1', '-100', 0, 0, 1, 0);
INSERT INTO cost_days VALUES (2, 0, 900, 900, 'helper', 'm', 1, 5, 0, 0, 2, 21);
INSERT INTO imports VALUES (2, 'f', 1, 0, 0);
INSERT INTO fresh_starts VALUES (900, 'helper', 0, 0, 0, 0);
INSERT INTO inquiries (kind, agent, conversation_id, target, person)
VALUES ('status', 'helper', 900, '{}', 'U1');
INSERT INTO files (id, turn_seq, platform_id, state, speech, transcript)
VALUES (900, 900, 'f1', 'fetched', 'done', 'zebra-7f3a9c');
INSERT INTO jobs (kind, key, account_id, payload, version, not_before_ms, asked_at_ms, updated_at_ms)
VALUES ('answer-inquiry', '900', 2, '{"inquiry":900}', 1, 0, 0, 0),
       ('fetch-file', '900', 2, '{"file":900}', 1, 0, 0, 0);
INSERT INTO prompt_texts VALUES (x'00', 'Be kind.');
INSERT INTO sent_prompts (run_id, recipe, instructions, tools, turns, thread_answers)
SELECT 901, '{}', x'00', x'00', CAST(uuid || x'0000000001' AS BLOB), x'' FROM turns WHERE seq = 900;
INSERT INTO former_names VALUES (900, 1, 'Ada', NULL);
INSERT INTO sequences (account_id, name, newest) VALUES (2, 's', 1);
INSERT INTO numbers VALUES (2, 's', 1);
INSERT INTO account_reach VALUES (2, 1, NULL, 0);
INSERT INTO chat_reach (account_id, chat) VALUES (2, '-100');
INSERT INTO chat_merges VALUES (900, 900, 0);
INSERT INTO conversation_merges VALUES (900, 900);
INSERT INTO knowledge_collections VALUES (900, 'handbook', 0, '{}', '[]', NULL, 0);
INSERT INTO knowledge_documents VALUES (900, 900, '/srv/handbook', 'travel.md', '', x'00', 'Travel', 1, 1, 0, NULL, 0);
INSERT INTO knowledge_chunks VALUES (900, 900, '[]', 1, NULL, 'Book early.');
INSERT INTO knowledge_words VALUES (900, 'earli');
INSERT INTO telling_hooks VALUES ('helper', 'run_ended', 'guard');
INSERT INTO tellings VALUES (900, x'0900', 'guard', 'run_ended', 900, NULL, 'done', 0);
INSERT INTO skill_approvals VALUES ('pdf-forms', '00', 'ann', 0);
