//! Every text, with the values that it takes.

use std::fmt::Display;

use super::Language;
use super::catalogue::say;

/// Makes a method of [`Language`] of each text in a list, and [`Key`]. `[count]` marks the texts that have a form for
/// one and a form for other numbers.
macro_rules! texts {
    ($($name:ident $([$count:ident])? ($($value:ident),*);)*) => {
        /// A text, by its name in the catalogues.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types)]
        pub(super) enum Key {
            $($name,)*
        }

        impl Key {
            /// All of them, in order.
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the catalogues.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The names of its places.
            #[cfg(test)]
            pub(super) fn places(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$(stringify!($count),)? $(stringify!($value),)*],)*
                }
            }

            /// Whether it has a form for one and a form for other numbers.
            #[cfg(test)]
            pub(super) fn is_counted(self) -> bool {
                match self {
                    $(Self::$name => !"".eq(concat!($(stringify!($count))?)),)*
                }
            }
        }

        impl Language {
            $(
                #[doc = concat!("The text `", stringify!($name), "` of the catalogues.")]
                #[must_use]
                pub fn $name(self $(, $count: u64)? $(, $value: impl Display)*) -> String {
                    let counts: &[u64] = &[$($count)?];
                    say(
                        self,
                        Key::$name,
                        counts.first().copied(),
                        &[$((stringify!($count), &$count),)? $((stringify!($value), &$value),)*],
                    )
                }
            )*
        }
    };
}

