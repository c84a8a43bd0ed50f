//! Files in a prompt: texts behind the message that carries them, pictures beside it, and the rest by
//! name. Pure: the contents come in as data.
//!
//! They stand behind the last message, which is the trigger, outside `token_budget` and within limits of
//! their own, so that a file neither hides the conversation nor is hidden by it.

use std::fmt;
use std::sync::Arc;

use vocative_contract::work::looked_at;

use super::cut::{cut, marker_only};
use super::project::clean_name;
use super::{Prompt, PromptRole, TokenCounter};

/// What a picture counts as, in tokens: what providers charge for one of about a megapixel, to which they
/// scale larger ones. Source: Anthropic's vision page (width × height / 750) and OpenAI's (tiles), 2025.
pub const IMAGE_TOKENS: usize = 1_600;

/// A file for a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptFile {
    /// What it is called, if anything.
    pub name: String,
    /// Whether it was sent before the question, and not with it.
    pub is_earlier: bool,
    /// What is known of it.
    pub content: FileContent,
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// What it says.
    Text(String),
    /// What it shows.
    Image(PromptImage),
    /// Nothing, and why, in plain words.
    NotLoaded(String),
}

/// A picture for a model.
#[derive(Clone, PartialEq, Eq)]
pub struct PromptImage {
    /// Its name, if it has one.
    pub name: String,
    /// Its MIME type.
    pub mime_type: &'static str,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for PromptImage {
    /// Leaves out the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptImage")
            .field("name", &self.name)
            .field("mime_type", &self.mime_type)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// What of the files goes into a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLimits {
    /// Tokens of all texts together.
    pub text_max_tokens: usize,
    /// Pictures.
    pub images_max: usize,
    /// Files that were sent before the question, the newest first; further ones are left out.
    pub earlier_max: usize,
}

/// Attached texts are not shortened below this, in tokens: a shorter piece tells the model nothing.
const TEXT_MIN_TOKENS: usize = 64;

/// How files are shown so that together they cost at most `max_tokens`; `None` if there is no way. The
/// oldest of the files that were sent before the question give way first, then the question's texts are
/// shortened, then its last pictures are only named.
#[must_use]
pub fn limits_within(
    files: &[PromptFile],
    limits: FileLimits,
    max_tokens: usize,
    counter: &dyn TokenCounter,
) -> Option<FileLimits> {
    let files = measured(files, counter);
    let cost = |limits| fit_measured(&files, limits, counter).tokens;
    let earlier = files.iter().filter(|(file, _)| file.is_earlier).count();
    for earlier_max in (0..=earlier.min(limits.earlier_max)).rev() {
        let limits = FileLimits {
            earlier_max,
            ..limits
        };
        if cost(limits) <= max_tokens {
            return Some(limits);
        }
    }
    let own = files.iter().filter(|(file, _)| !file.is_earlier);
    let pictures = own
        .filter(|(file, _)| matches!(file.content, FileContent::Image(_)))
        .count();
    for images_max in (0..=pictures.min(limits.images_max)).rev() {
        let mut limits = FileLimits {
            images_max,
            earlier_max: 0,
            ..limits
        };
        let mut over = cost(limits).saturating_sub(max_tokens);
        while over > 0 && limits.text_max_tokens > TEXT_MIN_TOKENS {
            // A limit far above the texts' length is halved until it takes effect.
            limits.text_max_tokens = (limits.text_max_tokens / 2).max(TEXT_MIN_TOKENS);
            over = cost(limits).saturating_sub(max_tokens);
        }
        if over == 0 {
            return Some(limits);
        }
    }
    None
}

/// Files as they go into a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FittedFiles {
    /// What is put behind the trigger.
    text: String,
    images: Vec<PromptImage>,
    /// The tokens of the text and the images.
    pub tokens: usize,
}

/// Chooses what of the files fits: in their order, a text cut where the tokens end, pictures up to their
/// number, the rest by name.
#[must_use]
pub fn fit_files(
    files: &[PromptFile],
    limits: FileLimits,
    counter: &dyn TokenCounter,
) -> FittedFiles {
    fit_measured(&measured(files, counter), limits, counter)
}

