//! The page: files that were built into the binary, and the headers they are served under.
//!
//! Nothing here shows anything of the work: the page comes empty and asks REST for everything.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

/// A built file. Hashed names never change their content.
struct Asset {
    path: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What stands at `/` when the page was not built.
const PLACEHOLDER: &str = include_str!("page/placeholder.html");

/// Addresses that the page itself understands. Each has everything below it.
const PLACES: &[&str] = &[
    "inbox",
    "tasks",
    "jobs",
    "auth",
    "agents",
    "sessions",
    "chat",
    "schedules",
    "webhooks",
    "usage",
    "research",
    "notifications",
    "calibration",
    "rules",
    "settings",
    "doctor",
    "login",
];

/// Files of the page that lie at the top: its icons, and what makes it installable. A service worker is in charge of
/// the folder it lies in.
const TOP_FILES: &[&str] =
    &["favicon.svg", "icon-192.png", "icon-512.png", "manifest.webmanifest", "service-worker.js"];

/// Text of others is shown as text: no foreign script, no frame, no image from elsewhere, no markup made of strings.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html matsu-worker";

pub fn routes() -> Router<App> {
    let mut routes = Router::new().route("/", get(index)).route("/assets/{*path}", get(asset));
    for file in TOP_FILES {
        routes = routes.route(&format!("/{file}"), get(|| async { found(file, &HeaderMap::new()) }));
    }
    for place in PLACES {
        routes = routes.route(&format!("/{place}"), get(index)).route(&format!("/{place}/{{*rest}}"), get(index));
    }
    routes.layer(map_response(harden))
}

/// Whether a path shows the page or a part of it, which every user of this machine may see.
pub fn is_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or("");
    let is_file = TOP_FILES.contains(&first) && path.len() == first.len() + 1;
    matches!(first, "" | "assets") && !path.starts_with("//") || is_file || PLACES.contains(&first)
}

/// Tells a page that another one was built meanwhile. Empty where none was built.
pub fn build() -> &'static str {
    BUILD
}

async fn index(headers: HeaderMap) -> Response {
    if ASSETS.is_empty() {
        let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
        return (kind, PLACEHOLDER).into_response();
    }
    found("index.html", &headers)
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    found(&format!("assets/{path}"), &headers)
}

fn found(path: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or("");
    let lasts = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = [(header::CONTENT_TYPE, asset.kind), (header::CACHE_CONTROL, lasts), (header::VARY, "accept-encoding")];
    if !asset.gzip.is_empty() && accepts.split(',').any(|name| name.trim().starts_with("gzip")) {
        return (kind, [(header::CONTENT_ENCODING, "gzip")], asset.gzip).into_response();
    }
    (kind, asset.plain).into_response()
}

async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::is_page;

    #[test]
    fn only_places_of_the_page_are_open() {
        for page in
            ["/", "/inbox", "/tasks/task_1", "/assets/index-1.js", "/login", "/favicon.svg", "/manifest.webmanifest"]
        {
            assert!(is_page(page), "{page}");
        }
        for other in [
            "/api/v1/tasks",
            "/mcp",
            "/metrics",
            "//api/v1/tasks",
            "/control/info",
            "/test/tasks",
            "/tasksx",
            "//icon-192.png",
        ] {
            assert!(!is_page(other), "{other}");
        }
    }
}
