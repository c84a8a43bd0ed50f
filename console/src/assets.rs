//! The one script and the one style, under names that change with their content.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

const SCRIPT: &str = include_str!("../assets/console.js");
const STYLE: &str = include_str!("../assets/console.css");
const ICON: &str = include_str!("../assets/icon.svg");

/// The path of the script.
pub(crate) static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| path("console", SCRIPT, "js"));
/// The path of the style.
pub(crate) static STYLE_PATH: LazyLock<String> = LazyLock::new(|| path("console", STYLE, "css"));
/// The path of the icon.
pub(crate) static ICON_PATH: LazyLock<String> = LazyLock::new(|| path("icon", ICON, "svg"));

fn path(name: &str, text: &str, ending: &str) -> String {
    let digest = digest(text);
    format!("/assets/{name}-{digest}.{ending}")
}

/// The beginning of a text's digest, in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// One of them. They hold no data of people, so no session is needed and a browser may cache them.
pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    let asked = format!("/assets/{name}");
    let (kind, text) = match asked {
        asked if asked == *SCRIPT_PATH => ("text/javascript; charset=utf-8", SCRIPT),
        asked if asked == *STYLE_PATH => ("text/css; charset=utf-8", STYLE),
        asked if asked == *ICON_PATH => ("image/svg+xml", ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// *Source:* what the console promises: docs/CONSOLE.md.
    #[test]
    fn the_script_is_small_and_makes_no_html_of_texts() {
        assert!(SCRIPT.len() <= 10 << 10, "{} bytes", SCRIPT.len());
        assert!(STYLE.len() <= 16 << 10, "{} bytes", STYLE.len());
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "createPolicy",
            "parseFromString",
            "srcdoc",
        ] {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
    }

    /// Every pair of text and background colour has enough contrast, in both themes. *Source:* WCAG 2.2, 1.4.3: 4.5 to
    /// 1.
    #[test]
    fn texts_can_be_read_in_light_and_dark() {
        let grounds = ["--ground", "--card", "--raised"];
        let inks = [
            "--ink", "--quiet", "--accent", "--good", "--warn", "--bad", "--info",
        ];
        for (theme, at) in [("light", 0), ("dark", 1)] {
            for ground in grounds {
                for ink in inks {
                    let ratio = contrast(color(ink, at), color(ground, at));
                    assert!(ratio >= 4.5, "{theme}: {ink} on {ground} is {ratio:.2}");
                }
            }
            let on = contrast(color("--on-accent", at), color("--accent-fill", at));
            assert!(on >= 4.5, "{theme}: on the accent {on:.2}");
            let on = contrast(color("--on-accent", at), color("--bad-fill", at));
            assert!(on >= 4.5, "{theme}: on what can't be undone {on:.2}");
        }
    }

    /// The color of a token as `light-dark(#rrggbb, #rrggbb)` says it.
    fn color(token: &str, at: usize) -> [f64; 3] {
        let line = format!("{token}: light-dark(");
        let rest = STYLE.split(line.as_str()).nth(1);
        let pair = rest.and_then(|rest| rest.split(')').next());
        let value = pair.and_then(|pair| pair.split(',').nth(at));
        let hex = value.map(|value| value.trim().trim_start_matches('#'));
        let hex = hex.unwrap_or_else(|| panic!("{token} is no pair of colors"));
        let part = |at: usize| {
            let part = u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or_default();
            let part = f64::from(part) / 255.0;
            match part <= 0.040_45 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        };
        [part(0), part(2), part(4)]
    }

    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let light = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b;
        let (one, other) = (light(one), light(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }
}
