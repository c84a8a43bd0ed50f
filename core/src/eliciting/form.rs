//! What a server asks a person for: a message and a flat list of fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approving::visible_line;
use crate::questioning::{OPTION_MAX_CHARS, OPTIONS_MAX, QUESTION_MAX_CHARS};
use crate::words::Language;

/// The most fields of a form.
const FIELDS_MAX: usize = 8;
/// The most choices of a field.
const CHOICES_MAX: usize = 50;
/// Words that name secrets, for which people are not asked in a chat. *Source:* the protocol forbids servers to ask for
/// secrets in forms.
const SECRETS: [&str; 17] = [
    "password",
    "passwords",
    "passwort",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "token",
    "tokens",
    "apikey",
    "pin",
    "otp",
    "cvv",
    "cvc",
    "iban",
];
/// Names of secrets that take two words.
const SECRET_PAIRS: [(&str, &str); 7] = [
    ("api", "key"),
    ("private", "key"),
    ("access", "key"),
    ("credit", "card"),
    ("card", "number"),
    ("verification", "code"),
    ("security", "code"),
];

/// A form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputForm {
    /// What the server says to the person.
    pub message: String,
    /// What it asks for.
    pub fields: Vec<InputField>,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputField {
    /// Its name for the server.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it takes.
    pub kind: FieldKind,
    /// Whether it must have a value.
    pub is_required: bool,
    /// The value if the person leaves the field out.
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A text within these numbers of characters, of a format if one is named.
    Text {
        /// At least.
        min: Option<u64>,
        /// At most.
        max: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`.
        format: Option<String>,
    },
    /// A number between these, a whole one or any. Bounds are as the server wrote them.
    Number {
        /// Whether it has no fraction.
        is_whole: bool,
        /// At least.
        min: Option<Value>,
        /// At most.
        max: Option<Value>,
    },
    /// Yes or no.
    Boolean,
    /// One of these: the value, and its name for people.
    One(Vec<(String, String)>),
    /// Several of these.
    Several(Vec<(String, String)>),
}

/// Why a server's request is not put to a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormRefused {
    /// It is an address for the person to open, and no form.
    #[error("it wants a person to open a page, which is not possible here")]
    Page,
    /// A word of it names a secret, such as a password: people are not asked for those in a chat.
    #[error("it asks for a secret ({0}), and people are not asked for secrets here")]
    Secret(String),
    /// It is too long, or of another shape.
    #[error("what it asks a person for can't be shown: {0}")]
    Unfit(String),
}

impl InputForm {
    /// The form of a request's parameters.
    ///
    /// # Errors
    /// Why it is not put to a person.
    pub fn of(params: &Value) -> Result<Self, FormRefused> {
        if !matches!(params["mode"].as_str(), None | Some("form")) {
            return Err(FormRefused::Page);
        }
        let message = params["message"].as_str().unwrap_or_default().trim();
        refuse_secret(message)?;
        let schema = &params["requestedSchema"];
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema["properties"].as_object();
        let properties = properties.into_iter().flatten();
        let fields = properties.map(|(name, schema)| {
            let mut field = InputField::of(name, schema)?;
            field.is_required = required.contains(&name.as_str());
            Ok(field)
        });
        let fields: Vec<InputField> = fields.collect::<Result<_, FormRefused>>()?;
        if fields.len() > FIELDS_MAX {
            let what = format!("it has more than {FIELDS_MAX} fields");
            return Err(FormRefused::Unfit(what));
        }
        Ok(Self {
            message: message.to_owned(),
            fields,
        })
    }

    /// The question that a person reads, with what was wrong with the answer before.
    ///
    /// # Errors
    /// It is longer than a question may be.
    pub fn question(
        &self,
        server: &str,
        problem: Option<&str>,
        language: Language,
    ) -> Result<String, FormRefused> {
        let mut lines = Vec::new();
        if let Some(problem) = problem {
            lines.push(language.form_once_more(problem));
        }
        lines.push(language.server_asks(visible_line(server)));
        lines.extend(self.message.lines().map(visible_line));
        match self.fields.as_slice() {
            [] => {}
            [one] => lines.push(one.line(language)),
            several => {
                lines.push(language.form_lines());
                let line = |field: &InputField| format!("- {}", field.line(language));
                lines.extend(several.iter().map(line));
            }
        }
        lines.push(language.form_goes_to_server(language.form_decline()));
        let text = lines.join("\n");
        if text.chars().count() > QUESTION_MAX_CHARS {
            let what = format!("it takes more than {QUESTION_MAX_CHARS} characters");
            return Err(FormRefused::Unfit(what));
        }
        Ok(text)
    }

    /// The answers that are offered as buttons; the last one declines.
    #[must_use]
    pub fn options(&self, language: Language) -> Vec<String> {
        let decline = language.form_decline();
        let mut options: Vec<String> = match self.fields.as_slice() {
            [] => vec![language.form_accept()],
            [one] => match &one.kind {
                FieldKind::Boolean => vec![language.form_yes(), language.form_no()],
                FieldKind::One(choices) => choices.iter().map(|(_, title)| title.clone()).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let is_fit = |option: &String| {
            (1..=OPTION_MAX_CHARS).contains(&option.chars().count()) && !option.contains('\n')
        };
        if options.len() >= OPTIONS_MAX || !options.iter().all(is_fit) {
            options.clear();
        }
        if !options
            .iter()
            .any(|option| option.eq_ignore_ascii_case(&decline))
        {
            options.push(decline);
        }
        options
    }
}

impl InputField {
    fn of(name: &str, schema: &Value) -> Result<Self, FormRefused> {
        let text = |key: &str| schema[key].as_str().unwrap_or_default().trim();
        for words in [name, text("title"), text("description"), text("format")] {
            refuse_secret(words)?;
        }
        let title = match text("title") {
            "" => name,
            title => title,
        };
        Ok(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            kind: FieldKind::of(name, schema)?,
            is_required: false,
            default: schema.get("default").filter(|it| !it.is_null()).cloned(),
        })
    }

    /// Its name, and what it takes.
    fn line(&self, language: Language) -> String {
        format!("{}: {}", visible_line(&self.title), self.wanted(language))
    }

    /// What it takes, in words.
    fn wanted(&self, language: Language) -> String {
        let titles = |choices: &[(String, String)]| {
            let titles: Vec<String> = choices.iter().map(|(_, it)| visible_line(it)).collect();
            titles.join(", ")
        };
        let wanted = match &self.kind {
            FieldKind::Text { min, max, format } => {
                let what = match format.as_deref() {
                    Some("email") => language.wanted_email(),
                    Some("uri") => language.wanted_uri(),
                    Some("date") => language.wanted_date(),
                    Some("date-time") => language.wanted_time(),
                    _ => language.wanted_text(),
                };
                match (min, max) {
                    (Some(min), Some(max)) => language.wanted_chars_between(what, min, max),
                    (Some(min), None) => language.wanted_chars_at_least(what, min),
                    (None, Some(max)) => language.wanted_chars_at_most(what, max),
                    (None, None) => what,
                }
            }
            FieldKind::Number { is_whole, min, max } => {
                let what = match is_whole {
                    true => language.wanted_whole_number(),
                    false => language.wanted_number(),
                };
                match (min, max) {
                    (Some(min), Some(max)) => language.wanted_between(what, min, max),
                    (Some(min), None) => language.wanted_at_least(what, min),
                    (None, Some(max)) => language.wanted_at_most(what, max),
                    (None, None) => what,
                }
            }
            FieldKind::Boolean => language.wanted_yes_or_no(),
            FieldKind::One(choices) => language.wanted_one_of(titles(choices)),
            FieldKind::Several(choices) => language.wanted_any_of(titles(choices)),
        };
        match self.is_required {
            true => wanted,
            false => language.wanted_or_nothing(wanted),
        }
    }
}

impl FieldKind {
    fn of(name: &str, schema: &Value) -> Result<Self, FormRefused> {
        let unfit =
            |what: &str| FormRefused::Unfit(format!("the field {} {what}", visible_line(name)));
        let choices_of = |schema: &Value| -> Result<Option<Vec<(String, String)>>, FormRefused> {
            let named = ["oneOf", "anyOf"]
                .iter()
                .find_map(|key| schema[*key].as_array());
            let choices: Option<Vec<(String, String)>> = match (schema["enum"].as_array(), named) {
                (Some(values), _) => values
                    .iter()
                    .enumerate()
                    .map(|(n, value)| {
                        let value = value.as_str()?;
                        let title = schema["enumNames"][n].as_str().unwrap_or(value);
                        Some((value.to_owned(), title.to_owned()))
                    })
                    .collect(),
                (None, Some(choices)) => choices
                    .iter()
                    .map(|choice| {
                        let value = choice["const"].as_str()?;
                        let title = choice["title"].as_str().unwrap_or(value);
                        Some((value.to_owned(), title.to_owned()))
                    })
                    .collect(),
                (None, None) => return Ok(None),
            };
            match choices {
                Some(choices) if (1..=CHOICES_MAX).contains(&choices.len()) => Ok(Some(choices)),
                _ => Err(unfit("has choices that are no texts, or too many")),
            }
        };
        Ok(match schema["type"].as_str() {
            Some("boolean") => Self::Boolean,
            Some(kind @ ("integer" | "number")) => {
                let bound = |key: &str| schema.get(key).filter(|it| it.is_number()).cloned();
                Self::Number {
                    is_whole: kind == "integer",
                    min: bound("minimum"),
                    max: bound("maximum"),
                }
            }
            Some("array") => match choices_of(&schema["items"])? {
                Some(choices) => Self::Several(choices),
                None => return Err(unfit("is a list of anything")),
            },
            Some("string") => match choices_of(schema)? {
                Some(choices) => Self::One(choices),
                None => Self::Text {
                    min: schema["minLength"].as_u64(),
                    max: schema["maxLength"].as_u64(),
                    format: schema["format"].as_str().map(str::to_owned),
                },
            },
            _ => return Err(unfit("is of no kind that a form has")),
        })
    }
}

/// Refuses what names a secret: `apiKey`, `API key` and `api_key` alike.
fn refuse_secret(words: &str) -> Result<(), FormRefused> {
    let mut all: Vec<String> = Vec::new();
    let mut is_after_small = false;
    for c in words.chars() {
        let is_new = !c.is_alphanumeric() || (c.is_uppercase() && is_after_small);
        if is_new || all.is_empty() {
            all.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = all.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        is_after_small = c.is_lowercase();
    }
    all.retain(|word| !word.is_empty());
    let single = all.iter().find(|word| SECRETS.contains(&word.as_str()));
    let pair = all.windows(2).find_map(|pair| {
        let pair = (pair[0].as_str(), pair[1].as_str());
        SECRET_PAIRS
            .contains(&pair)
            .then(|| format!("{} {}", pair.0, pair.1))
    });
    match single.cloned().or(pair) {
        Some(word) => Err(FormRefused::Secret(word)),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: &Value) -> Result<InputForm, FormRefused> {
        let schema = json!({"type": "object", "properties": properties, "required": ["size"]});
        InputForm::of(&json!({"mode": "form", "message": "Which box?", "requestedSchema": schema}))
    }

    #[test]
    fn a_question_says_who_asks_and_what_for() {
        let size = json!({"size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]}});
        let one = form(&size).unwrap();
        assert_eq!(
            one.question("boxes", None, Language::English).unwrap(),
            "The server boxes asks:\nWhich box?\nsize: one of: Small, Large\n\
             What you answer goes to that server. \"Decline\" gives it nothing."
        );
        assert_eq!(
            one.options(Language::English),
            ["Small", "Large", "Decline"]
        );
        let several = form(&json!({
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "mail": {"type": "string", "format": "email", "title": "Your address"},
            "gift": {"type": "boolean"},
        }));
        let several = several.unwrap();
        let asked = several
            .question("boxes", Some("`size` is missing"), Language::English)
            .unwrap();
        assert!(
            asked.starts_with("`size` is missing. Once more:\nThe server boxes asks:\nWhich box?\nReply with a line for each:\n"),
            "{asked}"
        );
        for line in [
            "- size: a whole number, 1 to 9\n",
            "- Your address: an e-mail address (may be left out)\n",
            "- gift: yes or no (may be left out)\n",
        ] {
            assert!(asked.contains(line), "{asked}");
        }
        assert_eq!(several.options(Language::English), ["Decline"]);
        let german = several.question("boxes", Some("`size` fehlt"), Language::German);
        let german = german.unwrap();
        for line in [
            "`size` fehlt. Noch einmal:\nDer Server boxes fragt:\nWhich box?\nBitte mit einer Zeile für jedes antworten:\n",
            "- size: eine ganze Zahl, 1 bis 9\n",
            "- Your address: eine E-Mail-Adresse (darf fehlen)\n",
            "Die Antwort geht an diesen Server. „Nichts angeben“ gibt ihm nichts.",
        ] {
            assert!(german.contains(line), "{german}");
        }
        assert_eq!(several.options(Language::German), ["Nichts angeben"]);
        assert_eq!(
            form(&json!({})).unwrap().options(Language::English),
            ["Accept", "Decline"]
        );
    }

    #[test]
    fn what_can_not_be_asked_says_why() {
        let page = json!({"mode": "url", "message": "Sign in", "url": "https://example.com"});
        assert_eq!(InputForm::of(&page), Err(FormRefused::Page));
        for (properties, words) in [
            (json!({"apiKey": {"type": "string"}}), "a secret (api key)"),
            (
                json!({"user_password": {"type": "string"}}),
                "a secret (password)",
            ),
            (
                json!({"x": {"type": "string", "title": "Your PIN"}}),
                "a secret (pin)",
            ),
            (
                json!({"x": {"type": "object"}}),
                "the field x is of no kind",
            ),
            (
                json!({"x": {"type": "array", "items": {"type": "string"}}}),
                "a list of anything",
            ),
            (
                json!({"x": {"type": "string", "enum": []}}),
                "no texts, or too many",
            ),
        ] {
            let told = form(&properties).unwrap_err().to_string();
            assert!(told.contains(words), "{words} in {told}");
        }
        let asks = json!({"message": "Please type your password", "requestedSchema": {}});
        assert!(matches!(InputForm::of(&asks), Err(FormRefused::Secret(_))));
        // A word that only contains a secret's name is no secret: a spin, a tokenizer.
        assert!(form(&json!({"spin": {"type": "string", "title": "Tokenizer"}})).is_ok());
        let long = json!({"message": "x".repeat(2_000), "requestedSchema": {}});
        let told = InputForm::of(&long)
            .unwrap()
            .question("boxes", None, Language::English)
            .unwrap_err();
        assert!(told.to_string().contains("more than 1000 characters"));
    }
}
