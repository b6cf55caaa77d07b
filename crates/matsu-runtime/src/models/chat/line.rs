//! A line of a person: words, and images with them.

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Image, Item, Role};
use matsu_core::limits::{IMAGES_BYTES_MAX, IMAGES_MAX};

use super::open_chats::ChatError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    images: Vec<Image>,
}

/// A line without images.
impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), images: Vec::new() }
    }
}

impl Line {
    /// The same with images, each as Base64.
    ///
    /// # Errors
    /// Too many, too large, or not images that models take.
    pub fn with_images<'a>(self, images: impl IntoIterator<Item = &'a str>) -> Result<Self, ChatError> {
        let read = |(at, data): (usize, &str)| {
            Image::read(data).map_err(|why| ChatError::Image(format!("image {} cannot be sent: {why}", at + 1)))
        };
        let images = images.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        if images.len() > IMAGES_MAX {
            let words = format!(
                "a message can have at most {IMAGES_MAX} images, got {}; send the others with the next message",
                images.len()
            );
            return Err(ChatError::Image(words));
        }
        let bytes: usize = images.iter().map(Image::bytes).sum();
        if bytes > IMAGES_BYTES_MAX {
            let (bytes, most) = (bytes.div_ceil(1_000), IMAGES_BYTES_MAX / 1_000);
            let words = format!(
                "the images of a message can have at most {most} kB together, got {bytes} kB; send fewer or smaller \
                 ones"
            );
            return Err(ChatError::Image(words));
        }
        Ok(Self { images, ..self })
    }

    pub(super) fn entry(&self, now: Timestamp) -> Entry {
        let images = self.images.iter().cloned().map(Item::Image);
        Entry::new(Role::User, [Item::text(self.text.as_str())].into_iter().chain(images).collect(), now)
    }
}
