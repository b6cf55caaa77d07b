//! The socket of a run: the one way from inside a run to the daemon. What comes in is passed on; the daemon still asks
//! for the run's token. While no daemon answers, calls are held, and then answered as ones to be repeated.
#![expect(clippy::disallowed_methods, reason = "connections end with the supervisor of the run")]

use std::io;
use std::path::Path;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::RUN_CALL_HELD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::super::runs_folder::bind_in;
use super::order::RunSocket;

const RETRY_EVERY: Duration = Duration::from_millis(100);

/// Opens the socket in the run's folder, for as long as the shim lives.
///
/// # Errors
/// The folder is gone.
pub fn open(socket: &RunSocket) -> io::Result<()> {
    drop(tokio::spawn(serve(bind_in(&socket.folder, "matsu.sock")?, socket.clone())));
    Ok(())
}

async fn serve(listener: UnixListener, socket: RunSocket) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(pass_on(stream, socket.clone()))),
            // Too many open files: some will be closed.
            Err(_) => Clock::system().sleep(RETRY_EVERY).await,
        }
    }
}

async fn pass_on(mut inside: UnixStream, socket: RunSocket) {
    match reach(&socket.daemon).await {
        Some(mut daemon) => {
            if daemon.write_all(socket.introduction.as_bytes()).await.is_ok() {
                drop(tokio::io::copy_bidirectional(&mut inside, &mut daemon).await);
            }
        }
        None => refuse(&mut inside).await,
    }
}

async fn reach(daemon: &Path) -> Option<UnixStream> {
    let clock = Clock::system();
    let until = clock.instant() + RUN_CALL_HELD;
    loop {
        if let Ok(stream) = UnixStream::connect(daemon).await {
            return Some(stream);
        }
        if clock.instant() >= until {
            return None;
        }
        clock.sleep(RETRY_EVERY).await;
    }
}

/// A relay begins with a brace and is answered by a greeting; anything else is HTTP.
async fn refuse(inside: &mut UnixStream) {
    let mut first = [0_u8; 1];
    if inside.read_exact(&mut first).await.is_err() {
        return;
    }
    let error = "no Matsu daemon answers at the moment; call again later";
    let answer = if first == *b"{" {
        format!("{}\n", serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "error": error, "retryable": true }))
    } else {
        let body =
            serde_json::json!({ "error_code": "STORE_UNAVAILABLE", "detail": error, "retryable": true }).to_string();
        let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n";
        format!("{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let _ = inside.write_all(answer.as_bytes()).await;
}
