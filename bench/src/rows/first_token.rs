//! How soon a model's first word is at the reader: over Matsu's REST against the same model read bare, alone and while
//! forty-nine other chats speak.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bench_peer::Durability;
use rusqlite::Connection;
use serde_json::Value;

use crate::bench::Bench;
use crate::measure::Percentiles;
use crate::peers::bare_axum;
use crate::peers::mcp_servers::Daemon;
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds};

const OTHERS: usize = 49;
const PIECE_EVERY: Duration = Duration::from_millis(5);
/// Lines until a chat is followed by a new one: a model is sent the whole chat with each line, so in a long one the
/// requests would be measured, and the bare stream has none.
const LINES_MAX: usize = 10;
const READ_MAX: Duration = Duration::from_secs(60);
/// What the stream of a chat says when no model is answering.
const AT_REST: &str = "\"answering\":false";

pub fn run(bench: &Bench) -> Result<Section> {
    let bar = "≤ 1.5 ms over a bare stream at NORMAL, at FULL also over a bare commit; among fifty chats ≤ 50 ms more";
    let mut section = Section::new("First token of a chat with a model", bar);
    let model = model()?;
    let daemons = [Durability::Normal, Durability::Full].map(|durability| launch(bench, model, durability));
    let [normal, full] = daemons;
    let (normal, full) = (normal?, full?);
    let ledger = bare_axum::open_ledger(&bench.fresh_folder()?.join("ledger.db"))?;
    let samples = bench.size.pick(20, 200);
    let (mut chat, mut other) = (Chat::open(&full, 0)?, Chat::open(&normal, 0)?);
    let (mut bare, mut disk, mut at_normal, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for sample in 0..samples {
        if sample % LINES_MAX == 0 {
            (chat, other) = (chat.follow_up(&full)?, other.follow_up(&normal)?);
        }
        bare.push(read_bare(model)?);
        disk.push(commit(&ledger)?);
        at_normal.push(other.first_token(&normal)?);
        alone.push(chat.first_token(&full)?);
    }
    let talking: Vec<Chat> = (1..=OTHERS).map(|n| Chat::open(&full, n)).collect::<Result<_>>()?;
    let drains: Vec<_> = talking.into_iter().map(|chat| chat.talk(&full)).collect::<Result<_>>()?;
    let mut among = Vec::new();
    for sample in 0..samples {
        if sample % LINES_MAX == 0 {
            chat = chat.follow_up(&full)?;
        }
        among.push(chat.first_token(&full)?);
    }
    // Those who talk go on until the daemon ends with this row.
    let still = drains.iter().filter(|drain| !drain.is_finished()).count();
    ensure!(still == OTHERS, "only {still} of {OTHERS} were still talking");
    let of = |values: &[u64]| Percentiles::of(values.iter().copied());
    let found = (of(&bare)?, of(&disk)?, of(&at_normal)?, of(&alone)?, of(&among)?);
    let (Some(bare_at), Some(disk_at), Some(normal_at), Some(alone_at), Some(among_at)) = found else {
        return Ok(Section::skipped("First token of a chat with a model", bar, "no samples"));
    };
    let more = |own: u64, base: u64| Some(own.saturating_sub(base) as f64);
    let mut judge = |bar: &str, seen, most| section.verdicts.push(Verdict::at_most(bar, seen, most, milliseconds));
    judge("NORMAL, over a bare stream, p50 ≤ 1.5 ms", more(normal_at.p50_ns, bare_at.p50_ns), 1.5e6);
    let limit = bare_at.p50_ns + disk_at.p50_ns;
    judge("FULL, over a bare stream and a bare commit, p50 ≤ 1.5 ms", more(alone_at.p50_ns, limit), 1.5e6);
    judge("FULL, over a bare stream alone, p50 ≤ 1.5 ms", more(alone_at.p50_ns, bare_at.p50_ns), 1.5e6);
    judge("among fifty, the worst ≤ 50 ms later", more(among_at.max_ns, alone_at.p50_ns), 5e7);
    let all = [
        ("bare stream", bare),
        ("bare commit (FULL)", disk),
        ("Matsu (NORMAL)", at_normal),
        ("Matsu (FULL)", alone),
        ("Matsu (FULL) among fifty", among),
    ];
    section.add_latencies("until the first word", &all.map(|(name, values)| (name.to_owned(), values)))?;
    section.notes.push(
        "From just before a line is posted until its first word is read from the chat's stream; the line is stored \
         before the model is asked. A chat is followed by a new one after ten lines. Each of the others says a piece every 5 ms and has a reader of its own."
            .to_owned(),
    );
    section.notes.push(
        "How long the disk takes is not Matsu's to say: a line is one commit, and at FULL one bare commit of the same \
         run is taken off in the second verdict. The third takes off nothing."
            .to_owned(),
    );
    Ok(section)
}

fn launch(bench: &Bench, model: SocketAddr, durability: Durability) -> Result<Daemon> {
    let synchronous = if durability == Durability::Full { "full" } else { "normal" };
    let config = format!(
        "[store]\nsynchronous = \"{synchronous}\"\n\
         [providers.quick]\nwire = \"openai_chat\"\nmodel = \"quick\"\nbase_url = \"http://{model}/v1\"\n\
         [providers.talker]\nwire = \"openai_chat\"\nmodel = \"talker\"\nbase_url = \"http://{model}/v1\"\n"
    );
    Daemon::launch_with(bench, &config)
}

/// How long one row takes until it is on the disk.
fn commit(ledger: &Connection) -> Result<u64> {
    let began = Instant::now();
    ledger.prepare_cached(bare_axum::ENDED)?.execute([])?;
    Ok(u64::try_from(began.elapsed().as_nanos())?)
}

/// A model that answers at once; `talker` speaks for ever.
fn model() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // A client that leaves ends its answer.
                let _ = answer(connection);
            });
        }
    });
    Ok(address)
}

