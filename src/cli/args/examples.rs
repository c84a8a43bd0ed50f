//! The texts at the end of a command's help.

pub(super) const EXAMPLES: &str = "\
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

Results go to stdout, the log to stderr.";

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  vocative demo
  vocative demo --once                         exit 0 only if every answer came where it belongs
  vocative demo --once --fault wrong-thread    must exit 1 and say what is missing";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  vocative check
  vocative check --live
  vocative check --live --probe acme/C0123ABCD
  vocative check --database                    exit 65 if it is damaged, or a stored file is lost";

pub(super) const SETUP_EXAMPLES: &str = "\
Examples:
  vocative setup
  vocative setup --platform telegram --model ollama --place user
  vocative setup --non-interactive --platform slack --slack-app-token-file app --slack-bot-token-file bot \\
      --model openai --model-key-file key --model-name gpt-5-mini --place system

Exit code 0 if it serves (and has answered, where somebody wrote), 1 if it has not answered yet or a file that
is there would change, 69 and 77 if a platform or the model can't be reached or refuses what was given.";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  vocative doctor
  vocative doctor --fix
  vocative doctor --format json                for a report, and for programs: no secret, no text of rooms
  vocative doctor --offline --backups /mnt/backups/vocative";

pub(super) const SANDBOX_EXAMPLES: &str = "\
Examples:
  vocative sandbox --slack-port 9001 --telegram-port 9002 --model-port 9003
  vocative sandbox --json                      one line with addresses and tokens, for scripts
  vocative sandbox --self-check";

pub(super) const PROMPT_EXAMPLES: &str = "\
Examples:
  vocative prompt acme/#general
  vocative prompt 0193 --agent iris --at 512 --stats
  vocative prompt --transcript case.json --format json

A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  vocative import --channel acme slack-export.zip --dry-run
  vocative import --channel acme slack-export.zip --chat '#general' --chat '#ops'
  vocative import --channel home ~/ChatExport_2026-01-10

Exit code 1 if something of the export could not be read; what could is imported.";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  vocative conversations export acme/#general --output general.jsonl
  vocative conversations export acme/#general --output general.jsonl --files general-files
  vocative conversations export acme/#general --format markdown --timezone +02:00 | less
  vocative conversations export acme/#general --format anthropic --agent vocative

A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  vocative backup /var/backups/vocative/ --keep 7
  vocative backup before-upgrade.db";

pub(super) const ERASE_EXAMPLES: &str = "\
Examples:
  vocative erase --person acme/U0123ABCD --dry-run     say what would go
  vocative erase --person @ada --verify                and search the files afterwards
  vocative erase --conversation acme/#general --yes    without asking, for scripts

A person is named by the platform's user id, @username or full name, with CHANNEL/ before it where
several channels know one. Backups elsewhere are not reached: see docs/OPERATIONS.md.";

pub(super) const EVENTS_EXAMPLES: &str = "\
Examples:
  vocative events acme/#general --follow
  vocative events 01a20324-e8b8-7589-b924-dab7d3ba46da --format json

`vocative queue` names the runs that wait or are at work; `vocative conversations show CONVERSATION
--timeline` names those of a conversation.";

pub(super) const CONVERSATION_NAMES: &str = "\
A conversation is named by the start of its id (see `vocative conversations list`), or by channel
and chat: acme/#general, acme/C0123ABCD, home/-1001234567890.";
