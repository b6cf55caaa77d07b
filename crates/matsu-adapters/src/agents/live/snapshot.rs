//! Going on where another daemon stopped: what is stored is read once more, to know what it knew. Of a long stream that
//! is written down now and then, so that what is stored of it need not stay on the disk until its end.

use std::collections::HashMap;
use std::io;

use matsu_core::ports::agent::RunEvent;
use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::runs_folder::write_private;
use super::super::spool::{SpoolReader, Stream, forget_before};
use super::super::text::Utf8;
use super::{CliRun, Reading};

/// So much of a stream is read between two snapshots.
const EVERY_BYTES: u64 = 4 * 1024 * 1024;

/// At the end of a line.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    position: u64,
    decoder: Value,
    requests: u32,
    hopeless: Option<String>,
    asked_at: HashMap<String, u64>,
    named: Option<String>,
    used: Option<Usage>,
    /// What the whole conversation has cost, where the program counts so.
    conversation: Option<Usage>,
}

#[derive(Default)]
pub struct Snapshots {
    /// The position of the last one.
    last: u64,
    /// Taken, and to be written once everything before it is stored.
    taken: Option<Snapshot>,
}

impl CliRun {
    /// Reads what another daemon has stored already, to know what it knew: nothing of it is stored again.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn replay(&mut self, stored: u64) -> io::Result<()> {
        let from = match self.reading {
            Reading::Text(_) => SpoolReader::first(&self.folder.spool(), Stream::Out)?.min(stored),
            Reading::Stream { .. } => self.restore()?,
        };
        // What a snapshot has passed over said nothing that could be stored.
        let stored = stored.max(from);
        self.out = SpoolReader::new(&self.folder.spool(), Stream::Out, from);
        while self.out.position() < stored {
            let Some(mut bytes) = self.out.next()? else { break };
            let beyond = usize::try_from(self.out.position().saturating_sub(stored)).unwrap_or(0);
            bytes.truncate(bytes.len().saturating_sub(beyond));
            self.read(&bytes, stored.min(self.out.position()));
        }
        self.out = SpoolReader::new(&self.folder.spool(), Stream::Out, stored);
        // A text that was cut inside a character begins anew there.
        if let Reading::Text(utf8) = &mut self.reading {
            *utf8 = Utf8::default();
        }
        self.events.retain(|(event, _)| matches!(event, RunEvent::Session(_) | RunEvent::Usage(_)));
        self.events.iter_mut().for_each(|(_, position)| *position = stored);
        self.position = stored;
        Ok(())
    }

    pub(super) fn take_snapshot(&mut self, position: u64) {
        let is_due = position.saturating_sub(self.snapshots.last) >= EVERY_BYTES && self.snapshots.taken.is_none();
        let Reading::Stream { decoder, .. } = &self.reading else { return };
        if let Some(decoder) = is_due.then(|| decoder.state().ok()).flatten() {
            self.snapshots.last = position;
            self.snapshots.taken = Some(Snapshot {
                position,
                decoder,
                requests: self.requests,
                hopeless: self.hopeless.clone(),
                asked_at: self.asked_at.clone(),
                named: self.named.clone(),
                used: self.used,
                conversation: self.place.usage,
            });
        }
    }

    /// Everything up to `stored` is in the store. The output is removed only when the snapshot is on the disk.
    pub(super) fn keep_snapshot(&mut self, stored: u64) {
        let Some(snapshot) = self.snapshots.taken.take_if(|snapshot| snapshot.position <= stored) else { return };
        let path = self.folder.snapshot();
        let unfinished = path.with_added_extension("new");
        let written = serde_json::to_string(&snapshot)
            .map_err(io::Error::other)
            .and_then(|text| write_private(&unfinished, &text))
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if written.is_ok() {
            let _ = forget_before(&self.folder.spool(), Stream::Out, snapshot.position);
        }
    }

    /// Knows what the last snapshot knew. Returns where to read on.
    fn restore(&mut self) -> io::Result<u64> {
        let Reading::Stream { decoder, .. } = &mut self.reading else { return Ok(0) };
        let Ok(text) = std::fs::read_to_string(self.folder.snapshot()) else { return Ok(0) };
        let snapshot: Snapshot = serde_json::from_str(&text)?;
        decoder.restore(snapshot.decoder)?;
        (self.requests, self.hopeless, self.asked_at) = (snapshot.requests, snapshot.hopeless, snapshot.asked_at);
        (self.named, self.used) = (snapshot.named, snapshot.used);
        self.place.usage = snapshot.conversation;
        self.snapshots.last = snapshot.position;
        let named = self.named.clone().map(RunEvent::Session);
        let known = named.into_iter().chain(self.used.map(RunEvent::Usage));
        self.events.extend(known.map(|event| (event, snapshot.position)));
        Ok(snapshot.position)
    }
}
