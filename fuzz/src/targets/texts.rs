//! Texts of no platform: splitting, tokens, names, templates.

use vocative::config::{Template, TemplateValue};
use vocative_contract::capability::LengthUnit;
use vocative_contract::markup::{
    LABEL_MAX_CHARS, MENTION_CLOSE, MENTION_OPEN, mention_token, mentioned_ids, neutral_text,
    one_line, replace_mentions,
};
use vocative_contract::outbound::Part;
use vocative_contract::split::split_text;

use super::headed;
use super::speech::check_text;

pub(super) fn split(input: &[u8]) {
    let (head, text) = headed(input);
    let text = String::from_utf8_lossy(text);
    let max = head.first().copied().unwrap_or(4_000);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    for unit in [LengthUnit::Chars, LengthUnit::Utf16] {
        let pieces = split_text(&text, max, unit);
        for piece in &pieces {
            assert!(unit.len(piece) <= max.max(2), "a piece over the limit");
            assert!(!piece.trim().is_empty(), "an empty piece");
        }
        assert!(has_all_of(&pieces.concat(), &text), "a split lost words");
        // Each is at least a quarter full, unless it was cut at white space that fell away.
        let most = text.chars().count().saturating_mul(8) / max.clamp(2, 1 << 20) + 2;
        let blank = text.chars().filter(|c| c.is_whitespace()).count();
        assert!(
            pieces.len() <= most + blank,
            "{} pieces, not {most}",
            pieces.len()
        );
    }
}

pub(super) fn any(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let neutral = neutral_text(&text);
    assert!(mentioned_ids(&neutral).is_empty(), "a forged token");
    assert_eq!(neutral_text(&neutral), neutral);
    if let Some(line) = one_line(&text) {
        assert!(line.chars().count() <= LABEL_MAX_CHARS && !line.contains(char::is_control));
        assert_eq!(one_line(&line).as_deref(), Some(line.trim_end()));
    }
    let with_token = format!("{neutral}{}{neutral}", mention_token("U1"));
    check_text(&with_token, with_token.len());
    assert_eq!(mentioned_ids(&with_token), ["U1"]);
    assert_eq!(replace_mentions(&with_token, mention_token), with_token);
    let shown = replace_mentions(&text, |_| String::new());
    assert!(!shown.contains(MENTION_OPEN), "a mark is left");
    assert!(shown.len() <= text.len());
    let _ = shown.contains(MENTION_CLOSE);
    if let Ok(template) = Template::parse(&text) {
        let value = |value| match value {
            TemplateValue::Agent => "{{agent}}",
            TemplateValue::Chat => "{{chat}}",
            TemplateValue::Date => "{{date}}",
            TemplateValue::Participant => "{{participant}}",
        };
        let again = template.render(value);
        assert_eq!(
            Template::parse(&again).as_ref(),
            Ok(&template),
            "filled in with itself"
        );
    }
}

/// Whether a text has all of another's characters that show, in order.
pub(super) fn has_all_of(text: &str, other: &str) -> bool {
    let shows = |c: &char| {
        let is_dropped = matches!(*c, '\0' | MENTION_OPEN | MENTION_CLOSE);
        !c.is_whitespace() && !is_dropped
    };
    text.chars().filter(shows).eq(other.chars().filter(shows))
}

/// Whether a refused part was made smaller, or is too small for that.
pub(super) fn is_smaller(parts: &[Part], than: &Part) -> bool {
    let fits = |part: &Part| part.text.len() < than.text.len();
    parts.is_empty() || parts.iter().all(fits) || than.text.chars().count() <= 8
}
