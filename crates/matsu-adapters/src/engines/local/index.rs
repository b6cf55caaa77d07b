//! The full-text index: one writer, readers beside it, BM25 for the order.
//!
//! BM25 visits every row that has a term and every place in it, so a word that stands everywhere would make any question
//! slow and adds nothing to the order. Such words are known beforehand (`common`) and left out unless a question has no
//! others.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use matsu_core::research::merge::Hit;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::connection;
use super::folders::{Found, stat};
use super::words::{Term, TermKind, index_form, terms};

/// Characters kept of a part's beginning, to show.
const LEAD_CHARS: usize = 300;
/// A word in more than this many rows is common, and in more than this share of them.
const COMMON_ROWS_MIN: i64 = 2_000;
const COMMON_SHARE: i64 = 50;
/// So is a word that stands in so many places, if more than half of the rows have it: BM25 gives it no weight.
const COMMON_PLACES_MIN: i64 = 20_000;
/// Rows looked at where a question has common words only.
const UNRANKED_MAX: usize = 200;
/// Readers kept open.
const READERS_MAX: usize = 4;

/// A document, or a part of a long one.
#[derive(Clone, Debug)]
pub struct Part {
    path: String,
    number: i64,
    size: i64,
    changed_ns: i64,
    title: String,
    pub text: String,
    domain: String,
    year: Option<i32>,
    /// Why nothing of the file is known but its name.
    unread: Option<String>,
}

impl Part {
    pub fn new(found: &Found, number: usize, title: &str, text: &str, domain: &str, year: Option<i32>) -> Self {
        Self {
            path: found.path.to_string_lossy().into_owned(),
            number: i64::try_from(number).unwrap_or(i64::MAX),
            size: found.size,
            changed_ns: found.changed_ns,
            title: title.to_owned(),
            text: text.to_owned(),
            domain: domain.to_owned(),
            year,
            unread: None,
        }
    }

    /// With the reason why nothing of the file is known but its name, if that is so.
    pub fn unread(self, unread: Option<String>) -> Self {
        Self { unread, ..self }
    }
}

/// The index file.
pub struct Index {
    file: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    scanning: Mutex<()>,
}

impl Index {
    pub fn open(file: &Path) -> rusqlite::Result<Self> {
        let writer = Mutex::new(connection::open_writer(file)?);
        Ok(Self { file: file.to_owned(), writer, readers: Mutex::default(), scanning: Mutex::default() })
    }