fn answer(mut connection: TcpStream) -> Result<()> {
    connection.set_nodelay(true)?;
    let request = read_request(&mut connection)?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let piece = |text: &str| {
        let delta = serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
        format!("data: {delta}\n\n")
    };
    connection.write_all(format!("{head}{}", piece(&word(&request))).as_bytes())?;
    if request.contains("\"talker\"") {
        loop {
            std::thread::sleep(PIECE_EVERY);
            connection.write_all(piece("and so on ").as_bytes())?;
        }
    }
    connection.write_all(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )?;
    Ok(())
}

/// The answer to `question-N` is `word-N.`, so that no reader takes an older one for it.
fn word(request: &str) -> String {
    let number: String =
        request.rsplit("question-").next().unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    format!("word-{number}.")
}

fn read_request(connection: &mut TcpStream) -> Result<String> {
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 16 * 1024];
        let length = connection.read(&mut piece)?;
        ensure!(length > 0, "the client left");
        read.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Ok(text.into_owned());
            }
        }
    }
}

/// A stream, and what was read of it beyond the words that were looked for.
struct Heard {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Heard {
    fn of(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Reads until these words are there.
    fn until(&mut self, words: &str) -> Result<()> {
        loop {
            if let Some(at) = self.read.windows(words.len()).position(|window| window == words.as_bytes()) {
                self.read.drain(..at + words.len());
                return Ok(());
            }
            // The end of it stays, in case the words are torn.
            self.read.drain(..self.read.len().saturating_sub(words.len()));
            let mut piece = [0; 64 * 1024];
            let length = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            ensure!(length > 0, "the stream ended before {words}");
            self.read.extend_from_slice(&piece[..length]);
        }
    }
}

fn read_bare(model: SocketAddr) -> Result<u64> {
    let body = "{\"model\":\"quick\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"question-7\"}]}";
    let request =
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let began = Instant::now();
    let mut stream = TcpStream::connect(model)?;
    stream.set_nodelay(true)?;
    stream.write_all(request.as_bytes())?;
    Heard::of(stream).until("word-7.")?;
    Ok(u64::try_from(began.elapsed().as_nanos())?)
}

fn post(daemon: &Daemon, path: &str, text: &str) -> Result<Value> {
    daemon.http()?.post(path, &[], &serde_json::json!({ "content": text }).to_string())
}

struct Chat {
    id: String,
    stream: Heard,
    asked: usize,
}

impl Chat {
    fn open(daemon: &Daemon, number: usize) -> Result<Self> {
        let made = daemon.http()?.post("/api/v1/chats", &[], "{\"models\":[]}")?;
        let id = made["chat_id"].as_str().context("no chat was opened")?.to_owned();
        let mut stream = TcpStream::connect(daemon.address)?;
        stream.set_read_timeout(Some(READ_MAX))?;
        let head = format!("GET /api/v1/chats/{id}/stream HTTP/1.1\r\nhost: localhost\r\n");
        stream.write_all(format!("{head}authorization: Bearer {}\r\n\r\n", daemon.token).as_bytes())?;
        let mut stream = Heard::of(stream);
        stream.until(AT_REST)?;
        Ok(Self { id, stream, asked: number * 1_000_000 })
    }

    /// A new chat that goes on with the numbers of this one.
    fn follow_up(&self, daemon: &Daemon) -> Result<Self> {
        Ok(Self { asked: self.asked, ..Self::open(daemon, 0)? })
    }

    fn path(&self) -> String {
        format!("/api/v1/chats/{}/messages", self.id)
    }

    /// From the line to its first word, and on to the end of the answer. The poster is another thread, as the page's
    /// two connections are two.
    fn first_token(&mut self, daemon: &Daemon) -> Result<u64> {
        self.asked += 1;
        let (path, line) = (self.path(), format!("@quick question-{}", self.asked));
        let began = Instant::now();
        let first = std::thread::scope(|scope| {
            let posted = scope.spawn(|| post(daemon, &path, &line));
            let seen = self.stream.until(&format!("word-{}.", self.asked)).map(|()| began.elapsed());
            posted.join().map_err(|_| anyhow::anyhow!("the post panicked"))??;
            seen
        })?;
        self.stream.until(AT_REST)?;
        Ok(u64::try_from(first.as_nanos())?)
    }

    /// Has the talker speak, and reads what it says for as long as it comes.
    fn talk(self, daemon: &Daemon) -> Result<std::thread::JoinHandle<()>> {
        post(daemon, &self.path(), &format!("@talker question-{}", self.asked))?;
        let mut stream = self.stream.stream;
        Ok(std::thread::spawn(move || {
            let mut piece = [0; 64 * 1024];
            while stream.read(&mut piece).is_ok_and(|length| length > 0) {}
        }))
    }
}
