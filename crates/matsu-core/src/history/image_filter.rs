//! What a model sees of the images in a transcript: those that it takes, and words in the place of the others.

use super::{Entry, Image, Item, Role};
use crate::limits::{IMAGES_SENT_BYTES_MAX, IMAGES_SENT_MAX};

/// The history as one model is given it.
pub struct Seen {
    pub history: Vec<Entry>,
    /// How many images since the last line of a person are replaced by words.
    pub newly_hidden: usize,
}

/// Replaces the images that a model does not take by words. `takes`: the media types that it takes.
///
/// The newest images are kept first: a request holds a bounded number of bytes.
#[must_use]
pub fn seen_by(mut history: Vec<Entry>, takes: &[&str]) -> Seen {
    let last_line = history.iter().rposition(|entry| entry.role == Role::User).unwrap_or(0);
    let mut filter = ImageFilter { takes, images_left: IMAGES_SENT_MAX, bytes_left: IMAGES_SENT_BYTES_MAX };
    let mut newly_hidden = 0;
    for (at, entry) in history.iter_mut().enumerate().rev() {
        let hidden = entry.content.iter_mut().rev().map(|item| filter.filter(item)).sum::<usize>();
        if at >= last_line {
            newly_hidden += hidden;
        }
    }
    Seen { history, newly_hidden }
}

struct ImageFilter<'a> {
    takes: &'a [&'a str],
    images_left: usize,
    bytes_left: usize,
}

impl ImageFilter<'_> {
    /// How many images of this item are hidden.
    fn filter(&mut self, item: &mut Item) -> usize {
        match item {
            Item::Image(image) => match self.why_not(image) {
                None => 0,
                Some(why) => {
                    *item = Item::text(words(image, why));
                    1
                }
            },
            Item::ToolResult { content, images, .. } => {
                let before = images.len();
                images.retain(|image| match self.why_not(image) {
                    None => true,
                    Some(why) => {
                        content.push('\n');
                        content.push_str(&words(image, why));
                        false
                    }
                });
                before - images.len()
            }
            Item::Text { .. } | Item::ToolCall { .. } | Item::Thinking { .. } => 0,
        }
    }

    /// Why an image is not sent; `None`: it is.
    fn why_not(&mut self, image: &Image) -> Option<&'static str> {
        if self.takes.is_empty() {
            return Some("images are not sent to this model");
        }
        if !self.takes.contains(&image.media_type.as_str()) {
            return Some("this model does not take images of this type");
        }
        if self.images_left == 0 || image.bytes() > self.bytes_left {
            return Some("newer images use up the limit of one request");
        }
        self.images_left -= 1;
        self.bytes_left -= image.bytes();
        None
    }
}

fn words(image: &Image, why: &str) -> String {
    format!("[An image ({}) that you cannot see: {why}. Say so if your answer depends on it.]", image.title())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::limits::IMAGES_BYTES_MAX;

    const NOW: Timestamp = Timestamp::from_millis(1);
    const PNG: &[&str] = &["image/png"];

    fn image(bytes: usize) -> Image {
        Image { media_type: "image/png".to_owned(), data: "A".repeat(bytes / 3 * 4) }
    }

    fn history() -> Vec<Entry> {
        let call = |id: &str| Item::ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: serde_json::json!({}),
            signature: None,
        };
        let result = Item::ToolResult {
            id: "c".to_owned(),
            name: "look".to_owned(),
            content: "Here.".to_owned(),
            is_error: false,
            images: vec![image(3_000)],
        };
        vec![
            Entry::new(Role::User, vec![Item::text("old"), Item::Image(image(3_000))], NOW),
            Entry::user("look", NOW),
            Entry::assistant("m", vec![call("c")], NOW),
            Entry::tool(vec![result], NOW),
        ]
    }

    #[test]
    fn a_model_without_images_gets_words_in_their_place() {
        let seen = seen_by(history(), &[]);
        assert_eq!(seen.newly_hidden, 1, "only what is new is announced");
        assert!(seen.history[0].spoken().contains("image/png, 3 kB) that you cannot see: images are not sent"));
        let Item::ToolResult { content, images, .. } = &seen.history[3].content[0] else { panic!("a result") };
        assert!(content.starts_with("Here.\n[An image (image/png, 3 kB)") && images.is_empty(), "{content}");
        assert_eq!(seen_by(history(), &["image/jpeg"]).newly_hidden, 1);
        let given = history();
        let all = seen_by(given.clone(), PNG);
        assert_eq!((all.newly_hidden, all.history), (0, given));
    }

    #[test]
    fn the_newest_images_are_sent_and_the_others_named() {
        let line = || Entry::new(Role::User, vec![Item::Image(image(IMAGES_BYTES_MAX / 3 * 3))], NOW);
        let fits = IMAGES_SENT_BYTES_MAX / IMAGES_BYTES_MAX;
        let seen = seen_by((0..fits + 2).map(|_| line()).collect(), PNG);
        let sent: Vec<bool> = seen.history.iter().map(|entry| matches!(entry.content[0], Item::Image(_))).collect();
        assert_eq!(sent, [vec![false; 2], vec![true; fits]].concat());
        assert!(seen.history[0].spoken().contains("newer images use up"));
    }
}
