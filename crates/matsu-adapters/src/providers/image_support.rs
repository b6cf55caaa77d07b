//! Which models take images, by their names. A vendor does not say so, and refuses a whole request for one image; so a
//! model that is not known to take them gets words in their place, until `providers.NAME.images` says otherwise.

use super::config::ProviderConfig;

/// Families that take images, on any server.
const WITH_IMAGES: &[&str] = &[
    "claude",
    "gemini",
    "gemma3",
    "gemma-3",
    "gpt-4o",
    "gpt-4.1",
    "gpt-4-turbo",
    "gpt-5",
    "gpt-6",
    "llama4",
    "llama-4",
    "llava",
    "minicpm-v",
    "moondream",
    "omni",
    "pixtral",
    "vision",
    "-vl",
    "vl:",
];

/// Models that take no images, although other models of their vendor do.
const WITHOUT_IMAGES: &[&str] =
    &["gpt-3.5", "o1-mini", "o1-preview", "o3-mini", "embedding", "claude-2", "claude-instant"];

pub fn takes_images(config: &ProviderConfig) -> bool {
    let model = config.model.to_lowercase();
    let is_any = |families: &[&str]| families.iter().any(|family| model.contains(family));
    // Behind an address of its own there may be any model.
    let is_vendor = config.base_url.is_none() && config.wire != "ollama";
    !is_any(WITHOUT_IMAGES) && (is_vendor || is_any(WITH_IMAGES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_it_where_the_vendor_does_not() {
        let at = |wire: &str, model: &str, own: bool| {
            let base_url = (!own).then(|| "http://127.0.0.1:8000/v1".to_owned());
            ProviderConfig { base_url, ..ProviderConfig::new("m", wire, model) }.takes_images()
        };
        for (wire, model) in
            [("anthropic", "claude-x"), ("gemini", "gemini-3-pro"), ("openai", "o3"), ("openai_chat", "gpt-4o")]
        {
            assert!(at(wire, model, true), "{wire} {model}");
        }
        assert!(at("openai_chat", "Qwen/Qwen2.5-VL-7B", false) && at("ollama", "llava:13b", true));
        for (wire, model, own) in
            [("openai_chat", "qwen3-max", false), ("ollama", "qwen3", true), ("openai", "o3-mini", true)]
        {
            assert!(!at(wire, model, own), "{wire} {model}");
        }
        let set = ProviderConfig { images: Some(true), ..ProviderConfig::new("m", "ollama", "new") };
        assert!(set.takes_images());
    }
}
