//! A wire between a store and its server that can be cut at a chosen moment.
#![allow(clippy::disallowed_methods, reason = "a proxy is made of tasks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// When to cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cut {
    Never = 0,
    /// The server never receives the commit.
    BeforeCommit = 1,
    /// The server commits, and the store never receives the answer.
    AfterCommit = 2,
}

pub struct Proxy {
    pub url: String,
    wire: Arc<Wire>,
}

struct Wire {
    cut: AtomicU8,
    /// Whether new connections are held back after the cut.
    shuts: AtomicBool,
    is_open: watch::Sender<bool>,
}

impl Wire {
    /// The cut that is due with this commit.
    fn take_cut(&self) -> u8 {
        let when = self.cut.swap(Cut::Never as u8, Ordering::SeqCst);
        if when != Cut::Never as u8 && self.shuts.swap(false, Ordering::SeqCst) {
            self.is_open.send_replace(false);
        }
        when
    }
}

impl Proxy {
    /// Stands before the server of `url`.
    pub async fn start(url: &str) -> Self {
        let (user, rest) = url.split_once('@').expect("user@host");
        let (server, path) = rest.split_once('/').expect("host/database");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{user}@{}/{path}", listener.local_addr().unwrap());
        let server = server.to_owned();
        let (is_open, mut entry) = watch::channel(true);
        let wire = Arc::new(Wire { cut: AtomicU8::new(Cut::Never as u8), shuts: AtomicBool::new(false), is_open });
        let own = Arc::clone(&wire);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                drop(entry.wait_for(|is_open| *is_open).await.unwrap());
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server, Arc::clone(&wire)));
            }
        });
        Self { url, wire: own }
    }

    pub fn cut(&self, when: Cut) {
        self.wire.cut.store(when as u8, Ordering::SeqCst);
    }

    /// As [`Proxy::cut`], and from then on new connections wait until [`Proxy::reopen`].
    pub fn cut_and_shut(&self, when: Cut) {
        self.wire.shuts.store(true, Ordering::SeqCst);
        self.cut(when);
    }

    pub fn reopen(&self) {
        self.wire.is_open.send_replace(true);
    }

    pub fn has_cut(&self) -> bool {
        self.wire.cut.load(Ordering::SeqCst) == Cut::Never as u8
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, wire: Arc<Wire>) {
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(read @ 1..) = read else { return };
                let commits = up[..read].windows(6).any(|word| word == b"COMMIT");
                let when = if commits { wire.take_cut() } else { Cut::Never as u8 };
                if when == Cut::BeforeCommit as u8 {
                    return;
                }
                if server.write_all(&up[..read]).await.is_err() {
                    return;
                }
                if when == Cut::AfterCommit as u8 {
                    // The answer shows that it is done; it goes no further. A server that cannot answer what came
                    // with the commit would give the transaction up.
                    let mut received = Vec::new();
                    while !received.windows(6).any(|word| word == b"COMMIT") {
                        let Ok(read @ 1..) = server.read(&mut down).await else { return };
                        received.extend_from_slice(&down[..read]);
                    }
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(read @ 1..) = read else { return };
                if client.write_all(&down[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