    /// Held by the one scan that runs.
    pub fn begin_scan(&self) -> MutexGuard<'_, ()> {
        self.scanning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let waiting = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = waiting.map_or_else(|| connection::open_reader(&self.file), Ok)?;
        let found = look(&reader);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS_MAX {
            readers.push(reader);
        }
        found
    }

    /// Whether one of the folders was never read to its end.
    pub fn has_unread(&self, folders: &[PathBuf]) -> rusqlite::Result<bool> {
        self.read(|reader| {
            let mut known = reader.prepare_cached("SELECT 1 FROM notes WHERE name = ?1")?;
            for folder in folders {
                if !known.exists([note_of(&folder.to_string_lossy())])? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Whether there is a document with text below one of the folders.
    pub fn has_text(&self, folders: &[PathBuf]) -> rusqlite::Result<bool> {
        self.read(|reader| {
            let mut any = reader
                .prepare_cached("SELECT 1 FROM documents WHERE path >= ?1 AND path < ?2 AND lead <> '' LIMIT 1")?;
            for folder in folders {
                if any.exists(below(folder))? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Files below the folders that could not be read, each with the reason.
    pub fn unread(&self, folders: &[PathBuf], rows_max: usize) -> rusqlite::Result<Vec<(String, String)>> {
        self.read(|reader| {
            let mut found = Vec::new();
            for folder in folders {
                let sql = "SELECT path, reason FROM unread WHERE path >= ?1 AND path < ?2 ORDER BY path LIMIT ?3";
                let mut rows = reader.prepare_cached(sql)?;
                let [from, to] = below(folder);
                let rows = rows.query_map(params![from, to, i64::try_from(rows_max).unwrap_or(i64::MAX)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
                found.extend(rows.collect::<rusqlite::Result<Vec<(String, String)>>>()?);
            }
            found.retain(|(path, _)| stat(path.into()).is_some());
            found.truncate(rows_max);
            Ok(found)
        })
    }

    /// A file that cannot be opened now; it is tried again.
    pub fn note_unread(&self, path: &Path, reason: &str) -> rusqlite::Result<()> {
        note_unread(&self.writer(), &path.to_string_lossy(), reason)
    }

    pub fn note_read(&self, folder: &str) -> rusqlite::Result<()> {
        let writer = self.writer();
        writer.execute("INSERT OR REPLACE INTO notes (name, value) VALUES (?1, 1)", [note_of(folder)])?;
        Ok(())
    }

    pub fn is_current(&self, found: &Found) -> rusqlite::Result<bool> {
        let writer = self.writer();
        let mut known = writer.prepare_cached("SELECT size, changed_ns FROM documents WHERE path = ?1 AND part = 0")?;
        let row: Option<(i64, i64)> =
            known.query_row([found.path.to_string_lossy()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        Ok(row == Some((found.size, found.changed_ns)))
    }

    /// Writes parts; the first part of a document replaces all that was known of it.
    pub fn write(&self, parts: &[Part]) -> rusqlite::Result<()> {
        let mut writer = self.writer();
        let tx = writer.transaction()?;
        for part in parts {
            if part.number == 0 {
                remove_document(&tx, &part.path)?;
            }
            let lead: String =
                part.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LEAD_CHARS).collect();
            tx.prepare_cached(
                "INSERT INTO documents (path, part, size, changed_ns, title, lead, domain, year) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                part.path,
                part.number,
                part.size,
                part.changed_ns,
                part.title,
                lead,
                part.domain,
                part.year
            ])?;
            let id = tx.last_insert_rowid();
            tx.prepare_cached("INSERT INTO words (rowid, title, body) VALUES (?1, ?2, ?3)")?.execute(params![
                id,
                index_form(&part.title),
                index_form(&part.text)
            ])?;
            if let Some(reason) = &part.unread {
                note_unread(&tx, &part.path, reason)?;
            }
        }
        tx.commit()
    }

    /// Removes the documents of a folder whose files are gone; how many there were.
    pub fn remove_gone(&self, folder: &Path) -> rusqlite::Result<usize> {
        let [mut after, to] = below(folder);
        let mut removed = 0;
        loop {
            let paths = self.paths_after(&after, &to)?;
            let Some(last) = paths.last() else { return Ok(removed) };
            after.clone_from(last);
            let gone: Vec<&String> = paths.iter().filter(|path| stat(path.into()).is_none()).collect();
            let mut writer = self.writer();
            let tx = writer.transaction()?;
            for path in &gone {
                remove_document(&tx, path)?;
            }
            tx.commit()?;
            removed += gone.len();
        }
    }

    fn paths_after(&self, after: &str, to: &str) -> rusqlite::Result<Vec<String>> {
        let writer = self.writer();
        let mut rows = writer.prepare_cached(
            "SELECT path FROM documents WHERE path > ?1 AND path < ?2 AND part = 0 ORDER BY path LIMIT 1000",
        )?;
        rows.query_map([after, to], |row| row.get(0))?.collect()
    }

    /// Finds out anew which words stand in so many rows that they distinguish nothing. Reads the whole vocabulary, so
    /// it is done only when the number of rows has changed by a tenth.
    pub fn refresh_common(&self) -> rusqlite::Result<()> {
        let mut writer = self.writer();
        let rows: i64 = writer.query_row("SELECT count(*) FROM documents", [], |row| row.get(0))?;
        let counted = "SELECT value FROM notes WHERE name = 'common'";
        let before: i64 = writer.query_row(counted, [], |row| row.get(0)).optional()?.unwrap_or(0);
        if (rows - before).abs() * 10 <= before {
            return Ok(());
        }
        let limit = COMMON_ROWS_MIN.max(rows / COMMON_SHARE);
        let tx = writer.transaction()?;
        tx.execute("DELETE FROM common", [])?;
        tx.execute(
            "INSERT INTO common SELECT term, doc FROM vocabulary WHERE doc > ?1 OR (cnt > ?2 AND doc * 2 > ?3)",
            [limit, COMMON_PLACES_MIN, rows],
        )?;
        tx.execute("INSERT OR REPLACE INTO notes (name, value) VALUES ('common', ?1)", [rows])?;
        tx.commit()
    }

    /// The best documents for a question, each once.
    pub fn search(&self, question: &str, folders: &[PathBuf], hits_max: u32) -> rusqlite::Result<Vec<Hit>> {
        let asked = terms(question);
        if asked.is_empty() || folders.is_empty() || hits_max == 0 {
            return Ok(Vec::new());
        }
        self.read(|reader| {
            let mut rare = Vec::new();
            for term in &asked {
                if !is_common(reader, term)? {
                    rare.push(term.expression());
                }
            }
            if rare.is_empty() {
                let all: Vec<String> = asked.iter().map(|term| format!("({})", term.expression())).collect();
                return Self::unranked(reader, &all.join(" AND "), &asked, folders, hits_max);
            }
            let found = rows(reader, &rare.join(" OR "), Order::Best, folders, hits_max as usize * 3)?;
            Ok(each_once(found, hits_max))
        })
    }

    /// A question of common words: the first rows that have them all, in the order of how often their beginning does.
    fn unranked(
        reader: &Connection,
        expression: &str,
        asked: &[Term],
        folders: &[PathBuf],
        hits_max: u32,
    ) -> rusqlite::Result<Vec<Hit>> {
        let mut found = rows(reader, expression, Order::AsFound, folders, UNRANKED_MAX)?;
        let weigh = |hit: &Hit| {
            let form = format!(" {} {} ", index_form(&hit.title), index_form(&hit.snippet));
            let count: usize = asked
                .iter()
                .flat_map(|term| &term.entries)
                .map(|entry| form.matches(&format!(" {entry} ")).count())
                .sum();
            std::cmp::Reverse(count)
        };
        found.sort_by_cached_key(weigh);
        Ok(each_once(found, hits_max))
    }
}

fn note_of(folder: &str) -> String {
    format!("read:{folder}")
}

fn note_unread(tx: &Connection, path: &str, reason: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO unread (path, reason) VALUES (?1, ?2)")?.execute([path, reason])?;
    Ok(())
}

/// The paths below a folder: those from the first text to before the second.
fn below(folder: &Path) -> [String; 2] {
    let folder = folder.to_string_lossy();
    let folder = folder.trim_end_matches('/');
    // The character after the slash.
    [format!("{folder}/"), format!("{folder}0")]
}

fn remove_document(tx: &Connection, path: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM words WHERE rowid IN (SELECT id FROM documents WHERE path = ?1)")?
        .execute([path])?;
    tx.prepare_cached("DELETE FROM documents WHERE path = ?1")?.execute([path])?;
    tx.prepare_cached("DELETE FROM unread WHERE path = ?1")?.execute([path])?;
    Ok(())
}

fn is_common(reader: &Connection, term: &Term) -> rusqlite::Result<bool> {
    let mut known = reader.prepare_cached("SELECT 1 FROM common WHERE entry = ?1")?;
    for entry in &term.entries {
        let is_known = known.exists([entry])?;
        match term.kind {
            // One common form is enough to make the whole word slow to look up.
            TermKind::Any if is_known => return Ok(true),
            TermKind::Row | TermKind::Beginning if !is_known => return Ok(false),
            _ => {}
        }
    }
    Ok(term.kind != TermKind::Any)
}

#[derive(Clone, Copy)]
enum Order {
    AsFound,
    /// The full-text index sorts its rows itself and hands out the best first, so only those few are looked up in
    /// `documents`. An order by `bm25(…)` would look up every row that has a term.
    Best,
}

fn rows(
    reader: &Connection,
    expression: &str,
    order: Order,
    folders: &[PathBuf],
    rows_max: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let places = vec!["(d.path >= ? AND d.path < ?)"; folders.len()].join(" OR ");
    let (rank, order) = match order {
        Order::AsFound => ("", ""),
        Order::Best => ("AND words.rank MATCH 'bm25(4.0, 1.0)'", "ORDER BY words.rank"),
    };
    let sql = format!(
        "SELECT d.path, d.title, d.lead, d.domain, d.year FROM words CROSS JOIN documents d ON d.id = words.rowid \
         WHERE words MATCH ? {rank} AND ({places}) {order} LIMIT {rows_max}"
    );
    let mut statement = reader.prepare_cached(&sql)?;
    let values = std::iter::once(expression.to_owned()).chain(folders.iter().flat_map(|folder| below(folder)));
    let hit = |row: &rusqlite::Row<'_>| {
        let path: String = row.get(0)?;
        Ok(Hit {
            url: url::Url::from_file_path(&path).map(String::from).unwrap_or_default(),
            title: row.get(1)?,
            snippet: row.get(2)?,
            domain: Some(row.get(3)?),
            year: row.get(4)?,
            ..Hit::default()
        })
    };
    statement.query_map(params_from_iter(values), hit)?.collect()
}

fn each_once(found: Vec<Hit>, hits_max: u32) -> Vec<Hit> {
    let mut seen = std::collections::HashSet::new();
    found.into_iter().filter(|hit| seen.insert(hit.url.clone())).take(hits_max as usize).collect()
}
