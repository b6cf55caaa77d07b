//! The listeners: accepting connections on TCP and on the Unix socket, until the shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::Extension;
use axum::middleware::from_fn;
use axum::serve::{Listener, ListenerExt};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use matsu_core::limits::LINGER;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Presence};
use crate::connections::arrival::{Arrival, TimedBody};
use crate::connections::disconnects::{Carried, Noticing};
use crate::connections::unauthenticated::{Connections, Unauthenticated};
use crate::guards::revocation;
use crate::http::{Transport, router};
use crate::mcp;
use crate::peer::{self, Arrived, Peer};

/// Serves HTTP on TCP until the app's shutdown.
pub async fn serve_tcp(app: App, listener: TcpListener) {
    let router = router(&app, Transport::Tcp);
    serve_tcp_with(app, listener, router).await;
}

/// The same listener with other routes.
pub async fn serve_tcp_with(app: App, listener: TcpListener, router: axum::Router) {
    // Answers are small and clients wait for them.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set; replies may be late");
        }
    });
    let unauthenticated_connections = Connections::new(*app.bounds(), *app.runtime().clock());
    let meet = async move |address: SocketAddr| unauthenticated_connections.admit(address.ip()).await.map(Arc::new);
    serve(app, listener, meet, move |app, stream, unauthenticated| {
        converse(app, router.clone(), stream, Some(unauthenticated))
    })
    .await;
}

/// Serves the Unix socket until the app's shutdown: HTTP for commands, MCP for relays.
pub async fn serve_socket<L>(app: App, listener: L)
where
    L: Listener<Io = UnixStream>,
    L::Addr: Send,
{
    let router = router(&app, Transport::Socket);
    let watching = revocation::watch(app.clone());
    // Only processes of this user can connect, and they are counted as what they start.
    let meet = async |_| Some(());
    let serving = serve(app, listener, meet, move |app, stream, ()| classify(app, router.clone(), stream));
    tokio::join!(serving, watching);
}

/// A relay begins with its preamble, and the supervisor of a run with a line of its own: both are JSON, and no HTTP
/// method begins with a brace.
async fn classify(app: App, router: axum::Router, stream: UnixStream) {
    let peer = Peer { ancestry: peer::ancestry(&app, &stream).await, ..Peer::default() };
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let arrived = app.runtime().clock().within(app.bounds().request, peer::arrive(&app, peer, &mut reader)).await;
    let Some(Ok(Some(Arrived { peer, preamble }))) = arrived else { return };
    match preamble {
        Some(preamble) => {
            let _present = Presence::enter(&app);
            if let Err(error) = mcp::socket::converse(app.clone(), peer, &preamble, reader, writer).await {
                tracing::debug!(%error, "relay disconnected");
            }
        }
        None => {
            let router = router.layer(from_fn(peer::note)).layer(Extension(peer));
            converse(app, router, tokio::io::join(reader, writer), None).await;
        }
    }
}

async fn serve<L, M, C>(
    app: App,
    mut listener: L,
    meet: impl AsyncFn(L::Addr) -> Option<M>,
    converse: impl Fn(App, L::Io, M) -> C,
) where
    L: Listener,
    C: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = app.shutdown().cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (stream, address) = listener.accept() => {
                // Nothing else is accepted while this one waits for a free place: the others wait in the kernel.
                let met = tokio::select! {
                    met = meet(address) => met,
                    () = app.shutdown().cancelled() => break,
                };
                match met {
                    Some(met) => drop(connections.spawn(converse(app.clone(), stream, met))),
                    None => app.refusals().note("", "there are too many connections"),
                }
            }
        }
    }
    let drain = async { while connections.join_next().await.is_some() {} };
    if app.runtime().clock().within(LINGER, drain).await.is_none() {
        connections.shutdown().await;
    }
}

/// Bytes of a request's head, which is read before anything is known about the sender.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// One connection, to its end or to the shutdown.
async fn converse<S>(app: App, router: axum::Router, stream: S, unauthenticated: Option<Arc<Unauthenticated>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _present = Presence::enter(&app);
    let shutdown: CancellationToken = app.shutdown().clone();
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    let (clock, within) = (*app.runtime().clock(), app.bounds().request);
    builder.http1().timer(hyper_util::rt::TokioTimer::new()).header_read_timeout(within).max_buf_size(HEAD_BYTES_MAX);
    let carried = Carried::default();
    let arrival = Arrival::default();
    let (on_this, router) = (carried.clone(), TowerToHyperService::new(router));
    let (met, arriving) = (unauthenticated.clone(), arrival.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        on_this.begin();
        request.extensions_mut().insert(on_this.clone());
        if let Some(unauthenticated) = &met {
            request.extensions_mut().insert(Arc::clone(unauthenticated));
        }
        router.call(request.map(|body| TimedBody::new(body, arriving.clone(), clock, within)))
    });
    let (stream, was_reset) = Noticing::new(stream, arrival, clock, within);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = must_close(unauthenticated.as_deref()) => Ok(()),
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = &ended {
        tracing::debug!(%error, "a connection broke");
    }
    let were_read = ended.is_ok() && !was_reset.load(Ordering::SeqCst);
    carried.end(were_read, app.runtime()).await;
}

async fn must_close(unauthenticated: Option<&Unauthenticated>) {
    match unauthenticated {
        Some(unauthenticated) => unauthenticated.closes().await,
        None => std::future::pending().await,
    }
}
