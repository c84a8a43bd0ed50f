//! The Slack adapter: Socket Mode in, Web API out.
