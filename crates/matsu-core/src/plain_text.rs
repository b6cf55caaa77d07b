//! Text of others without what a terminal would obey: escape sequences, control characters, and characters that turn
//! the direction of writing. Text may come in parts; a sequence that is cut by the end of a part is still removed.

/// Where the last part ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a character that announces one more, as in a change of the character set.
    EscapeArgument,
    /// In a control sequence, which ends with its first letter.
    Control,
    /// In a string for the terminal (OSC, DCS and their like), which ends with BEL or ESC \.
    String,
    /// In such a string, after ESC.
    StringEscape,
}

/// Removes control sequences from text that comes in parts.
#[derive(Debug, Default)]
pub struct PlainText {
    within: Within,
    /// The last character was a carriage return.
    after_return: bool,
}

/// All of a text at once.
#[must_use]
pub fn plain(text: &str) -> String {
    PlainText::default().next(text)
}

/// All of a text on one line.
#[must_use]
pub fn plain_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

impl PlainText {
    /// The next part.
    pub fn next(&mut self, part: &str) -> String {
        let mut shown = String::with_capacity(part.len());
        for character in part.chars() {
            self.take(character, &mut shown);
        }
        shown
    }

    fn take(&mut self, character: char, shown: &mut String) {
        match (self.within, character) {
            (Within::Text, _) => self.take_text(character, shown),
            // A new line ends whatever was not ended: what follows is shown.
            (_, '\n') => {
                self.within = Within::Text;
                shown.push('\n');
            }
            (Within::Escape, '[') => self.within = Within::Control,
            (Within::Escape, ']' | 'P' | 'X' | '^' | '_') => self.within = Within::String,
            (Within::Escape, ' '..='/') => self.within = Within::EscapeArgument,
            (Within::Escape | Within::Control | Within::String, '\u{1b}') => {
                self.within = if self.within == Within::String { Within::StringEscape } else { Within::Escape };
            }
            (Within::Escape | Within::EscapeArgument, _) => self.within = Within::Text,
            (Within::Control, '@'..='~') | (Within::String, '\u{7}' | '\u{9c}') | (Within::StringEscape, '\\') => {
                self.within = Within::Text;
            }
            (Within::StringEscape, _) => self.within = Within::String,
            (Within::Control | Within::String, _) => {}
        }
    }

    fn take_text(&mut self, character: char, shown: &mut String) {
        // A line that was written over is shown as a line of its own.
        let is_lone = std::mem::take(&mut self.after_return) && character != '\n';
        if is_lone {
            shown.push('\n');
        }
        match character {
            '\u{1b}' => self.within = Within::Escape,
            '\u{9b}' => self.within = Within::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.within = Within::String,
            '\r' => self.after_return = true,
            '\n' | '\t' => shown.push(character),
            character if character.is_control() || turns(character) => {}
            character => shown.push(character),
        }
    }
}

/// Whether a character changes the direction of what follows it.
fn turns(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        for (text, shown) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}]52;c;aGVsbG8=\u{7}b", "ab"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("a\u{1b}Pq#0\u{1b}\\b\u{1b}(Bc\u{1b}7d", "abcd"),
            ("a\u{9b}2Jb\u{9d}0;x\u{9c}c", "abc"),
            ("10%\r20%\r\ndone\u{8}\u{7}\u{0}", "10%\n20%\ndone"),
            ("tab\tkept\u{7f}", "tab\tkept"),
            ("user\u{202e}txt.exe", "usertxt.exe"),
            ("open \u{1b}]8;;http://x\nnext", "open \nnext"),
            ("待つ – 🎉", "待つ – 🎉"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
        assert_eq!(plain_line("two\n  lines\u{1b}[2J"), "two lines");
    }

    #[test]
    fn a_sequence_in_two_parts_is_removed_wherever_it_is_cut() {
        let text = "one\u{1b}]52;c;aGVsbG8=\u{1b}\\two\u{1b}[1;31mthree\r\nfour";
        for (at, _) in text.char_indices() {
            let mut plain = PlainText::default();
            let shown = plain.next(&text[..at]) + &plain.next(&text[at..]);
            assert_eq!(shown, "onetwothree\nfour", "cut at {at}");
        }
    }
}
