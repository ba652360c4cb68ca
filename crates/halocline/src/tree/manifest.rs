//! The manifest: the append-only log of the tree's edits, and the file that names the live one.
//!
//! ```text
//! MANIFEST-NNNNNN
//! offset  0     magic            8 bytes "HALOMNFT"
//!         8     format version   u32, 1
//!         12    zero             u32
//!         16    database id      16 bytes, random, the same in all manifests of a database
//!         32    number           u64, the NNNNNN of the name
//!         40    snapshot end     u64, offset behind the records that hold the whole state at the beginning
//!         48    zero             u64
//!         56    checksum         u64, of bytes 0..56 at place (number, 0)
//!         512   mark A           end u64, checksum u64 of it at place (number, 512)
//!         1024  mark B           the same at place (number, 1024)
//!         4096  record*
//!
//! record        checksum u64     of the rest without the padding, at place (number, offset of the record)
//!               len u32          bytes of the payload
//!               kind u32         1: a group of edits
//!               payload          see `edit`
//!               padding          zeros to a multiple of 8
//!
//! CURRENT       "MANIFEST-NNNNNN " and 16 hexadecimal digits: the checksum of the name at place 0; newline
//! ```
//!
//! **Appending.** A record is written behind the last one and synced; then the marks are written in turn, not
//! synced: "everything below `end` was durable". A mark reaches the disk with the next sync, or whenever the system
//! likes; it is never there before what it speaks of. So damage below a mark is damage, and what is cut short above
//! every mark is an append that never completed. A clean close syncs its mark too.
//!
//! **Recovery** reads records up to the end. A record that is cut short or does not match its checksum is passed
//! over if it lies above every mark and no valid record follows it; else it is [`Corruption`](ErrorKind::Corruption).
//! Unless the last append was a clean close, a new manifest is begun with the whole state, so nothing is ever
//! appended behind a torn record, and what was only in the page cache becomes durable before it is acted upon.
//!
//! **Switching.** The new manifest is written and synced, then its name; then `CURRENT` is written under another
//! name, synced, renamed, and the directory synced; then the old manifest is removed. `CURRENT` names a complete
//! manifest at every moment.
//!
//! **Failure.** After a failed append or sync nothing is appended again: what is on disk is then not known.

use super::edit::Edit;
pub(crate) use super::state::State;
use crate::io::checksum::{checksum, place};
use crate::io::{File, OpenMode, Vfs};
use crate::{Error, ErrorKind, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod read;
#[cfg(test)]
mod tests;

use read::{Contents, read_current};

const MAGIC: &[u8; 8] = b"HALOMNFT";
const FORMAT: u32 = 1;
const HEADER: usize = 64;
const MARKS: [u64; 2] = [512, 1024];
const MARK: usize = 16;
const RECORDS: u64 = 4096;
const RECORD_HEADER: usize = 16;
const KIND_EDITS: u32 = 1;
/// Longest payload. A torn append leaves no more than one such record.
const MAX_PAYLOAD: usize = 64 << 20;
/// A snapshot is written in records of about this size.
const SNAPSHOT_RECORD: usize = 1 << 20;
/// A manifest is not replaced before it has grown by this many bytes, or by 4 times its snapshot.
const MIN_GROWTH: u64 = 64 << 10;

const PREFIX: &str = "MANIFEST-";
const CURRENT: &str = "CURRENT";
const CURRENT_NEW: &str = "CURRENT.new";
const MAX_CURRENT: usize = 128;
/// The file that locks the directory: the only other one that may be there before `CURRENT`.
pub(crate) const LOCK: &str = "LOCK";

/// Whether a directory holds a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It does not.
    Absent,
    /// The creation of one was cut short before it was complete; there is nothing in it.
    Unfinished,
    /// It does, sound or damaged.
    Present,
}

/// The open manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    path: PathBuf,
    /// `None` if read-only.
    file: Option<Arc<dyn File>>,
    number: u64,
    database: [u8; 16],
    /// Where the next record goes.
    end: u64,
    /// A new manifest is begun when `end` is beyond this.
    replace_at: u64,
    /// Which mark is written next.
    next_mark: usize,
    state: State,
    failed: Option<Error>,
    bytes_written: u64,
}

