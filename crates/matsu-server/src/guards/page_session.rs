//! The page's session: a token in two halves. The cookie alone opens nothing, because a cookie belongs to a host and
//! every program on this machine can have the browser send it; the key lives in the page's storage, which is bound
//! to the port. Both halves together are the secret of a token in the store, so a session survives a restart, is
//! listed and can be revoked.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method, header};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::limits::{PAGE_SESSION_IDLE, PAGE_SESSION_MAX};
use matsu_core::token::Token;
use matsu_runtime::InstanceId;

use crate::app::App;
use crate::auth::origin::Addresses;
use crate::auth::{Caller, Credential, Found, TokenWish, hash, mint_secret};
use crate::problem::Problem;

/// Carries the key.
pub const KEY_HEADER: &str = "x-matsu-key";

/// No token of a client begins like this, so neither kind can be passed for the other.
pub const PREFIX: &str = "page:";

/// That a page is in use is written at most this often.
const RENEWED_EVERY: Duration = Duration::from_secs(60);

/// A session that has just begun.
pub struct SignedIn {
    pub cookie: String,
    pub key: String,
}

/// Begins a session of the store's own user.
///
/// # Errors
/// The store is not available.
pub async fn begin(app: &App, headers: &HeaderMap) -> Result<SignedIn, Problem> {
    let (half, key) = (mint_secret(), mint_secret());
    let clock = *app.runtime().clock();
    let name = format!("{PREFIX} {} ({})", browser(headers), TokenId::mint(clock.now()));
    let wish = TokenWish { expires_in: Some(PAGE_SESSION_IDLE), ..TokenWish::of_owner(name) };
    app.tokens().keep(wish, &secret(&half, &key)).await?;
    Ok(SignedIn { cookie: set_cookie(app, headers, &half, PAGE_SESSION_IDLE.as_secs()), key })
}

/// The same cookie for another while, so that only a page that is not in use is signed out.
#[must_use]
pub fn renewed(app: &App, headers: &HeaderMap) -> Option<String> {
    Some(set_cookie(app, headers, &cookie(app.addresses(), headers)?, PAGE_SESSION_IDLE.as_secs()))
}

#[must_use]
pub fn ended(app: &App, headers: &HeaderMap) -> String {
    set_cookie(app, headers, "", 0)
}

/// Whether a request tries to sign in as a page.
#[must_use]
pub fn is_attempted(headers: &HeaderMap) -> bool {
    headers.contains_key(KEY_HEADER)
}

/// The caller behind a cookie and a key.
///
/// # Errors
/// A half is missing or wrong, the session is over, or a write comes from elsewhere.
pub async fn caller(app: &App, method: &Method, headers: &HeaderMap) -> Result<(Caller, Credential), Problem> {
    let refused = || Problem::new(ErrorCode::Unauthorized, "this page is not signed in; `matsu open` signs it in");
    if !method.is_safe() {
        check_write(headers)?;
    }
    let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok()).ok_or_else(refused)?;
    let secret = secret(&cookie(app.addresses(), headers).ok_or_else(refused)?, key);
    let found = app.tokens().find(&secret).await.map_err(|error| Problem::from_store(&error))?;
    let Found::Live(token) = found else { return Err(refused()) };
    if app.runtime().clock().now().since(token.created_at) > PAGE_SESSION_MAX {
        return Err(refused());
    }
    keep_alive(app, &token).await;
    let (instance, rights) = (InstanceId::from_text(token.id.as_str()), Arc::new(token.rights()));
    let caller = Caller { principal: token.principal, instance, rights };
    Ok((caller, Credential { token: token.id, hash: hash(&secret) }))
}

/// A page that asks for something is in use: its time begins anew. Not written with every request, and not worth
/// failing one.
async fn keep_alive(app: &App, token: &Token) {
    let now = app.runtime().clock().now();
    let left = token.expires_at.map(|expires_at| expires_at.since(now));
    if left.is_some_and(|left| left + RENEWED_EVERY > PAGE_SESSION_IDLE) {
        return;
    }
    if let Err(error) = app.tokens().extend(&token.id, now.plus(PAGE_SESSION_IDLE)).await {
        tracing::debug!(%error, "browser session could not be extended");
    }
}

/// The browser names the site that a write comes from. A client that does not is no page of ours.
fn check_write(headers: &HeaderMap) -> Result<(), Problem> {
    let foreign_site = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin");
    if foreign_site || !headers.contains_key(header::ORIGIN) {
        return Err(Problem::new(
            ErrorCode::Forbidden,
            "request refused: it has no Origin header or comes from another site; send it from Matsu's page",
        ));
    }
    Ok(())
}

fn secret(half: &str, key: &str) -> String {
    format!("{PREFIX}{half}:{key}")
}

/// One name per port: two servers on one host must not take each other's.
fn cookie_name(addresses: &Addresses, headers: &HeaderMap) -> String {
    format!("matsu_{}", addresses.port(headers))
}

fn cookie(addresses: &Addresses, headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(addresses, headers);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}

/// Through the public address it is `Secure`; on loopback, where nothing is encrypted, a browser would drop such a one.
fn set_cookie(app: &App, headers: &HeaderMap, value: &str, seconds: u64) -> String {
    let name = cookie_name(app.addresses(), headers);
    let secure = if app.addresses().is_secure(headers) { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// A word for the list of sessions; what a browser says about itself is long and mostly untrue.
fn browser(headers: &HeaderMap) -> &'static str {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("");
    let known = ["Firefox", "Edg", "OPR", "Chrome", "Safari"];
    known.into_iter().find(|name| agent.contains(name)).unwrap_or("browser")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_belongs_to_its_port() {
        let both = [("host", "127.0.0.1:7878"), ("cookie", "a=1; matsu_7879=other; matsu_7878=mine")];
        let ours = Addresses::default();
        assert_eq!(cookie(&ours, &headers(&both)).as_deref(), Some("mine"));
        let other = [("host", "127.0.0.1:7880"), ("cookie", "matsu_7878=mine")];
        assert_eq!(cookie(&ours, &headers(&other)), None);
    }

    #[test]
    fn a_write_says_where_it_comes_from() {
        let same = [("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-origin")];
        assert!(check_write(&headers(&same)).is_ok());
        assert!(check_write(&headers(&[])).is_err());
        assert!(check_write(&headers(&[("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-site")])).is_err());
    }
}
