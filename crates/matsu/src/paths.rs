//! Where things lie on disk.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A socket's address holds about this many bytes on every system.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// The files of one data directory.
#[derive(Clone, Debug)]
pub struct Paths {
    pub data_dir: PathBuf,
    /// For what must be short and need not last; from the environment.
    pub runtime_dir: Option<PathBuf>,
}

impl Paths {
    pub fn default_store(&self) -> String {
        format!("sqlite:{}", self.data_dir.join("matsu.db").display())
    }

    pub fn token(&self) -> PathBuf {
        self.data_dir.join("token")
    }

    /// What this data directory is known by to the nodes of a shared store.
    pub fn host_id(&self) -> PathBuf {
        self.data_dir.join("host_id")
    }

    /// Sessions of clients, as their hooks reported them.
    pub fn parents(&self) -> PathBuf {
        self.data_dir.join("parents")
    }

    /// A line for each time that such a session was resumed.
    pub fn wakes(&self) -> PathBuf {
        self.data_dir.join("wakes.jsonl")
    }

    /// What resumed sessions printed.
    pub fn wakes_log(&self) -> PathBuf {
        self.data_dir.join("wakes.log")
    }

    /// What push services know this installation by.
    pub fn push_key(&self) -> PathBuf {
        self.data_dir.join("push-key")
    }

    /// There while the last daemon was stopped by a person: nothing starts one by itself.
    pub fn stopped(&self) -> PathBuf {
        self.data_dir.join("stopped")
    }

    /// Held by the client that starts a daemon.
    pub fn starting(&self) -> PathBuf {
        self.data_dir.join("starting.lock")
    }

    /// The log of a daemon that a client started.
    pub fn daemon_log(&self) -> PathBuf {
        self.data_dir.join("daemon.log")
    }

    pub fn server_json(&self) -> PathBuf {
        self.data_dir.join("server.json")
    }

    /// The lock of the process that serves this store: beside the file, or in the data directory where there is no
    /// file.
    pub fn serve_lock(&self, store_url: &str) -> PathBuf {
        match store_url.strip_prefix("sqlite:") {
            Some(path) => PathBuf::from(format!("{path}.lock")),
            None => self.data_dir.join("matsu.lock"),
        }
    }

    /// The daemon's socket; elsewhere, under a hash, where the path would be too long for one.
    pub fn socket(&self) -> PathBuf {
        let near = self.data_dir.join("matsu.sock");
        if near.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return near;
        }
        let digest = Sha256::digest(self.data_dir.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.short_folder().join(format!("{name}.sock"))
    }

    fn short_folder(&self) -> PathBuf {
        match &self.runtime_dir {
            Some(folder) => folder.join("matsu"),
            None => Path::new("/tmp").join(format!("matsu-{}", rustix::process::getuid().as_raw())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_data_directory_gets_a_short_socket() {
        let short = Paths { data_dir: PathBuf::from("/home/a/.local/share/matsu"), runtime_dir: None };
        assert_eq!(short.socket(), short.data_dir.join("matsu.sock"));
        let long = |name: &str| Paths {
            data_dir: PathBuf::from(format!("/{}/{name}", "x".repeat(120))),
            runtime_dir: Some(PathBuf::from("/run/user/1")),
        };
        assert!(long("a").socket().starts_with("/run/user/1/matsu"));
        assert!(long("a").socket().as_os_str().len() < SOCKET_PATH_BYTES_MAX);
        assert_ne!(long("a").socket(), long("b").socket());
    }
}