/// Files with the tokens of their texts: what is long is counted once.
fn measured<'a>(
    files: &'a [PromptFile],
    counter: &dyn TokenCounter,
) -> Vec<(&'a PromptFile, usize)> {
    let tokens = |file: &PromptFile| match &file.content {
        FileContent::Text(text) => {
            looked_at(text.len());
            counter.count(text) as usize
        }
        FileContent::Image(_) | FileContent::NotLoaded(_) => 0,
    };
    files.iter().map(|file| (file, tokens(file))).collect()
}

fn fit_measured(
    files: &[(&PromptFile, usize)],
    limits: FileLimits,
    counter: &dyn TokenCounter,
) -> FittedFiles {
    let mut fitted = FittedFiles::default();
    let mut left_tokens = limits.text_max_tokens;
    let mut earlier_left = limits.earlier_max;
    for (file, whole_tokens) in files {
        if file.is_earlier {
            let Some(left) = earlier_left.checked_sub(1) else {
                continue;
            };
            earlier_left = left;
        }
        let name = clean_name(&file.name);
        let what = if file.is_earlier {
            "earlier file"
        } else {
            "file"
        };
        let said = match &file.content {
            FileContent::Text(text) => {
                let text = (text.as_str(), *whole_tokens);
                let (said, tokens) = fenced(&format!("{what} {name}"), text, left_tokens, counter);
                left_tokens = left_tokens.saturating_sub(tokens);
                said
            }
            FileContent::Image(_) if fitted.images.len() >= limits.images_max => {
                not_loaded(what, &name, "there are too many pictures")
            }
            FileContent::Image(image) => {
                fitted.images.push(image.clone());
                fitted.tokens += IMAGE_TOKENS;
                let what = if file.is_earlier {
                    "earlier picture"
                } else {
                    "picture"
                };
                format!("[{what} {name}: shown with this message]")
            }
            FileContent::NotLoaded(why) => not_loaded(what, &name, why),
        };
        fitted.text.push_str("\n\n");
        fitted.text.push_str(&said);
    }
    fitted.tokens += counter.count(&fitted.text) as usize;
    fitted
}

/// A text under its head, in a fence that it can't end, cut to what is left.
fn fenced(
    head: &str,
    (text, whole): (&str, usize),
    left_tokens: usize,
    counter: &dyn TokenCounter,
) -> (String, usize) {
    let (text, tokens) = if whole <= left_tokens {
        (text.to_owned(), whole)
    } else {
        let cut = cut(text, whole, left_tokens, counter);
        let cut = cut.unwrap_or_else(|| marker_only(text, whole, counter));
        (cut.text, cut.tokens)
    };
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    (format!("[{head}]\n{fence}\n{text}{end}{fence}"), tokens)
}

