//! Tokens that are in each other's place: the one mistake with secrets that can be seen without asking
//! the platform. Never shows any of a token but the prefix that the platform gives to all of its kind.

/// What Slack's tokens begin with, and what each is.
const SLACK_KINDS: [(&str, &str); 5] = [
    ("xapp-", "an app-level token"),
    ("xoxb-", "a bot token"),
    ("xoxp-", "a user's token"),
    ("xoxa-", "a workspace token"),
    (
        "xoxe",
        "a token that expires (token rotation, which is to be off)",
    ),
];

/// What is strange about the secret of a setting; `None` where nothing is, or nothing is known of it.
pub(super) fn strange(key: &str, secret: &str) -> Option<String> {
    let secret = secret.trim();
    let setting = key.rsplit('.').next()?;
    match setting {
        "app_token" => slack(secret, "xapp-"),
        "bot_token" => slack(secret, "xoxb-"),
        "signing_secret" => {
            let kind = kind_of(secret)?;
            Some(format!(
                "begins like {kind}; the signing secret is under Basic Information, App Credentials"
            ))
        }
        "token" if key.starts_with("channels.telegram.") => telegram(secret),
        _ => None,
    }
}

fn kind_of(secret: &str) -> Option<&'static str> {
    let found = SLACK_KINDS
        .iter()
        .find(|(prefix, _)| secret.starts_with(prefix));
    found.map(|(_, kind)| *kind)
}

fn slack(secret: &str, wanted: &str) -> Option<String> {
    let kind = kind_of(secret).filter(|_| !secret.starts_with(wanted))?;
    Some(format!(
        "begins like {kind}; this one begins with {wanted} (are two tokens in each other's place?)"
    ))
}

/// Source: Telegram Bot API, "Authorizing your bot": `123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11`.
fn telegram(secret: &str) -> Option<String> {
    let is_token = secret.split_once(':').is_some_and(|(id, rest)| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) && !rest.is_empty()
    });
    (!is_token).then(|| {
        "is no token of a bot: @BotFather's are digits, a colon and letters, like 123456:ABC-DEF"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::strange;

    #[test]
    fn tokens_in_each_others_place_are_seen_and_not_shown() {
        let table = [
            ("channels.slack.acme.app_token", "xapp-1-A", false),
            ("channels.slack.acme.app_token", "xoxb-1-B", true),
            ("channels.slack.acme.bot_token", "xapp-1-A", true),
            ("channels.slack.acme.bot_token", "xoxp-1-C", true),
            ("channels.slack.acme.bot_token", "xoxb-1-B", false),
            // What is not known is not judged.
            ("channels.slack.acme.bot_token", "loopback", false),
            ("channels.slack.acme.signing_secret", "xoxb-1-B", true),
            (
                "channels.slack.acme.signing_secret",
                "8f742231b10e8888",
                false,
            ),
            ("channels.telegram.home.token", "12:value", false),
            ("channels.telegram.home.token", "xoxb-1-B", true),
            ("channels.telegram.home.token", "@my_bot", true),
            ("api.token", "anything", false),
        ];
        for (key, secret, is_strange) in table {
            let found = strange(key, secret);
            assert_eq!(found.is_some(), is_strange, "{key}: {found:?}");
            let shown = found.unwrap_or_default();
            assert!(!shown.contains("1-A") && !shown.contains("1-B") && !shown.contains("my_bot"));
        }
    }
}
