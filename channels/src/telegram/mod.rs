//! The Telegram adapter: long polling in, Bot API out.
