//! How many tokens a text is, roughly. A guess that errs upwards: what is too long is refused, what is shorter than
//! thought costs nothing.

use super::{Entry, Item};

/// Tokens of one image, whatever its size; the vendors charge between 85 and 1,600.
const IMAGE_TOKENS: u64 = 1_600;
/// What the frame of an entry costs.
const ENTRY_TOKENS: u64 = 8;

/// Text in scripts without spaces has about one and a half characters to a token, other text four; a fifth is added.
#[must_use]
pub fn of_text(text: &str) -> u64 {
    let (mut dense, mut sparse) = (0_u64, 0_u64);
    for character in text.chars() {
        if matches!(character, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..)
        {
            dense += 1;
        } else {
            sparse += 1;
        }
    }
    (dense * 8 + sparse * 3).div_ceil(10)
}

#[must_use]
pub fn of_entry(entry: &Entry) -> u64 {
    ENTRY_TOKENS + entry.content.iter().map(of_item).sum::<u64>()
}

fn of_item(item: &Item) -> u64 {
    match item {
        Item::Text { text, .. } => of_text(text),
        Item::ToolCall { name, arguments, .. } => of_text(name) + of_text(&arguments.to_string()) + ENTRY_TOKENS,
        Item::ToolResult { name, content, images, .. } => {
            let shown = images.iter().map(|_| IMAGE_TOKENS).sum::<u64>();
            of_text(name) + of_text(content) + shown + ENTRY_TOKENS
        }
        Item::Image(_) => IMAGE_TOKENS,
        Item::Thinking { text, signature, native } => {
            let sealed = native.as_ref().map_or(0, |native| of_text(&native.to_string()));
            of_text(text) + signature.as_deref().map_or(0, of_text) + sealed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn the_guess_errs_upwards() {
        assert_eq!(of_text(""), 0);
        assert_eq!(of_text("four letters here"), 6);
        assert_eq!(of_text("東京の天気"), 4);
    }
}
