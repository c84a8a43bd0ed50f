//! Tests of what the command line accepts, and of its help.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// The long help of a command; the empty path is the program's.
fn help(path: &[&str]) -> String {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut command = &mut root;
    for name in path {
        command = command
            .find_subcommand_mut(name)
            .expect("the tests name commands that exist");
    }
    let text = command.render_long_help().to_string();
    text.lines()
        .map(str::trim_end)
        .fold(String::new(), |text, line| text + line + "\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one text")]
fn the_help_of_the_program() {
    insta::assert_snapshot!(help(&[]), @r##"
    A daemon that joins Slack workspaces and Telegram chats as a bot, remembers the room, and answers
    when it is addressed

    Usage: vocative [OPTIONS] <COMMAND>

    Commands:
      run            Serve the configured channels until stopped
      demo           Show the daemon at work against a Slack and a Telegram of its own
      check          Say whether the configuration will work, and what to fix
      setup          Set everything up, from nothing to the first answer
      doctor         Look at everything that can be wrong, and say what to type
      status         Say how the running daemon is doing
      reload         Have the running daemon read its configuration again
      sandbox        Run the loopback Slack, Telegram and model server for a bot of your own
      conversations  List conversations, show one, search in one, name it or put it away
      summary        Show the summaries of older turns, or have them made again
      agents         Show the agents and whether their models are asked; have one asked again
      queue          Show the questions that wait for an answer and why they wait; cancel one
      events         Tell what happened in a run or a conversation, and with --follow what happens
      dead           List questions and posts that were given up; show one, retry it or drop it
      costs          List what calls of models cost: tokens, and money where models have prices
      approvals      List the tool calls that wait for a person; show one, approve it or deny it; list
                     and revoke grants
      questions      List the questions that agents ask people; show one, or take it back
      runs           Show all of one run: what was asked, what its model called, who decided, what it
                     said and cost
      console        Print a link into the web console, or list who looked and acted there
      schedules      List what is to start at a time: reminders and schedules; show, add, pause, resume,
                     run or cancel one
      memory         List what agents remember of what people told them; show an entry, edit, forget or
                     share it
      state          Show the values that a network keeps in a conversation (persist = true), set or
                     clear some
      knowledge      List collections of documents and their files, search in them, or have them read
                     again
      jobs           List background work and what was given up of it; have a job done now or cancel it
      tools          List the tools that agents may call, or call one as the daemon would
      pairing        List who waits to be let in to direct chats; let somebody in, or no more
      skills         List skills, show what one tells agents, approve it or take that back
      mcp            List servers of tools and what they offer, approve it, or call one of their tools
      quarantine     List stored rows that can't be decoded; try one again or drop it
      held           List posts and questions that wait for a decision, let one go on, or drop it
      import         Give a channel the memory of its rooms from before the bot came
      backup         Copy the database and its files, with or without a daemon, and verify the copy
      restore        Put a backup in the place of the database, while no daemon runs
      erase          Erase everything that a person said, or a whole conversation, for good
      prompt         Show exactly what the model would be sent
      config         Show the configuration in force, its schema, or an example
      help           Print this message or the help of the given subcommand(s)

    Options:
          --licenses
              Print the notices of the libraries in this program, and end

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative demo                                see it work, without any account
      vocative setup                               from nothing to the first answer
      vocative config slack-manifest               what to make the Slack app from
      vocative config example > vocative.toml      make a configuration to start from
      vocative check --live                        ask the platforms whether it will work
      vocative run                                 serve, until Ctrl-C
      vocative prompt acme/#general                see what the model would be sent

    Configuration: --config, else $VOCATIVE_CONFIG, else the first of ./vocative.toml,
    $XDG_CONFIG_HOME/vocative/vocative.toml and /etc/vocative/vocative.toml. A variable such as
    VOCATIVE_DAEMON__LOG_LEVEL=debug wins over the file.

    Exit codes:
      0   all is well
      1   it failed, or something needs a person
      2   the command line is wrong
      65  the database or a backup is damaged, or a stored file is lost
      69  the daemon, a platform or a model can't be reached; an address is taken
      74  the database can't be used: rights, room, a failing disk
      77  a platform or a model refused the credentials
      78  the configuration is wrong

    Results go to stdout, the log to stderr.
"##);
}

#[test]
fn the_help_of_demo() {
    insta::assert_snapshot!(help(&["demo"]), @r##"
    Show the daemon at work against a Slack and a Telegram of its own

    Plays a short scene in a Slack channel, a Slack direct message, a Telegram group and a Telegram
    private chat, over real sockets, with the built-in offline model, and shows what was said, stored
    and sent. Then a refund waits for a person, through a kill of the daemon. Then you can type as a
    user: `#general @vocative hello`. Ctrl-C ends it.

    Usage: vocative demo [OPTIONS]

    Options:
          --scene <NAME>
              Which scene is played

              Possible values:
              - rooms:     People in two platforms, one agent, and a call that waits for a person
              - help-desk: A help desk of several agents (config/examples/help-desk.toml), through a
                kill
              - on-call:   An alert whose restart waits for who is on call
                (config/examples/on-call.toml), through a kill

              [default: rooms]

          --once
              End after the scene; exit 0 only if every expected answer was posted where it belongs

          --fault <FAULT>
              Break something on purpose, to see that it is noticed

              Possible values:
              - drop-answer:   One answer is never posted
              - mute-telegram: The loopback Telegram sends no updates
              - wrong-thread:  One answer goes into another thread
              - open-approval: Anybody may allow the refund that waits

          --wire <FILE>
              Write every frame and request on the wire to this file

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative demo
      vocative demo --once                         exit 0 only if every answer came where it belongs
      vocative demo --once --fault wrong-thread    must exit 1 and say what is missing
"##);
}

#[test]
fn the_help_of_check() {
    insta::assert_snapshot!(help(&["check"]), @r##"
    Say whether the configuration will work, and what to fix

    Checks the configuration, that every secret is there, and that the folders can be used, without
    touching the network. With --live it also asks each platform (who the bot is, its scopes, that a
    socket opens, privacy mode) and the providers of models whether they take the keys. With --database
    it reads every page of the database, also beside a running daemon.

    Usage: vocative check [OPTIONS]

    Options:
          --live
              Ask the platforms, too

          --database
              Read the whole database and all stored files and say what is damaged or lost

          --probe <CHANNEL/CHAT>
              Post one line into this chat and wait to hear it, which proves that events are subscribed

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative check
      vocative check --live
      vocative check --live --probe acme/C0123ABCD
      vocative check --database                    exit 65 if it is damaged, or a stored file is lost
"##);
}

#[test]
fn the_help_of_prompt() {
    insta::assert_snapshot!(help(&["prompt"]), @r##"
    Show exactly what the model would be sent

    Assembles the prompt for the newest turn (or the one at --at) and prints it with what was left out
    and why. Nothing is sent and nothing is stored. With --transcript it does the same over a JSON
    transcript, without a store or a configuration, or over what `conversations export` wrote, with the
    options that a configuration at hand has for the agent; that is always printed as JSON.

    Usage: vocative prompt [OPTIONS] [CONVERSATION]

    Arguments:
      [CONVERSATION]
              Which conversation: the start of its id, or CHANNEL/CHAT

    Options:
          --run <RUN>
              What this run was sent, from its record; says what of it was changed or went since

          --agent <NAME>
              For this agent, not for the one that the turn addresses

          --at <SEQ>
              As if the turn with this seq were the newest

          --stats
              Say how many rows were read, and what each part of the prompt costs

          --transcript <FILE>
              Read the conversation from this JSON file, or from an export; `-` is stdin. The prompt is
              printed as JSON

          --format <FORMAT>
              How to print it

              Possible values:
              - text: For people
              - json: For programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    Examples:
      vocative prompt acme/#general
      vocative prompt 0193 --agent iris --at 512 --stats
      vocative prompt --transcript case.json --format json

    A conversation is named by the start of its id (see `vocative conversations list`), or by channel
    and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.
"##);
}

#[test]
fn the_help_of_conversations_show() {
    insta::assert_snapshot!(help(&["conversations", "show"]), @r##"
    Show the turns of one conversation, in the order of the room

    Usage: vocative conversations show [OPTIONS] <CONVERSATION>

    Arguments:
      <CONVERSATION>
              Which one: the start of its id, or CHANNEL/CHAT

    Options:
          --limit <N>
              How many turns to show, the newest

              [default: 50]

          --before <SEQ>
              Only what stands before the turn with this seq: the next page, back in time

          --timeline
              Everything that happened, in one order: also tool calls and their results, deleted turns,
              runs, posts and summaries

          --format <FORMAT>
              How to print them

              Possible values:
              - table: For people
              - json:  For programs

              [default: table]

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
      -c, --config <FILE>
              The configuration file

      -v, --verbose...
              Log more: once for debug, twice for trace

      -q, --quiet...
              Log less: once for warnings, twice for errors only

          --log-format <FORMAT>
              How log lines look; wins over the configuration

              Possible values:
              - auto: Text; without time and colours under systemd
              - text: Text with time
              - json: One JSON object a line

    A conversation is named by the start of its id (see `vocative conversations list`), or by channel
    and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.
"##);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let cases = [
        "vocative",
        "vocative prompt",
        "vocative prompt acme/#general --transcript x.json",
        "vocative prompt --transcript x.json --at 3",
        "vocative check --probe acme/C1",
        "vocative demo --fault drop-answer",
        "vocative run -v -q",
        "vocative conversations list --limit 0",
        "vocative events",
        "vocative events acme/#general --after -1",
        "vocative events acme/#general --after soon",
        "vocative conversations search acme/#general",
        "vocative conversations title acme/#general",
        "vocative conversations show acme/#general --before 0",
        "vocative prompt acme/#general --at=-5",
        "vocative config slack-manifest --public-url https://bot.example.org",
    ];
    for case in cases {
        assert!(Cli::try_parse_from(case.split(' ')).is_err(), "{case}");
    }
}
