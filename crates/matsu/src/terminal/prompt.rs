//! One line from the person at the terminal. The terminal stays in its ordinary mode, so that a command that ends
//! while it asks leaves nothing behind.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Whether a person can be asked here.
pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Lines as they are typed. One thread reads them for as long as the process lives: a read cannot be given up.
static TYPED: LazyLock<Mutex<UnboundedReceiver<String>>> = LazyLock::new(|| {
    let (lines, typed) = unbounded_channel();
    let read = move || {
        let mut line = String::new();
        while let Ok(1..) = std::io::stdin().lock().read_line(&mut line) {
            if lines.send(line.trim().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    };
    // Where no thread can be made, nothing is ever typed: the channel is closed.
    let _ = std::thread::Builder::new().name("prompt".to_owned()).spawn(read);
    Mutex::new(typed)
});

/// Asks for a line. `None`: nothing will come any more.
pub async fn line(words: &str) -> Option<String> {
    // What was typed before it was asked for answers another question.
    while TYPED.lock().unwrap_or_else(PoisonError::into_inner).try_recv().is_ok() {}
    eprint!("{words}");
    let _ = std::io::stderr().flush();
    std::future::poll_fn(|cx| TYPED.lock().unwrap_or_else(PoisonError::into_inner).poll_recv(cx)).await
}
