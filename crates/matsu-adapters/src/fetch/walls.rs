//! Pages that ask for a login instead: a login form, a CAPTCHA, a challenge. Pure: status, headers and the first part
//! of the body go in, the kind of login comes out.
//!
//! A false alarm costs a person's time and a missed one stores a login form as evidence, so every rule asks for two
//! signs unless one alone is certain, and a page with much text is a page.

use matsu_core::research::auth::AuthType;

/// What of an answer decides.
#[derive(Clone, Copy, Debug)]
pub struct PageReply<'a> {
    pub status: u16,
    /// Lower-case name and value of every header.
    pub headers: &'a [(String, String)],
    /// Only the beginning is looked at.
    pub body: &'a str,
    /// Where redirects ended.
    pub final_url: &'a str,
}

/// Signs of a challenge are in the first part of a page.
const LOOK_AT_BYTES: usize = 64 * 1024;

/// A page with more visible text than this is read, whatever else is on it.
const TEXT_OF_A_PAGE: usize = 1_500;

/// The login that the page asks for, if it does.
#[must_use]
pub fn find_wall(answer: &PageReply<'_>) -> Option<AuthType> {
    let head = head_of(answer.body);
    let low = head.to_ascii_lowercase();
    if let Some(wall) = challenge(answer, &low) {
        return Some(wall);
    }
    match answer.status {
        401 => Some(AuthType::Login),
        403 => Some(if has_login_form(&low) { AuthType::Login } else { AuthType::Forbidden }),
        407 => Some(AuthType::Login),
        200..=299 if asks_for_login(answer.final_url, &low) => Some(AuthType::Login),
        _ => None,
    }
}

fn head_of(body: &str) -> &str {
    let mut end = body.len().min(LOOK_AT_BYTES);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    &body[..end]
}

fn header<'a>(answer: &PageReply<'a>, name: &str) -> Option<&'a str> {
    answer.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn challenge(answer: &PageReply<'_>, low: &str) -> Option<AuthType> {
    if header(answer, "cf-mitigated").is_some_and(|value| value.contains("challenge")) {
        return Some(AuthType::Cloudflare);
    }
    let is_short = visible_chars(low) < TEXT_OF_A_PAGE;
    if !is_short {
        return None;
    }
    let is_refusal = matches!(answer.status, 401 | 403 | 405 | 429 | 503);
    let is_cloudflare = low.contains("/cdn-cgi/challenge-platform/") || low.contains("cf-browser-verification");
    if is_cloudflare && (is_refusal || low.contains("just a moment") || low.contains("checking your browser")) {
        return Some(AuthType::Cloudflare);
    }
    let has_captcha =
        ["g-recaptcha", "h-captcha", "hcaptcha.com", "recaptcha/api.js", "cf-turnstile", "captcha-delivery.com"]
            .iter()
            .any(|sign| low.contains(sign));
    let speaks_of_it = ["captcha", "are you a robot", "not a robot", "verify you are human", "unusual traffic"]
        .iter()
        .any(|words| text_has(low, words));
    if (has_captcha && (is_refusal || speaks_of_it)) || (is_refusal && speaks_of_it) {
        return Some(AuthType::Captcha);
    }
    let asks_for_script = ["enable javascript and cookies to continue", "checking your browser", "ddos protection by"]
        .iter()
        .any(|words| low.contains(words));
    (asks_for_script && (is_refusal || low.contains("http-equiv=\"refresh\""))).then_some(AuthType::JsChallenge)
}

fn has_login_form(low: &str) -> bool {
    low.contains("type=\"password\"") || low.contains("type='password'") || low.contains("type=password")
}

/// A page that was answered with 200 and is a login all the same: it has a password field, says so, and has little else.
fn asks_for_login(final_url: &str, low: &str) -> bool {
    if !has_login_form(low) || visible_chars(low) >= TEXT_OF_A_PAGE {
        return false;
    }
    let path = final_url.to_ascii_lowercase();
    let by_address =
        ["login", "signin", "sign-in", "sign_in", "/auth", "/sso", "/account"].iter().any(|word| path.contains(word));
    let by_words =
        ["log in", "login", "sign in", "ログイン", "로그인", "登录"].iter().any(|words| text_has(low, words));
    by_address || by_words
}

/// Whether words occur outside of tags.
fn text_has(low: &str, words: &str) -> bool {
    texts(low).any(|text| text.contains(words))
}

fn visible_chars(low: &str) -> usize {
    texts(low).map(|text| text.split_whitespace().map(|word| word.chars().count() + 1).sum::<usize>()).sum()
}

/// The texts between tags, scripts and styles left out. Not a parser: good enough to weigh a page by.
fn texts(low: &str) -> impl Iterator<Item = &str> {
    let mut rest = low;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let Some(after) = rest.strip_prefix('<') else {
                let end = rest.find('<').unwrap_or(rest.len());
                let (text, tail) = rest.split_at(end);
                rest = tail;
                return Some(text);
            };
            let closing = ["script", "style", "noscript"].iter().find(|name| after.starts_with(**name));
            rest = match closing {
                Some(name) => after.find(&format!("</{name}")).map_or("", |at| &after[at..]),
                None => after,
            };
            rest = rest.find('>').map_or("", |at| &rest[at + 1..]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(status: u16, headers: &[(&str, &str)], url: &str, body: &str) -> Option<AuthType> {
        let headers: Vec<_> = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        find_wall(&PageReply { status, headers: &headers, body, final_url: url })
    }

    #[test]
    fn login_pages_are_classified() {
        let page = "https://example.org/a";
        let login = "<form action=/login><h1>Log in</h1><input name=u><input type=\"password\"></form>";
        for (status, headers, url, body, expected) in [
            (401, vec![], page, "", Some(AuthType::Login)),
            (403, vec![], page, "<h1>Forbidden</h1>", Some(AuthType::Forbidden)),
            (403, vec![], page, login, Some(AuthType::Login)),
            (403, vec![("cf-mitigated", "challenge")], page, "", Some(AuthType::Cloudflare)),
            (
                503,
                vec![],
                page,
                "<title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/x></script>",
                Some(AuthType::Cloudflare),
            ),
            (
                200,
                vec![],
                page,
                "<p>Please verify you are human</p><div class=\"h-captcha\"></div>",
                Some(AuthType::Captcha),
            ),
            (429, vec![], page, "<p>Our systems have detected unusual traffic</p>", Some(AuthType::Captcha)),
            (503, vec![], page, "<p>Enable JavaScript and cookies to continue</p>", Some(AuthType::JsChallenge)),
            (200, vec![], "https://example.org/login?next=/a", login, Some(AuthType::Login)),
            (200, vec![], page, "<h1>ログイン</h1><input type=password>", Some(AuthType::Login)),
            (200, vec![], page, "<p>How hCaptcha works</p><p>plain text about it</p>", None),
            (429, vec![], page, "<p>Too many requests</p>", None),
            (404, vec![], page, "", None),
            (503, vec![], page, "<p>Down for maintenance</p>", None),
        ] {
            assert_eq!(wall(status, &headers, url, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_page_with_much_text_is_a_page() {
        let article = format!(
            "<p>{}</p><form>Log in <input type=password></form><div class=g-recaptcha></div>",
            "Captcha words. ".repeat(200)
        );
        assert_eq!(wall(200, &[], "https://example.org/login-history", &article), None);
    }
}
