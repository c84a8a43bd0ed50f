//! Looks at a configuration live, and says in plain words what to fix.

use secrecy::ExposeSecret as _;

use vocative_contract::channel::{CheckReach, Finding, FindingLevel};
use vocative_contract::error::ChannelError;

use super::api::{SlackApi, Token};
use super::channel::{SlackSettings, SlackTransport, missing_scopes, sign_in};
use super::socket::{self, ConnectFailure};

/// The scope that posts under agents' own names need. *Source:* `chat.postMessage`.
const CUSTOMIZE_SCOPE: &str = "chat:write.customize";

/// Runs the checks, one finding each.
pub(super) async fn check(
    settings: &SlackSettings,
    api: &SlackApi,
    reach: CheckReach,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(token_forms(settings));
    findings.extend(account(settings, api).await);
    match &settings.transport {
        SlackTransport::Socket if reach == CheckReach::Connection => {
            findings.push(socket(settings, api).await);
        }
        SlackTransport::Socket => {}
        SlackTransport::Http { .. } => findings.extend(request_urls(settings, api).await),
    }
    findings.push(finding(
        FindingLevel::Fine,
        "which events the app is subscribed to cannot be read with these tokens; compare them with \
         `vocative config slack-manifest`, or post a line with --probe and see whether it is heard",
    ));
    findings
}

fn finding(level: FindingLevel, text: impl Into<String>) -> Finding {
    let text = text.into();
    Finding { level, text }
}

fn token_forms(settings: &SlackSettings) -> Vec<Finding> {
    let forms = [
        (&settings.app_token, "app_token", "xapp-"),
        (&settings.bot_token, "bot_token", "xoxb-"),
    ];
    let is_odd = |token: &secrecy::SecretString, prefix: &str| {
        let token = token.expose_secret();
        !token.is_empty() && !token.starts_with(prefix)
    };
    forms
        .into_iter()
        .filter(|(token, _, prefix)| is_odd(token, prefix))
        .map(|(_, name, prefix)| {
            let text = format!("{name} does not start with {prefix}; are the two tokens swapped?");
            finding(FindingLevel::Warning, text)
        })
        .collect()
}

async fn account(settings: &SlackSettings, api: &SlackApi) -> Vec<Finding> {
    let (identity, scopes) = match sign_in(api).await {
        Ok(signed_in) => signed_in,
        Err(error) => {
            return vec![finding(
                FindingLevel::of(&error),
                advice(&error, "bot_token"),
            )];
        }
    };
    let hello = format!(
        "signed in to workspace {} as {}",
        identity.account_name, identity.display_name
    );
    let mut findings = vec![finding(FindingLevel::Fine, hello)];
    findings.push(match missing_scopes(scopes.as_deref()) {
        Some(missing) if missing.is_empty() => finding(FindingLevel::Fine, "all needed scopes are granted"),
        Some(missing) => finding(
            FindingLevel::Problem,
            format!(
                "these scopes are missing: {}; add them under OAuth & Permissions and reinstall the app",
                missing.join(", ")
            ),
        ),
        None => finding(FindingLevel::Warning, "Slack did not say which scopes the bot token has"),
    });
    let may_customize = scopes.is_none_or(|granted| granted.iter().any(|it| it == CUSTOMIZE_SCOPE));
    if settings.customizes && !may_customize {
        findings.push(finding(
            FindingLevel::Problem,
            format!(
                "custom_names needs the scope {CUSTOMIZE_SCOPE}: add it under OAuth & Permissions and reinstall the app; \
                 until then the agent's name stands in the text"
            ),
        ));
    }
    findings
}

/// What can be found out about the request URLs: Slack has no method that returns them.
async fn request_urls(settings: &SlackSettings, api: &SlackApi) -> Vec<Finding> {
    let SlackTransport::Http { signing_secret } = &settings.transport else {
        return Vec::new();
    };
    let mut findings = vec![finding(
        FindingLevel::Fine,
        format!(
            "events come over HTTP, to the paths /slack/{name}/events, /slack/{name}/interactivity and \
             /slack/{name}/commands of [webhooks]; Slack verifies the first when it is saved in the app's \
             settings while the daemon runs",
            name = settings.name
        ),
    )];
    let secret = signing_secret.expose_secret();
    if secret.len() != 32 || !secret.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        findings.push(finding(
            FindingLevel::Warning,
            "signing_secret is not 32 hexadecimal digits; copy the Signing Secret under Basic \
             Information, not the client secret",
        ));
    }
    let has_app_token = !settings.app_token.expose_secret().is_empty();
    // This asks for a socket's URL and does not connect to it, so no socket is used up.
    if has_app_token
        && api
            .call("apps.connections.open", Token::App, &[])
            .await
            .is_ok()
    {
        findings.push(finding(
            FindingLevel::Warning,
            "Socket Mode is on in the app's settings: Slack sends events to sockets only. Switch it \
             off, or set transport = \"socket\"",
        ));
    }
    findings
}

async fn socket(settings: &SlackSettings, api: &SlackApi) -> Finding {
    let opened = match socket::open(api, &settings.timings).await {
        Ok(opened) => opened,
        Err(failure) => return socket_finding(&failure),
    };
    let connections = opened.hello.connections;
    opened.close(&settings.timings).await;
    match connections {
        Some(connections) if connections > 1 => finding(
            FindingLevel::Warning,
            format!(
                "a socket opens and says hello, but the app has {connections} open; another process \
                 with this app_token gets part of the messages (fine if it is this daemon)"
            ),
        ),
        _ => finding(FindingLevel::Fine, "a socket opens and says hello"),
    }
}

fn socket_finding(failure: &ConnectFailure) -> Finding {
    let unopened = format!("no socket could be opened: {failure}");
    match failure {
        ConnectFailure::Refused(error) => {
            finding(FindingLevel::of(error), advice(error, "app_token"))
        }
        ConnectFailure::SwitchedOff => finding(
            FindingLevel::Problem,
            format!("{unopened}; switch it on under Socket Mode"),
        ),
        ConnectFailure::TooMany => finding(
            FindingLevel::Problem,
            format!("{unopened}; stop other processes that use this app_token"),
        ),
        ConnectFailure::Lost(_) => finding(
            FindingLevel::Unreachable,
            format!("{unopened}; does a firewall stop websockets?"),
        ),
    }
}

fn advice(error: &ChannelError, setting: &str) -> String {
    match error {
        ChannelError::Unauthorized { reason, .. } if reason == "not_allowed_token_type" => {
            format!("{setting} is a token of another kind; app_token is xapp-, bot_token is xoxb-")
        }
        ChannelError::Unauthorized { reason, .. } => {
            format!("Slack refuses {setting}: {reason}; copy it again from the app's settings")
        }
        error => format!(
            "Slack cannot be asked: {}; check the network and api_url",
            error.reason()
        ),
    }
}
