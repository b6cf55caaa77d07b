//! A way to a daemon that can be cut: a proxy of TCP connections on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub struct Cable {
    pub address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cable {
    /// To this address, until the test program ends.
    pub fn to(far: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_cut, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (cut, open) = (Arc::clone(&is_cut), Arc::clone(&ends));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(far) else { continue };
                let copies = |stream: &TcpStream| stream.try_clone().unwrap();
                open.lock().unwrap().extend([copies(&near), copies(&far)]);
                let back = (copies(&far), copies(&near));
                thread::spawn(move || carry(near, far));
                thread::spawn(move || carry(back.0, back.1));
            }
        });
        Self { address, is_cut, ends }
    }

    /// Ends every connection and takes no new one. Whether there was one: to shut down one end may end the others.
    pub fn cut(&self) -> bool {
        self.is_cut.store(true, Ordering::SeqCst);
        let ends = std::mem::take(&mut *self.ends.lock().unwrap());
        ends.iter().filter(|end| end.shutdown(Shutdown::Both).is_ok()).count() > 0
    }

    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut part = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut part) {
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