fn name_of(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let number = digits.parse().ok()?;
    // Only the spelling that this module writes.
    (name_of(number) == name).then_some(number)
}

/// Whether a file is named like a table or a log segment.
fn is_data(name: &str) -> bool {
    let stem = name.strip_suffix(".tbl").or_else(|| name.strip_suffix(".log"));
    stem.is_some_and(|stem| stem.len() >= 8 && stem.bytes().all(|b| b.is_ascii_digit()))
}

impl Manifest {
    /// Whether there is a database in `dir`.
    pub(crate) fn presence(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Presence> {
        let exists = |path: &Path| vfs.exists(path).map_err(|e| Error::io("look for the file", path, e));
        if !exists(dir)? {
            return Ok(Presence::Absent);
        }
        if exists(&dir.join(CURRENT))? {
            return Ok(Presence::Present);
        }
        let (mut first, mut other) = (false, false);
        for entry in vfs.list(dir).map_err(|e| Error::io("list the directory", dir, e))? {
            match number_of(&entry.name) {
                Some(1) => first = true,
                Some(_) => return Ok(Presence::Present),
                // Tables and log segments without any manifest: it was lost. They are not to be taken for strays.
                None if is_data(&entry.name) => return Ok(Presence::Present),
                None => other |= entry.name != CURRENT_NEW && entry.name != LOCK,
            }
        }
        // `create` makes the first manifest, and nothing else of a database is written before `CURRENT` is durable: if
        // something is there, `CURRENT` was lost.
        Ok(match (first, other) {
            (true, true) => Presence::Present,
            (true, false) => Presence::Unfinished,
            (false, _) => Presence::Absent,
        })
    }

    /// Begins the manifest of a new database with `edits`. Everything is durable on return.
    pub(crate) fn create(vfs: &Arc<dyn Vfs>, dir: &Path, edits: &[Edit]) -> Result<Manifest> {
        if Self::presence(vfs, dir)? == Presence::Present {
            return Err(Error::invalid("a database is there already").at(&dir.join(CURRENT), 0));
        }
        let mut database = [0; 16];
        database[..8].copy_from_slice(&vfs.random().to_le_bytes());
        database[8..].copy_from_slice(&vfs.random().to_le_bytes());
        let mut state = State::default();
        state.apply(edits)?;
        let mut manifest = Manifest {
            vfs: vfs.clone(),
            dir: dir.to_owned(),
            path: dir.join(name_of(0)),
            file: None,
            number: 0,
            database,
            end: 0,
            replace_at: 0,
            next_mark: 0,
            state,
            failed: None,
            bytes_written: 0,
        };
        manifest.begin(1)?;
        Ok(manifest)
    }

    /// Reads the manifest that `CURRENT` names. With `read_only` nothing is written, and `append` fails.
    pub(crate) fn recover(vfs: &Arc<dyn Vfs>, dir: &Path, read_only: bool) -> Result<Manifest> {
        let number = read_current(vfs, dir)?;
        let path = dir.join(name_of(number));
        let mode = if read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let file = match vfs.open(&path, mode) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let message = "CURRENT names a manifest that is not there";
                return Err(Error::corruption(&path, 0, message));
            }
            Err(e) => return Err(Error::io("open the manifest", &path, e)),
        };
        let read = Contents::read(&*file, &path, number)?;
        let clean = read.state.closed.is_some() && !read.torn && read.marked == read.end;
        let snapshot = read.snapshot_end - RECORDS;
        let mut manifest = Manifest {
            vfs: vfs.clone(),
            dir: dir.to_owned(),
            path,
            file: (!read_only).then_some(file),
            number,
            database: read.database,
            end: read.end,
            replace_at: read.snapshot_end + growth(snapshot),
            next_mark: read.next_mark,
            state: read.state,
            failed: None,
            bytes_written: 0,
        };
        if !read_only {
            if !clean {
                // CURRENT's own name may be in the page cache only, if it was being made when the process was killed:
                // it must be durable before a manifest that it does not name.
                vfs.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))?;
                let next = manifest.highest_number()?.max(number).checked_add(1);
                let next = next.ok_or_else(|| Error::invalid("there is no number for another manifest"))?;
                manifest.begin(next)?;
            }
            manifest.remove_others();
        }
        Ok(manifest)
    }

    /// The state after all edits.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Names the database, across all its manifests.
    pub(crate) fn database(&self) -> [u8; 16] {
        self.database
    }

    /// Bytes written by this handle.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Applies a group of edits, all or none, durably. Edits that do not fit the state are refused, with nothing
    /// written. After any other error it is not known whether the edits are durable, and the manifest takes no more.
    pub(crate) fn append(&mut self, edits: &[Edit]) -> Result<()> {
        if let Some(failed) = &self.failed {
            let message =
                format!("the manifest takes no edits until reopen, since an earlier one failed: {failed}");
            return Err(Error::new(ErrorKind::Halted, message));
        }
        let Some(file) = self.file.clone() else {
            return Err(Error::new(ErrorKind::ReadOnly, "the database is open read-only").at(&self.path, 0));
        };
        let mut next = self.state.clone();
        next.apply(edits)?;
        let mut record = Vec::new();
        put_record(&mut record, self.number, self.end, edits)?;
        if let Err(error) = self.write(&*file, &record, next.closed.is_some()) {
            self.failed = Some(error.clone());
            return Err(error);
        }
        self.state = next;
        if self.end > self.replace_at {
            self.replace();
        }
        Ok(())
    }

    fn write(&mut self, file: &dyn File, record: &[u8], closing: bool) -> Result<()> {
        let failed = |attempted, offset| {
            let path = &self.path;
            move |e| Error::io(attempted, path, e).at(path, offset)
        };
        file.write_all_at(record, self.end).map_err(failed("append to the manifest", self.end))?;
        file.sync().map_err(failed("sync the manifest", self.end))?;
        let end = self.end + record.len() as u64;
        let at = MARKS[self.next_mark];
        file.write_all_at(&mark(self.number, at, end), at).map_err(failed("mark the manifest", at))?;
        if closing {
            file.sync().map_err(failed("sync the manifest", at))?;
        }
        self.end = end;
        self.next_mark ^= 1;
        self.bytes_written += (record.len() + MARK) as u64;
        Ok(())
    }

    /// Begins a new manifest because this one has grown long. The state is durable in this one, so lack of room is
    /// no failure: it is tried again later.
    fn replace(&mut self) {
        match self.begin(self.number + 1) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::NoSpace && self.failed.is_none() => {
                self.replace_at = self.end + MIN_GROWTH;
            }
            Err(e) => self.failed = Some(e),
        }
    }

    /// Writes a manifest of that number with the whole state and switches to it. `failed` is set if it is not known
    /// which one is live.
    fn begin(&mut self, number: u64) -> Result<()> {
        let path = self.dir.join(name_of(number));
        let (file, end) = match self.write_snapshot(&path, number) {
            Ok(written) => written,
            Err(error) => {
                // Best effort: it is not named by CURRENT, and recovery removes it too.
                let _ = self.vfs.remove(&path);
                return Err(error);
            }
        };
        self.switch(number)?;
        let old = std::mem::replace(&mut self.path, path);
        let had = self.number;
        self.file = Some(file);
        self.number = number;
        self.end = end;
        self.replace_at = end + growth(end - RECORDS);
        self.next_mark = 0;
        if had != 0 {
            let _ = self.vfs.remove(&old);
        }
        Ok(())
    }

    fn write_snapshot(&mut self, path: &Path, number: u64) -> Result<(Arc<dyn File>, u64)> {
        let mut bytes = vec![0; RECORDS as usize];
        let edits = self.state.edits();
        let mut from = 0;
        while from < edits.len() {
            let mut size = 0;
            let long_enough = |e: &Edit| {
                size += approximate_len(e);
                size >= SNAPSHOT_RECORD
            };
            let n = edits[from..].iter().position(long_enough).map_or(edits.len() - from, |at| at + 1);
            let at = bytes.len() as u64;
            put_record(&mut bytes, number, at, &edits[from..from + n])?;
            from += n;
        }
        let end = bytes.len() as u64;
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database);
        bytes[32..40].copy_from_slice(&number.to_le_bytes());
        bytes[40..48].copy_from_slice(&end.to_le_bytes());
        let sum = checksum(&bytes[..HEADER - 8], place(number, 0));
        bytes[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());

        if self.vfs.exists(path).map_err(|e| Error::io("look for the file", path, e))? {
            // The rest of a creation that was cut short.
            self.vfs.remove(path).map_err(|e| Error::io("remove the unfinished manifest", path, e))?;
        }
        let file = self.vfs.open(path, OpenMode::CreateNew);
        let file = file.map_err(|e| Error::io("create the manifest", path, e))?;
        file.write_all_at(&bytes, 0).map_err(|e| Error::io("write the manifest", path, e))?;
        file.sync().map_err(|e| Error::io("sync the manifest", path, e))?;
        self.bytes_written += end;
        Ok((file, end))
    }

    /// Makes `CURRENT` name manifest `number`.
    fn switch(&mut self, number: u64) -> Result<()> {
        let name = name_of(number);
        let text = format!("{name} {:016x}\n", checksum(name.as_bytes(), 0));
        let new = self.dir.join(CURRENT_NEW);
        let current = self.dir.join(CURRENT);
        let vfs = &self.vfs;
        if vfs.exists(&new).map_err(|e| Error::io("look for the file", &new, e))? {
            vfs.remove(&new).map_err(|e| Error::io("remove the file", &new, e))?;
        }
        let file = vfs.open(&new, OpenMode::CreateNew).map_err(|e| Error::io("create the file", &new, e))?;
        file.write_all_at(text.as_bytes(), 0).map_err(|e| Error::io("write the file", &new, e))?;
        file.sync().map_err(|e| Error::io("sync the file", &new, e))?;
        // The new manifest's name must be durable before anything names it.
        vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync the directory", &self.dir, e))?;
        let switched =
            vfs.rename(&new, &current).map_err(|e| Error::io("rename the file", &new, e)).and_then(|()| {
                vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync the directory", &self.dir, e))
            });
        if let Err(error) = &switched {
            self.failed = Some(error.clone());
        }
        switched
    }

    fn highest_number(&self) -> Result<u64> {
        let entries = self.vfs.list(&self.dir).map_err(|e| Error::io("list the directory", &self.dir, e))?;
        Ok(entries.iter().filter_map(|e| number_of(&e.name)).max().unwrap_or(0))
    }

    /// Removes what a switch that was cut short has left. Best effort: none of it is ever read.
    fn remove_others(&self) {
        for entry in self.vfs.list(&self.dir).unwrap_or_default() {
            let stale = number_of(&entry.name).is_some_and(|n| n != self.number) || entry.name == CURRENT_NEW;
            if stale {
                let _ = self.vfs.remove(&self.dir.join(entry.name));
            }
        }
    }
}

