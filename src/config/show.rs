//! The effective configuration as text, with the origin of each value.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::join;
use super::settings::Config;

/// A setting that applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownSetting {
    /// Its key, with dots.
    pub key: String,
    /// Its value, as written in TOML.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
}

impl Config {
    /// The effective values as TOML, each with its origin. A configuration only refers to secrets, so none is shown.
    #[must_use]
    pub fn show(&self) -> String {
        let mut out = String::new();
        // The defaults are already merged into the tables that they apply to.
        for (name, section) in sorted(&self.effective) {
            if name != "defaults" {
                self.show_table(name, section, &mut out);
            }
        }
        out
    }

    /// The effective values by their keys, each with its origin: `default`, a line of a file, a variable.
    #[must_use]
    pub fn shown_settings(&self) -> Vec<ShownSetting> {
        let mut shown = Vec::new();
        for (name, section) in sorted(&self.effective) {
            if name != "defaults" {
                self.collect(name, section, &mut shown);
            }
        }
        shown
    }

    fn collect(&self, path: &str, value: &Value, shown: &mut Vec<ShownSetting>) {
        if value.is_object() {
            for (key, inner) in sorted(value) {
                self.collect(&join(path, key), inner, shown);
            }
        } else if !value.is_null() {
            shown.push(ShownSetting {
                key: path.to_owned(),
                value: toml_text(value),
                origin: self.place_of(path),
            });
        }
    }

    fn place_of(&self, key: &str) -> String {
        let place = self.origins.of(key);
        place.map_or_else(|| "default".to_owned(), ToString::to_string)
    }

    fn show_table(&self, path: &str, table: &Value, out: &mut String) {
        let (tables, settings): (Vec<_>, Vec<_>) = sorted(table)
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .partition(|(_, value)| value.is_object());
        if !settings.is_empty() {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}[{path}]");
        }
        for (key, value) in settings {
            let place = self.place_of(&join(path, key));
            let line = format!("{key} = {}", toml_text(value));
            let _ = writeln!(out, "{line:<40} # {place}");
        }
        for (key, inner) in tables {
            self.show_table(&join(path, key), inner, out);
        }
    }
}

/// The entries of a table, sorted by key, since the merge keeps no order.
fn sorted(table: &Value) -> Vec<(&str, &Value)> {
    let mut entries: Vec<(&str, &Value)> = table
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

/// A string in TOML, on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// Whether a character is invisible, or changes how the line is read.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn toml_text(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(
        |_| "?".to_owned(),
        |value| match value {
            // On one line, so that the origin of every value is next to it.
            toml::Value::String(text) => quoted(&text),
            value => value.to_string(),
        },
    )
}
