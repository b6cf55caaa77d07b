//! Pages that want something first: a login, a CAPTCHA, patience. And pages that refuse.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::KEY;
use super::library::{Page, frame};

const LOGIN: &str = "<h1>Log in</h1><form action=\"/login\" method=\"post\"><input name=\"user\"><input type=\"password\" name=\"password\"><button>Log in</button></form>";

/// `/members/N`: an article with the key, a login without. Even numbers answer 401, odd ones send
/// the visitor to the login page.
pub fn members(site: u8, number: usize, headers: &HeaderMap) -> Response {
    if has_key(headers) {
        let page =
            Page { site, language: 0, topic: number % super::TOPICS.len(), number: number % super::PAGES_PER_TOPIC };
        let body = format!(
            "<article><h1>For members</h1><p>Only members read this sentence about {}.</p>{}</article>",
            page.title(),
            page.paragraphs().iter().map(|p| format!("<p>{p}</p>")).collect::<String>()
        );
        return Html(frame("en", "For members", &body)).into_response();
    }
    if number.is_multiple_of(2) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"members\"")], "").into_response();
    }
    (StatusCode::FOUND, [(header::LOCATION, format!("/login?next=/members/{number}"))]).into_response()
}

/// `/shared/N`: a client with the key is sent to an address on another host that works without one.
pub fn shared(number: usize, port: u16, headers: &HeaderMap) -> Response {
    if !has_key(headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let signed = format!("http://127.0.0.2:{port}/en/green-tea/{number}?signature=5ec2e7");
    (StatusCode::FOUND, [(header::LOCATION, signed)]).into_response()
}

fn has_key(headers: &HeaderMap) -> bool {
    let cookies = headers.get_all(header::COOKIE);
    cookies.iter().any(|value| value.to_str().is_ok_and(|text| text.split("; ").any(|pair| pair == KEY)))
}

pub fn login() -> Response {
    Html(frame("en", "Log in", LOGIN)).into_response()
}

/// `/challenge/KIND`.
pub fn challenge(kind: &str) -> Response {
    match kind {
        "cloudflare" => {
            let body = "<html><head><title>Just a moment...</title></head><body><script src=\"/cdn-cgi/challenge-platform/x.js\"></script></body></html>";
            (StatusCode::FORBIDDEN, [("cf-mitigated", "challenge")], Html(body)).into_response()
        }
        "captcha" => Html("<html><body><p>Please verify you are human.</p><div class=\"g-recaptcha\" data-sitekey=\"k\"></div></body></html>").into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, Html("<html><body><p>Checking your browser. Enable JavaScript and cookies to continue.</p></body></html>")).into_response(),
    }
}

/// `/status/CODE`.
pub fn status(code: u16) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    let mut answer = (status, Html(format!("<html><body><h1>{code}</h1></body></html>"))).into_response();
    if code == 429 {
        answer.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("7"));
    }
    answer
}
