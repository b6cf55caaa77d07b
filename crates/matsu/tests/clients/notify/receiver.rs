//! A server on this machine that takes requests as a webhook, ntfy or Telegram would: by their documented protocols.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// A request that was received.
#[derive(Debug)]
pub struct Got {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The body of an answer: `None` keeps the request waiting for a while, as a long poll does.
type Answers = Arc<Mutex<Box<dyn FnMut(&Got) -> Option<String> + Send>>>;

pub struct Receiver {
    pub address: SocketAddr,
    got: mpsc::Receiver<Got>,
}

/// An address that nothing listens on.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Receiver {
    /// Answers each request with the next of these statuses, and with the last one from then on.
    pub fn at(address: SocketAddr, mut statuses: Vec<u16>) -> Self {
        Self::answering(
            address,
            move |_| if statuses.len() > 1 { statuses.remove(0) } else { statuses[0] },
            |got| {
                // A stream of answers stays open.
                if got.method == "GET" { None } else { Some(String::new()) }
            },
        )
    }

    pub fn answering(
        address: SocketAddr,
        status: impl FnMut(&Got) -> u16 + Send + 'static,
        answer: impl FnMut(&Got) -> Option<String> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (sender, got) = mpsc::channel();
        let status = Arc::new(Mutex::new(status));
        let answer: Answers = Arc::new(Mutex::new(Box::new(answer)));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (sender, status, answer) = (sender.clone(), Arc::clone(&status), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(got) = request(&stream) else { return };
                    respond(&stream, got, &sender, |got| (status.lock().unwrap())(got), &answer);
                });
            }
        });
        Self { address, got }
    }

    #[track_caller]
    pub fn next(&self, within: Duration) -> Got {
        self.got.recv_timeout(within).expect("a request comes")
    }

    /// The next message; requests that read are left out.
    #[track_caller]
    pub fn next_post(&self, within: Duration) -> Got {
        loop {
            let got = self.next(within);
            if got.method == "POST" && !got.path.ends_with("/getUpdates") {
                return got;
            }
        }
    }
}

fn request(stream: &TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Long polls are looked at again and again, for at most two seconds.
fn respond(mut stream: &TcpStream, got: Got, sender: &Sender<Got>, status: impl FnOnce(&Got) -> u16, answer: &Answers) {
    let status = if got.method == "GET" { 200 } else { status(&got) };
    let mut body = None;
    for _ in 0..40 {
        body = (answer.lock().unwrap())(&got);
        if body.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let body = body.unwrap_or_default();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = sender.send(got);
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}
