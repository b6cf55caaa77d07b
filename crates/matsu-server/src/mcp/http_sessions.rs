//! Sessions of MCP over HTTP: whose each one is, and how many one principal may have. A client that begins one with
//! every call must not fill the memory, so the one that was idle longest ends.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use matsu_core::clock::Clock;
use matsu_core::limits::{HTTP_SESSION_KEPT, HTTP_SESSIONS_PER_PRINCIPAL_MAX};
use matsu_core::principal::Principal;
use rmcp::transport::streamable_http_server::session::SessionManager;
use tokio::time::Instant;

use super::kept_answers::Sessions;
use crate::auth::Caller;

const ID: &str = "mcp-session-id";

/// Which sessions are open, and for whom.
pub struct HttpSessions {
    manager: Arc<Sessions>,
    clock: Clock,
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    principal: Principal,
    last_used: Instant,
    /// Shared with every answer that is under way.
    busy: Arc<()>,
}

impl Open {
    /// Idle ones end before busy ones, and of these the one that was used first.
    fn rank(&self) -> (bool, Instant) {
        (Arc::strong_count(&self.busy) > 1, self.last_used)
    }
}

impl HttpSessions {
    pub fn new(manager: Arc<Sessions>, clock: Clock) -> Arc<Self> {
        Arc::new(Self { manager, clock, open: Mutex::default() })
    }

    /// Keeps the session busy until the value is dropped; `None` if the caller has no such session.
    fn enter(&self, id: &str, caller: &Principal) -> Option<Arc<()>> {
        let now = self.clock.instant();
        let mut open = self.lock();
        let session = open.get_mut(id).filter(|session| session.principal == *caller)?;
        session.last_used = now;
        Some(Arc::clone(&session.busy))
    }

    /// Notes a new session, and ends those above the limit.
    async fn opened(&self, id: &str, caller: &Principal) -> Arc<()> {
        let (now, busy) = (self.clock.instant(), Arc::new(()));
        let session = Open { principal: caller.clone(), last_used: now, busy: Arc::clone(&busy) };
        let over: Vec<String> = {
            let mut open = self.lock();
            let is_old = |session: &Open| !session.rank().0 && now - session.last_used >= HTTP_SESSION_KEPT;
            let mut over: Vec<String> =
                open.iter().filter(|(_, session)| is_old(session)).map(|(id, _)| id.clone()).collect();
            let own = open.iter().filter(|(_, session)| session.principal == *caller && !is_old(session));
            let mut own: Vec<_> = own.map(|(id, session)| (session.rank(), id.clone())).collect();
            if own.len() >= HTTP_SESSIONS_PER_PRINCIPAL_MAX {
                own.sort_unstable();
                let too_many = own.len() + 1 - HTTP_SESSIONS_PER_PRINCIPAL_MAX;
                over.extend(own.into_iter().take(too_many).map(|(_, id)| id));
            }
            over.iter().for_each(|id| drop(open.remove(id)));
            open.insert(id.to_owned(), session);
            over
        };
        for id in over {
            if let Err(error) = self.manager.close_session(&id.into()).await {
                tracing::debug!(%error, "an MCP session was over before it was ended");
            }
        }
        busy
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn id_in(headers: &HeaderMap) -> Option<String> {
    headers.get(ID).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Around `/mcp`: a session exists for the caller that opened it and for no other.
pub async fn belong(State(sessions): State<Arc<HttpSessions>>, request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().map(|caller| caller.principal.clone()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let (named, ends) = (id_in(request.headers()), *request.method() == Method::DELETE);
    let busy = match &named {
        Some(id) => match sessions.enter(id, &caller) {
            Some(busy) => Some(busy),
            None => return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response(),
        },
        None => None,
    };
    let mut response = next.run(request).await;
    // Ended at once, not later: the Python SDK takes 202 for a failure.
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let busy = match (named, id_in(response.headers())) {
        (Some(id), _) => {
            if ends && response.status().is_success() {
                sessions.lock().remove(&id);
            }
            busy
        }
        (None, Some(id)) => Some(sessions.opened(&id, &caller).await),
        (None, None) => None,
    };
    match busy {
        Some(busy) => response.map(|body| Body::new(Held { body, _busy: busy })),
        None => response,
    }
}

/// An answer that keeps its session busy until it is sent.
struct Held {
    body: Body,
    _busy: Arc<()>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_session_that_was_idle_longest_ends() {
        let clock = Clock::system();
        let sessions = HttpSessions::new(Arc::new(Sessions::new(clock)), clock);
        let me = Principal::local_user();
        let busy = sessions.opened("busy", &me).await;
        for nth in 1..HTTP_SESSIONS_PER_PRINCIPAL_MAX {
            clock.sleep(std::time::Duration::from_millis(1)).await;
            drop(sessions.opened(&format!("s{nth}"), &me).await);
        }
        drop(sessions.opened("one more", &me).await);
        assert!(sessions.enter("s1", &me).is_none(), "the oldest idle one");
        assert!(sessions.enter("busy", &me).is_some() && sessions.enter("s2", &me).is_some());
        assert_eq!(sessions.lock().len(), HTTP_SESSIONS_PER_PRINCIPAL_MAX);
        drop(busy);
        clock.sleep(HTTP_SESSION_KEPT).await;
        drop(sessions.opened("late", &me).await);
        assert_eq!(sessions.lock().len(), 1, "unused ones are over");
    }
}