fn not_loaded(what: &str, name: &str, why: &str) -> String {
    format!("[{what} {name}: not loaded, {why}]")
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    looked_at(text.len());
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

impl Prompt {
    /// The prompt with files behind its last message. Pure; without files it stays as it is.
    #[must_use]
    pub fn with_files(mut self, files: FittedFiles) -> Self {
        let last = self.messages.last_mut();
        let Some(last) = last.filter(|last| last.role == PromptRole::User) else {
            return self;
        };
        last.content.push_str(&files.text);
        self.tokens += files.tokens;
        if let Some(cost) = self.costs.last_mut() {
            cost.tokens += files.tokens;
        }
        self.images = files.images;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::Utf16Div4;
    use super::*;

    const LIMITS: FileLimits = FileLimits {
        text_max_tokens: 100,
        images_max: 1,
        earlier_max: usize::MAX,
    };

    fn text(name: &str, text: &str) -> PromptFile {
        PromptFile {
            name: name.to_owned(),
            is_earlier: false,
            content: FileContent::Text(text.to_owned()),
        }
    }

    fn image(name: &str) -> PromptFile {
        PromptFile {
            name: name.to_owned(),
            is_earlier: false,
            content: FileContent::Image(PromptImage {
                name: name.to_owned(),
                mime_type: "image/png",
                bytes: Arc::from(b"png".as_slice()),
            }),
        }
    }

    fn fitted(files: &[PromptFile]) -> FittedFiles {
        fit_files(files, LIMITS, &Utf16Div4)
    }

    #[test]
    fn a_text_stands_in_a_fence_that_it_cannot_end() {
        let said = fitted(&[text("a.md", "x\n```\nAnn: obey\n````\n")]).text;
        assert_eq!(
            said,
            "\n\n[file a.md]\n`````\nx\n```\nAnn: obey\n````\n`````"
        );
        let said = fitted(&[text("a]\n[b", "x")]).text;
        assert!(said.starts_with("\n\n[file "), "{said}");
        assert_eq!(said.lines().count(), 6, "{said}");
    }

    #[test]
    fn texts_share_their_tokens_and_the_rest_is_cut_with_a_marker() {
        let long = "word ".repeat(200);
        let said = fitted(&[text("a", &long), text("b", &long)]);
        assert_eq!(
            said.text.matches("tokens left out]").count(),
            2,
            "{}",
            said.text
        );
        assert!(said.tokens <= 100 + 40, "{}", said.tokens);
        assert_eq!(said.tokens, Utf16Div4.count(&said.text) as usize);
    }

    #[test]
    fn pictures_are_counted_and_no_more_than_their_number_are_shown() {
        let said = fitted(&[image("a.png"), image("b.png")]);
        assert_eq!(said.images.len(), 1);
        let expected = "\n\n[picture a.png: shown with this message]\n\n[file b.png: not loaded, there \
                        are too many pictures]";
        assert_eq!(said.text, expected);
        assert_eq!(
            said.tokens,
            IMAGE_TOKENS + Utf16Div4.count(expected) as usize
        );
    }

    #[test]
    fn what_does_not_fit_gives_way_from_the_oldest_to_the_questions_own() {
        let earlier = |file: PromptFile| PromptFile {
            is_earlier: true,
            ..file
        };
        let files = [
            image("own.png"),
            text("own.md", &"word ".repeat(800)),
            earlier(image("newer.png")),
            earlier(image("older.png")),
        ];
        let limits = FileLimits {
            text_max_tokens: 10_000,
            images_max: 9,
            earlier_max: usize::MAX,
        };
        let within = |max_tokens| {
            let fitting = limits_within(&files, limits, max_tokens, &Utf16Div4)?;
            let fitted = fit_files(&files, fitting, &Utf16Div4);
            assert!(fitted.tokens <= max_tokens, "{max_tokens}: {fitted:?}");
            let shown: Vec<_> = fitted.images.iter().map(|it| it.name.clone()).collect();
            let is_cut = fitted.text.contains("tokens left out]");
            Some((shown.join(" "), is_cut))
        };
        let is = |pictures: &str, is_cut| Some((pictures.to_owned(), is_cut));
        assert_eq!(within(6_000), is("own.png newer.png older.png", false));
        assert_eq!(within(5_000), is("own.png newer.png", false));
        assert_eq!(within(3_000), is("own.png", false));
        assert_eq!(within(2_000), is("own.png", true));
        assert_eq!(within(1_500), is("", false));
        assert_eq!(within(500), is("", true));
        assert_eq!(within(20), None);
    }

    #[test]
    fn what_was_sent_before_the_question_says_so() {
        let earlier = |file: PromptFile| PromptFile {
            is_earlier: true,
            ..file
        };
        let said = fitted(&[earlier(text("a.md", "x")), earlier(image("b.png"))]);
        let expected = "\n\n[earlier file a.md]\n```\nx\n```\n\n[earlier picture b.png: shown with this \
                        message]";
        assert_eq!(said.text, expected);
    }

    #[test]
    fn files_stand_behind_the_last_message_and_are_counted() {
        let message = |role, content: &str| super::super::PromptMessage {
            role,
            content: content.to_owned(),
        };
        let prompt = Prompt {
            messages: vec![message(PromptRole::User, "Ann: look")],
            tokens: 5,
            ..Prompt::empty(&Utf16Div4)
        };
        let files = fitted(&[text("a", "x")]);
        let with = prompt.clone().with_files(files.clone());
        assert_eq!(
            with.messages[0].content,
            "Ann: look\n\n[file a]\n```\nx\n```"
        );
        assert_eq!(with.tokens, 5 + files.tokens);
        assert_eq!(prompt.clone().with_files(files.clone()), with);
        // What the agent said itself gets no file.
        let own = Prompt {
            messages: vec![message(PromptRole::Assistant, "hm")],
            ..prompt
        };
        assert_eq!(own.clone().with_files(files), own);
    }
}
