//! What the names on an element say about it: the words of its class, id, role and itemprop, sorted into groups.
//! A word counts only as a whole (`ad` is not found in `shadow`), and an unknown name counts for nothing.

use std::sync::LazyLock;

use foldhash::HashMap;

/// How many groups there are; a set of them is a bit mask.
pub const GROUPS: usize = GROUP_WORDS.len();

/// A set of groups, bit `n` for `GROUP_WORDS[n]`.
pub type Marks = u32;

/// The order is part of the trained model: append, never reorder.
const GROUP_WORDS: [&str; 28] = [
    "content contents body text copy richtext rte prose wysiwyg markdown maincontent articlebody postbody",
    "article articles post posts entry story blog news",
    "main primary page center centre",
    "comment comments disqus reply replies respond discussion",
    "share sharing social facebook twitter follow sharebar addthis sharethis pinterest whatsapp linkedin",
    "related recommended recommendation recommendations similar also popular trending latest recent upsell crosssell more suggestions outbrain taboola",
    "next prev previous read readmore adjacent",
    "sidebar side rail aside secondary widget widgets complementary",
    "promo promotion promotions ad ads advert advertisement advertising sponsor sponsored banner adsense cta donate",
    "newsletter subscribe subscription signup email optin mailchimp form input",
    "nav navigation navbar menu breadcrumb breadcrumbs crumbs pagination pager toolbar submenu dropdown",
    "toc contents index jump anchor skip",
    "footer foot bottom copyright legal colophon disclaimer contentinfo",
    "header head masthead top topbar banner",
    "hero jumbotron cover splash",
    "cookie cookies consent gdpr privacy modal popup overlay dialog lightbox toast paywall",
    "author byline bio profile contributor avatar writer creator",
    "meta date time timestamp published posted updated info datepublished",
    "tag tags category categories topics topic label labels badge keyword keywords",
    "caption figcaption credit figure image img photo gallery media video player slideshow carousel slider swiper",
    "title heading headline subtitle subhead name",
    "summary excerpt intro introduction lead lede abstract teaser description desc deck dek standfirst",
    "product price sku cart buy stock shipping delivery quantity variant swatch option options wishlist checkout",
    "spec specs specification specifications features feature details detail attributes overview highlights faq faqs accordion tab tabs",
    "review reviews rating ratings stars testimonial testimonials feedback customer",
    "list grid cards card tile tiles results result listing collection items item loop feed archive",
    "search filter filters facet facets sort refine login account signin register user",
    "hidden sr screenreader visually offscreen print noprint",
];

static BY_WORD: LazyLock<HashMap<&'static str, Marks>> = LazyLock::new(|| {
    let mut by_word = HashMap::default();
    for (group, words) in GROUP_WORDS.iter().enumerate() {
        for word in words.split(' ') {
            *by_word.entry(word).or_insert(0) |= 1 << group;
        }
    }
    by_word
});

/// The groups that the words of `names` belong to. Words end at anything but a letter and where `camelCase` turns.
pub fn marks_of(names: &str) -> Marks {
    let mut marks = 0;
    let mut word = String::with_capacity(16);
    let mut was_lower = false;
    for c in names.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && was_lower) {
            marks |= look_up(&word);
            word.clear();
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    marks | look_up(&word)
}

fn look_up(word: &str) -> Marks {
    if word.len() < 2 { 0 } else { BY_WORD.get(word).copied().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_of(word: &str) -> Marks {
        marks_of(word)
    }

    #[test]
    fn words_count_whole_in_any_spelling() {
        assert_eq!(marks_of("shadow-box"), 0);
        assert_eq!(marks_of("article-body"), group_of("article") | group_of("body"));
        assert_eq!(marks_of("articleBody"), group_of("article") | group_of("body"));
        assert_eq!(marks_of("js_ARTICLE__x9"), group_of("article"));
    }

    #[test]
    fn a_set_holds_every_group() {
        assert!(GROUPS <= Marks::BITS as usize);
    }
}
