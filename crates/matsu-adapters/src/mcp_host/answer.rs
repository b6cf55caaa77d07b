//! A tool's result as text and images. What is neither is named, so that the model knows it was there.

use matsu_core::history::Image;
use matsu_core::limits::{IMAGES_BYTES_MAX, IMAGES_MAX};
use matsu_core::ports::tool_source::ToolAnswer;
use serde_json::{Map, Value};

pub fn from_result(result: &Map<String, Value>) -> ToolAnswer {
    let blocks = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut images = Vec::new();
    let mut text = blocks.iter().map(|given| block(given, &mut images)).collect::<Vec<_>>().join("\n");
    if text.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null())
    {
        text = structured.to_string();
    }
    if text.is_empty() {
        "(no text output)".clone_into(&mut text);
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    ToolAnswer { content: text, is_error, images }
}

fn block(block: &Value, images: &mut Vec<Image>) -> String {
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "text" => text("/text").to_owned(),
        "image" => image(text("/data"), text("/mimeType"), images),
        "audio" => format!("[audio: {}]", text("/mimeType")),
        "resource" if !text("/resource/text").is_empty() => text("/resource/text").to_owned(),
        "resource" if text("/resource/mimeType").starts_with("image/") && !text("/resource/blob").is_empty() => {
            image(text("/resource/blob"), text("/resource/mimeType"), images)
        }
        "resource" => format!("[resource: {} ({})]", text("/resource/uri"), text("/resource/mimeType")),
        "resource_link" => format!("[resource: {} ({})]", text("/uri"), text("/mimeType")),
        _ => block.to_string(),
    }
}

/// Takes an image, or says why not. Its words stand where it stood.
fn image(data: &str, called: &str, images: &mut Vec<Image>) -> String {
    let taken: usize = images.iter().map(Image::bytes).sum();
    match Image::read(data) {
        Err(why) => format!("[image: {called}, not shown: {why}]"),
        Ok(_) if images.len() >= IMAGES_MAX => {
            format!("[image: {called}, not shown: at most {IMAGES_MAX} images of one result are shown]")
        }
        Ok(image) if taken + image.bytes() > IMAGES_BYTES_MAX => {
            let most = IMAGES_BYTES_MAX / 1_000;
            format!(
                "[image: {}, not shown: the images of one result may have at most {most} kB together]",
                image.title()
            )
        }
        Ok(image) => {
            let words = format!("[image: {}]", image.title());
            images.push(image);
            words
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_becomes_text() {
        let cases = [
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb", false),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "x"}], "isError": true}),
                "[image: image/png, not shown: its data is not Base64; send the bytes of the image in standard Base64]",
                true,
            ),
            (json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}), "t", false),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "u", "mimeType": "m"}}]}),
                "[resource: u (m)]",
                false,
            ),
            (json!({"content": [], "structuredContent": {"n": 1}}), "{\"n\":1}", false),
            (json!({}), "(no text output)", false),
            (json!({"content": [{"type": "new", "x": 1}]}), "{\"type\":\"new\",\"x\":1}", false),
        ];
        for (result, content, is_error) in cases {
            let answer = from_result(result.as_object().unwrap());
            assert_eq!(answer, ToolAnswer { is_error, ..ToolAnswer::good(content) }, "{result}");
        }
    }

    #[test]
    fn images_are_taken_within_bounds_and_named_where_they_stood() {
        let png = "iVBORw0KGgoAAAANSUhEUg==";
        let one = json!({"type": "image", "mimeType": "image/jpeg", "data": png});
        let blob = json!({"type": "resource", "resource": {"uri": "u", "mimeType": "image/png", "blob": png}});
        let result = json!({"content": [{"type": "text", "text": "before"}, one, blob]});
        let answer = from_result(result.as_object().unwrap());
        assert_eq!(answer.content, "before\n[image: image/png, 1 kB]\n[image: image/png, 1 kB]");
        assert_eq!(answer.images.iter().map(|image| image.media_type.as_str()).collect::<Vec<_>>(), ["image/png"; 2]);
        let many = json!({"content": vec![one.clone(); IMAGES_MAX + 1]});
        let answer = from_result(many.as_object().unwrap());
        assert_eq!(answer.images.len(), IMAGES_MAX);
        assert!(answer.content.ends_with("not shown: at most 8 images of one result are shown]"), "{}", answer.content);
        let large = format!("{}{}", &png[..16], "A".repeat(IMAGES_BYTES_MAX / 3 * 2 / 4 * 4));
        let large = json!({"type": "image", "mimeType": "image/png", "data": large});
        let two = json!({"content": [large, large]});
        let answer = from_result(two.as_object().unwrap());
        assert_eq!(answer.images.len(), 1);
        assert!(answer.content.contains("at most 2750 kB together"), "{}", answer.content);
    }
}
