//! Missing and useless settings of a channel's transport.

use super::*;

/// A configuration with one channel that has these settings; `table` is its name in `channels`.
fn with_channel(table: &str, settings: &str) -> Result<(Config, Vec<Warning>), ConfigError> {
    let text = format!("[channels.{table}]\n{settings}\nallow_chats = [\"*\"]\n");
    Config::from_text(Some((Path::new("/etc/vocative.toml"), &text)), &home())
}

#[test]
fn a_transport_says_what_it_lacks_and_what_it_has_no_use_for() {
    const BOT: &str = "bot_token = \"env:B\"";
    const TOKEN: &str = "token = \"env:T\"";
    let slack = |settings: &str| with_channel("slack.acme", &format!("{BOT}\n{settings}"));
    let telegram = |settings: &str| with_channel("telegram.team", &format!("{TOKEN}\n{settings}"));
    let refused = [
        (slack(""), "channels.slack.acme.app_token"),
        (
            slack("transport = \"http\""),
            "channels.slack.acme.signing_secret",
        ),
        (slack("transport = \"webhook\""), "\"socket\", \"http\""),
        (
            telegram("transport = \"webhook\""),
            "channels.telegram.team.public_url",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"http://bot.example.org\""),
            "must start with https://",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"https://bot.example.org:444\""),
            "has port 444; Telegram delivers to 443, 80, 88 and 8443 only",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"https://bot.example.org/?a=b\""),
            "must end before any ?",
        ),
        (telegram("max_connections = 101"), "max_connections"),
        (telegram("live = \"stream\""), "channels.telegram.team.live"),
        (
            slack("app_token = \"env:A\"\n[delivery]\nlive = \"stream\"\n#"),
            "[channels.slack.NAME]",
        ),
        (
            with_channel(
                "slack.acme",
                &format!("{BOT}\n[webhooks]\nlisten = \"here\"\n#"),
            ),
            "like 127.0.0.1:8088",
        ),
    ];
    for (config, wanted) in refused {
        let error = config.expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let unused = [
        (
            slack("app_token = \"env:A\"\nsigning_secret = \"env:S\""),
            "channels.slack.acme.signing_secret",
        ),
        (
            telegram("public_url = \"https://bot.example.org\""),
            "channels.telegram.team.public_url",
        ),
        (
            telegram("webhook_secret = \"env:S\""),
            "channels.telegram.team.webhook_secret",
        ),
    ];
    for (config, wanted) in unused {
        let (_, warnings) = config.unwrap();
        let is_told = warnings.iter().any(|warning| warning.key == wanted);
        assert!(is_told, "{wanted}: {warnings:?}");
    }
}

#[test]
fn a_channel_that_is_called_needs_no_more_than_its_secret_and_address() {
    let http = "transport = \"http\"\nbot_token = \"env:B\"\nsigning_secret = \"env:S\"";
    let (config, _) = with_channel("slack.acme", http).unwrap();
    let environment = Environment::from([("HOME", "/home/ada"), ("B", "b"), ("S", "s")]);
    assert!(config.resolve_secrets(&environment).is_ok());
    // The operator's own Bot API server may call addresses without TLS.
    for (api_url, public_url) in [
        (
            "https://api.telegram.org",
            "https://bot.example.org:8443/bots/",
        ),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8088"),
    ] {
        let settings = format!(
            "token = \"env:T\"\ntransport = \"webhook\"\napi_url = \"{api_url}\"\npublic_url = \"{public_url}\"\n\
             webhook_secret = \"env:S\""
        );
        let (config, _) = with_channel("telegram.team", &settings).unwrap();
        let PlatformSettings::Telegram(telegram) = &config.channels["team"].platform else {
            panic!("team is a Telegram channel");
        };
        let platforms::TelegramTransport::Webhook { public_url, .. } = &telegram.transport else {
            panic!("team is called");
        };
        assert!(!public_url.ends_with('/'));
        for (secret, is_taken) in [("open-sesame", true), ("open sesame", false)] {
            let variables = [("HOME", "/home/ada"), ("T", "t"), ("S", secret)];
            let resolved = config.resolve_secrets(&Environment::from(variables));
            assert_eq!(resolved.is_ok(), is_taken, "{secret}");
            if let Err(error) = resolved {
                assert!(!error.to_string().contains(secret), "{error}");
            }
        }
    }
}
