//! The Slack app's manifest for a configuration. The plain one is a file of the project; for other set-ups lines are
//! added to it.

use super::args::SlackManifestArgs;
use super::error::CliError;

/// The manifest for Socket Mode, without an agent view.
const PLAIN: &str = include_str!("../../config/slack-manifest.yaml");

/// The manifest for these options.
///
/// # Errors
/// An address that Slack would not call.
pub(super) fn slack(args: &SlackManifestArgs) -> Result<String, CliError> {
    let mut manifest = PLAIN.to_owned();
    if args.agent_view {
        manifest = with_agent_view(&manifest);
    }
    match (&args.public_url, &args.channel) {
        (Some(url), Some(channel)) => Ok(with_addresses(&manifest, &base(url, channel)?)),
        _ => Ok(manifest),
    }
}

fn with_agent_view(manifest: &str) -> String {
    let lines = [
        (
            "features:\n",
            "  agent_view:\n    agent_description: Answers questions with what was said in the room.\n",
        ),
        ("      - app_mentions:read\n", "      - assistant:write\n"),
        (
            "    bot_events:\n",
            "      - agent_session_stopped\n      - app_home_opened\n",
        ),
    ];
    lines
        .into_iter()
        .fold(manifest.to_owned(), |text, (behind, added)| {
            text.replacen(behind, &format!("{behind}{added}"), 1)
        })
}

/// The address that all addresses which Slack calls for a channel begin with.
fn base(url: &str, channel: &str) -> Result<String, CliError> {
    let host = url
        .strip_prefix("https://")
        .map(|rest| rest.trim_end_matches('/'));
    let host = host.filter(|host| !host.is_empty() && !host.contains(char::is_whitespace));
    let is_name = |name: &str| {
        let is_of_names =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_of_names)
    };
    match host {
        Some(host) if is_name(channel) => Ok(format!("https://{host}/slack/{channel}")),
        Some(_) => Err(CliError::Usage(format!(
            "--channel {channel}: names of channels are made of a-z, 0-9 and _"
        ))),
        None => Err(CliError::Usage(format!(
            "--public-url {url}: Slack calls https:// addresses only, like https://bot.example.org"
        ))),
    }
}

fn with_addresses(manifest: &str, base: &str) -> String {
    manifest
        .replacen(
            "    - command: /vocative\n",
            &format!("    - command: /vocative\n      url: {base}/commands\n"),
            1,
        )
        .replacen(
            "  event_subscriptions:\n",
            &format!("  event_subscriptions:\n    request_url: {base}/events\n"),
            1,
        )
        .replacen(
            "    is_enabled: true\n",
            &format!("    is_enabled: true\n    request_url: {base}/interactivity\n"),
            1,
        )
        .replacen(
            "  socket_mode_enabled: true\n",
            "  socket_mode_enabled: false\n",
            1,
        )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn args(agent_view: bool, public_url: Option<&str>) -> SlackManifestArgs {
        SlackManifestArgs {
            agent_view,
            public_url: public_url.map(str::to_owned),
            channel: public_url.map(|_| "acme".to_owned()),
        }
    }

    /// The lines that the plain manifest does not have.
    fn added(args: &SlackManifestArgs) -> Vec<String> {
        let manifest = slack(args).unwrap();
        let is_new = |line: &&str| !PLAIN.lines().any(|plain| plain == *line);
        manifest.lines().filter(is_new).map(str::to_owned).collect()
    }

    #[test]
    fn each_shape_adds_what_it_needs_where_it_belongs() {
        assert_eq!(slack(&args(false, None)).unwrap(), PLAIN);
        assert_eq!(
            added(&args(true, None)),
            [
                "  agent_view:",
                "    agent_description: Answers questions with what was said in the room.",
                "      - assistant:write",
                "      - agent_session_stopped",
                "      - app_home_opened",
            ]
        );
        let http = args(false, Some("https://bot.example.org/"));
        assert_eq!(
            added(&http),
            [
                "      url: https://bot.example.org/slack/acme/commands",
                "    request_url: https://bot.example.org/slack/acme/events",
                "    request_url: https://bot.example.org/slack/acme/interactivity",
                "  socket_mode_enabled: false",
            ]
        );
        assert!(!slack(&http).unwrap().contains("socket_mode_enabled: true"));
    }

    #[test]
    fn an_address_that_slack_would_not_call_is_refused() {
        for url in [
            "http://bot.example.org",
            "bot.example.org",
            "https://",
            "https://a b",
        ] {
            assert!(slack(&args(false, Some(url))).is_err(), "{url}");
        }
        let mut named = args(false, Some("https://bot.example.org"));
        named.channel = Some("../x".to_owned());
        assert!(slack(&named).is_err());
    }
}
