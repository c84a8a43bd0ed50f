//! Instructions with placeholders for values: `{{agent}}`, `{{chat}}`, `{{date}}`, `{{participant}}`.
//!
//! They are checked when the configuration is read, so that filling in values can't fail. Placeholders have double
//! braces, so single ones can be used for JSON in instructions.

/// Instructions with placeholders for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value(TemplateValue),
}

/// A value that instructions may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    /// The agent's display name.
    Agent,
    /// The title of the chat.
    Chat,
    /// The day in UTC, as `2026-11-21`.
    Date,
    /// The display name of the person who is answered.
    Participant,
}

impl TemplateValue {
    const ALL: [(&'static str, Self); 4] = [
        ("agent", Self::Agent),
        ("chat", Self::Chat),
        ("date", Self::Date),
        ("participant", Self::Participant),
    ];
}

impl TemplateValue {
    /// Its name between the braces.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, it)| *it == self);
        known.map_or("", |(name, _)| *name)
    }
}

impl Template {
    /// Whether the template contains a placeholder for this value.
    #[must_use]
    pub fn has(&self, value: TemplateValue) -> bool {
        self.0.contains(&Piece::Value(value))
    }

    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it, in words for the person who wrote it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after
                .split_once("}}")
                .ok_or_else(|| "a {{ is never closed by }}".to_owned())?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Value(value_of(name.trim())?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The same template followed by a paragraph of plain text, which must not contain `{{`.
    #[must_use]
    pub fn followed_by(mut self, text: &str) -> Self {
        let is_empty = self.source().trim().is_empty();
        let gap = if is_empty { "" } else { "\n\n" };
        self.0.push(Piece::Text(format!("{gap}{text}")));
        self
    }

    /// The same template followed by another one as a paragraph of its own.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let mut both = self.followed_by("");
        both.0.extend(other.0.iter().cloned());
        both
    }

    /// The text that it was read from.
    #[must_use]
    pub fn source(&self) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Value(value) => format!("{{{{{}}}}}", value.name()),
            })
            .collect()
    }

    /// Fills in the values.
    #[must_use]
    pub fn render<'a>(&self, value: impl Fn(TemplateValue) -> &'a str) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Value(name) => value(*name),
            })
            .collect()
    }
}

fn value_of(name: &str) -> Result<TemplateValue, String> {
    let known = TemplateValue::ALL;
    known
        .iter()
        .find(|(text, _)| *text == name)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let names: Vec<String> = known
                .iter()
                .map(|(text, _)| format!("{{{{{text}}}}}"))
                .collect();
            format!(
                "there is no value {{{{{name}}}}}; there are {}",
                names.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_filled_in() {
        let template =
            Template::parse("You are {{agent}} in {{ chat }}. {\"a\": {\"b\": 1}} {{date}}")
                .unwrap();
        let text = template.render(|value| match value {
            TemplateValue::Agent => "Iris",
            TemplateValue::Chat => "{{agent}}",
            TemplateValue::Date => "2026-11-21",
            TemplateValue::Participant => "Ada",
        });
        assert_eq!(Template::parse(&template.source()).unwrap(), template);
        // A value that looks like a placeholder stays text.
        assert_eq!(
            text,
            "You are Iris in {{agent}}. {\"a\": {\"b\": 1}} 2026-11-21"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(
            Template::parse("{{room}}").unwrap_err(),
            "there is no value {{room}}; there are {{agent}}, {{chat}}, {{date}}, {{participant}}"
        );
        assert_eq!(
            Template::parse("{{agent").unwrap_err(),
            "a {{ is never closed by }}"
        );
    }
}