texts! {
    // How runs end.
    run_failed();
    model_took_no_more(time);
    model_unreachable(time);
    model_refused_account(time);
    seconds[count]();
    minutes[count]();
    hours[count]();
    steps_used_up[count]();
    answer_misshapen[count]();
    tool_failed(tool);
    agent_no_longer_here(agent);
    cut_off_length();
    cut_off_filter();
    parts_left_out[count]();
    whole_answer_as_file();
    file_not_posted(name);
    network_no_answer();
    network_no_agent();
    may_not_answer();
    may_not_answer_because(reason);
    may_not_post();
    may_not_post_because(reason);
    answers_unchecked();

    // What is used up.
    day_used_up_person();
    day_used_up_channel();
    too_costly_person(most, currency, left);
    too_costly_channel(most, currency, left);
    run_tokens_used_up[count]();
    run_cost_used_up(amount, currency);
    run_time_used_up[count]();
    bots_answered_enough();
    bot_answered_enough_hour();
    person_answered_enough_hour();
    room_answered_enough_hour();

    // Who is served, and when.
    chat_not_served(chat);
    person_not_served();
    stranger_not_served();
    guest_not_served();
    quiet_until(end);
    not_at_work(name);

    // Commands.
    command_help();
    command_new();
    command_stop();
    command_status();
    command_context();
    command_summary();
    command_remind();
    command_schedule();
    command_memory();
    command_title();
    command_link();
    command_approvals();
    command_forget();
    command_ask();
    help_head();
    help_admins();
    help_mentioned(name);
    no_such_command();
    only_admins();
    nobody_of_that_name(names);
    no_such_model(models);
    context_is_private();
    fresh_start();
    fresh_start_of(agents);
    stopped_all();
    stopped_own();

    // Forgetting.
    forgets_message();
    forgets_own_messages();
    shared_name_forgets_nothing();
    forgotten_lately();
    would_forget_person(words);
    would_forget_chat(words);
    forgets_person();
    forgets_chat();
    only_admins_forget_chat();
    forget_help();
    forget_help_reply();

    // How things stand.
    agent_gone(agent);
    no_prompt(cause);
    status_answers[count](agent);
    status_now(working, waiting, posts);
    status_working[count]();
    status_posts[count]();
    status_kept[count]();
    status_afresh(at);
    context_nothing(agent);
    context_head(agent, tokens, budget, instructions);
    context_older[count]();
    context_left_out[count]();
    summary_head(agent);
    no_summary[count](agent);

    // Cards of calls that wait for a person.
    may_i(tool);
    button_approve();
    button_grant();
    button_deny();
    button_change();
    button_show_all();
    fact_asked_by();
    fact_changed_by();
    fact_goes_to();
    fact_after_reading();
    fact_deciders();
    fact_until();
    fact_note();
    fact_now();
    see_card_below();
    card_not_whole();
    card_left_out(left_out, all);
    all_arguments();
    waits_for_approval(tool, approval);
    state_waits();
    state_approved();
    state_denied();
    state_expired();
    state_cancelled();
    state_changed();
    decided_by(name, at);
    decided_by_operator(name, at);
    nobody_decided();
    not_answered_any_more();
    deciders_requester();
    deciders_admins();
    deciders_everybody();
    deciders_never_requester();
    deciders_all_but_requester();
    deciders_named();
    deciders_of_these(all, only);
    read_of_tool(tool, step);
    read_found(tool, step);
    read_recalled();
    read_file();
    read_more(number);

    // What is told of presses and changes.
    press_not_counted();
    not_yours_to_decide(deciders);
    was_approved(at);
    was_approved_by(name, at);
    was_denied(at);
    was_denied_by(name, at);
    was_changed(at);
    was_changed_by(name, at);
    call_expired();
    call_cancelled();
    own_change();
    changed_too_often();
    call_unchangeable();
    button_not_valid();
    card_being_posted();
    card_shows_not_all();
    how_to_see_all(approval);
    how_to_change();
    too_long_to_change(approval);
    form_title();
    form_label(tool);
    form_hint();
    form_not_valid();
    call_left_as_it_is(wrong);
    change_too_long(bytes);
    change_no_object();
    change_no_line(line);
    change_no_argument(name);
    change_twice(name);
    change_empty();
    change_unreadable();
    change_of_nothing();

    // What waits for a decision.
    approvals_none();
    approvals_theirs();
    approvals_deny_all(code);
    approvals_asked();
    approvals_line(tool, arguments, name);
    approvals_line_until(tool, arguments, name, until);
    approvals_help();
    approvals_other_list();
    approvals_denied[count]();

    // Questions.
    question_for(asked);
    question_over(state, asked);
    question_title();
    question_experts();
    fact_how();
    how_by_reply();
    how_by_button();
    fact_answered_by();
    fact_answer();
    state_answered();
    nobody_answered();
    no_answer_needed();
    operator_answers(name);
    question_for_others(asked);
    question_answered();
    question_expired();
    question_cancelled();
    question_being_posted();

    // What servers of tools ask.
    server_asks(server);
    form_once_more(problem);
    form_lines();
    form_goes_to_server(decline);
    form_decline();
    form_accept();
    form_yes();
    form_no();
    form_accept_or_decline(accept, decline);
    form_wrong(wanted);
    form_field_missing(field);
    form_field_twice(field);
    form_field_wrong(field, wanted);
    form_line_unnamed(line);
    wanted_text();
    wanted_email();
    wanted_uri();
    wanted_date();
    wanted_time();
    wanted_whole_number();
    wanted_number();
    wanted_yes_or_no();
    wanted_one_of(choices);
    wanted_any_of(choices);
    wanted_or_nothing(wanted);
    wanted_between(what, min, max);
    wanted_at_least(what, min);
    wanted_at_most(what, max);
    wanted_chars_between(what, min, max);
    wanted_chars_at_least(what, min);
    wanted_chars_at_most(what, max);
    chars_at_least(min);
    chars_at_most(max);
    at_least(min);
    at_most(max);

    // Reminders and schedules.
    weekdays();
    reminder(task);
    reminder_late(at, task);
    reminder_for(person, task);
    reminder_for_late(person, at, task);
    reminder_made(id, times);
    schedule_made(id, agent, times);
    times_then(first, next);
    that_cannot_be(problem);
    schedule_examples();
    schedule_not_theirs(id);
    schedule_goes_on(id, times);
    schedule_paused(id);
    schedule_over(id);
    schedule_cancelled(id);
    schedule_starts(id);
    schedules_none();
    schedule_line(id, timing, who, owner, next, task);
    schedule_who_reminder();
    schedule_owner_operator();
    schedule_next(at);
    schedule_state_active();
    schedule_state_paused();
    schedule_state_done();
    schedule_state_cancelled();
    timing_not_understood();
    timing_no_zone(zone);
    timing_too_often();
    timing_over();
    timing_too_far();
    cron_five_fields();
    cron_no_minute(field);
    cron_no_hour(field);
    cron_no_day(field);
    cron_no_month(field);
    cron_no_weekday(field);
    cron_never();
    schedules_of_person(max);
    schedules_of_chat(max);
    schedule_empty();
    schedule_too_long(max);

    // What is remembered.
    memory_here();
    memory_elsewhere();
    memory_nothing();
    memory_about_elsewhere(number);
    memory_help();
    memory_older(number);
    memory_said(teller);
    memory_said_about(teller, subject);
    memory_said_of_this_room(teller);
    memory_said_of_that_room(teller);
    memory_place_here();
    memory_place_in(room);
    memory_since(about, place, since);
    memory_until(until);
    memory_worded();
    memory_preference();
    memory_no_entry(id);
    memory_forgotten(id);
    memory_forgotten_several(number);
    memory_only_teller(teller, id);
    memory_changed(id, text);
    memory_only_admins_share();
    memory_shared(id);
    memory_unshared(id);
    memory_not_own_words();
    memory_not_public();
    memory_text_empty();
    memory_text_too_long(max);
    memory_nobody_said_it();
    memory_words_not_found(words);
    memory_no_such_entry(id);
    memory_entry_changed(id);
    memory_entry_replaced(id);
    memory_not_theirs(id, teller);
    memory_core_full();
    memory_room_full();

    // What a conversation is called.
    title_is(title);
    title_is_none(title);
    title_given();
    title_taken_away();
    title_not_there();
    title_says_nothing();
    title_is_operators();

    // Accounts of one person, and who is let in by a code.
    link_code(code);
    link_accounts(accounts);
    link_done(account);
    link_was_said(account);
    link_code_wrong();
    link_code_is_own();
    link_tries_used_up();
    link_is_there(account);
    link_full(count);
    link_taken_away();
    link_not_there();
    link_is_private();
    pairing_offered(code);
    pairing_done();
}