/// How many bytes of records follow a snapshot of that length before a new manifest is begun.
fn growth(snapshot: u64) -> u64 {
    snapshot.saturating_mul(4).max(MIN_GROWTH)
}

fn approximate_len(edit: &Edit) -> usize {
    match edit {
        Edit::AddTable { meta, .. } => 96 + meta.smallest.len() + meta.largest.len(),
        Edit::AddFamily { name, .. } => 16 + name.len(),
        Edit::Closed { segments } => 16 + 40 * segments.len(),
        _ => 32,
    }
}

fn mark(number: u64, at: u64, end: u64) -> [u8; MARK] {
    let mut bytes = [0; MARK];
    bytes[..8].copy_from_slice(&end.to_le_bytes());
    let sum = checksum(&bytes[..8], place(number, at));
    bytes[8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Appends a record that will lie at offset `at` of manifest `number`.
fn put_record(out: &mut Vec<u8>, number: u64, at: u64, edits: &[Edit]) -> Result<()> {
    let start = out.len();
    out.resize(start + RECORD_HEADER, 0);
    for edit in edits {
        edit.encode(out);
    }
    let len = out.len() - start - RECORD_HEADER;
    if len > MAX_PAYLOAD {
        out.truncate(start);
        return Err(Error::invalid(format!(
            "{len} bytes of edits at once: at most {MAX_PAYLOAD} are possible"
        )));
    }
    out[start + 8..start + 12].copy_from_slice(&(len as u32).to_le_bytes());
    out[start + 12..start + 16].copy_from_slice(&KIND_EDITS.to_le_bytes());
    let sum = checksum(&out[start + 8..], place(number, at));
    out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
    out.resize(start + (RECORD_HEADER + len).next_multiple_of(8), 0);
    Ok(())
}
