//! A piece of a long text.

/// A piece of a text around one of its bytes, cut to a number of characters, with `…` where the text goes on.
#[must_use]
pub fn excerpt(text: &str, around: usize, max_chars: usize) -> String {
    let total = text.chars().count();
    if total <= max_chars {
        return text.to_owned();
    }
    let before = text[..around].chars().count();
    // A third of what is shown stands before the match.
    let from = before
        .saturating_sub(max_chars / 3)
        .min(total.saturating_sub(max_chars));
    let shown: String = text.chars().skip(from).take(max_chars).collect();
    let start = if from > 0 { "…" } else { "" };
    let end = if from + max_chars < total { "…" } else { "" };
    format!("{start}{}{end}", shown.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_match() {
        let long = format!("{}Café at nine {}", "x ".repeat(50), "y ".repeat(50));
        let at = long.find("Café").unwrap_or_default();
        assert_eq!(excerpt(&long, at, 21), "…x x x Café at nine y…");
        assert_eq!(excerpt("short", 0, 5), "short");
        assert_eq!(excerpt("東京東京", 6, 2), "…東京");
    }
}
