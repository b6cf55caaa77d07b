//! Bytes in any encoding, declared or not: the first line is the declared media type.

use crate::input::first_line;

pub fn run(data: &[u8]) {
    let (media_type, body) = first_line(data);
    for declared in [None, Some(media_type.as_str())] {
        let text = matsu_reader::decode(body, declared);
        // No encoding makes more than three bytes of one.
        assert!(text.len() <= 3 * body.len() + 3, "{} bytes became {}", body.len(), text.len());
        let has_mark =
            [&[0xef, 0xbb, 0xbf][..], &[0xfe, 0xff], &[0xff, 0xfe]].iter().any(|mark| body.starts_with(mark));
        if let Ok(utf8) = std::str::from_utf8(body)
            && !has_mark
        {
            assert_eq!(text, utf8, "UTF-8 that was read as something else");
        }
    }
}
