//! Recovery: from segment files back to sealed segments.
//!
//! It follows the chain of seals from the floor. In each segment it reads record after record. Where no valid record
//! follows there is either the end or a **gap**, and what a gap means depends on who died:
//!
//! - the process only (the header's boot id is the machine's): every store that was made is here, so a gap
//!   is a room that a killed writer reserved and never finished, hence never acknowledged. Recovery goes on behind it, and
//!   fills it with a pad, so that a later power loss does not cut the log there.
//! - the machine (another boot id): pages reached the disk in any order. The first gap ends the log: what
//!   follows it, in this segment and in later ones, is not part of a prefix.
//!
//! In a mapped log a record's address is stored last, so on the same boot one with the right address and a wrong
//! checksum is no gap but damage, and an error. (A `pwrite` can be cut short anywhere, so in a written log it is a gap.)
//!
//! A gap below an address that a mark says was durable is neither: it is damage, and an error.
//!
//! What was recovered is closed with a seal whose next address lies above everything that was ever reserved, so that
//! whatever remains behind the end can never be taken for part of the log again. Pads and seals are synced before
//! anything new is written. Recovery can therefore be interrupted anywhere and started again.

use super::pool::path_of;
use super::record::{self, Record, RecordKind};
use super::segment::{Backing, FIRST, Header, Raw, Segment};
use crate::entry::{self, Kind, Prefix};
use crate::io::{File, MapMode, Mapping, OpenMode, Vfs};
use crate::sync::Arc;
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// What a clean close recorded about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealedSegment {
    /// The file's number.
    pub(crate) file: u32,
    pub(crate) base: u64,
    /// Where the seal begins.
    pub(crate) end: u64,
    /// [`Segment::whole_sum`].
    pub(crate) sum: u64,
}

/// How and where to recover.
pub(crate) struct Place<'a> {
    pub(crate) vfs: &'a dyn Vfs,
    pub(crate) dir: &'a Path,
    pub(crate) database: u64,
    /// Everything below is in tables.
    pub(crate) floor: u64,
    /// The segments of a clean close, if the last close was one: then exactly these must be there, whole.
    pub(crate) closed: Option<&'a [SealedSegment]>,
    pub(crate) boot: [u8; 16],
    pub(crate) read_only: bool,
}

/// A segment and the offsets of the entries in it, in the order of the log.
pub(crate) struct Replayed {
    pub(crate) segment: Segment,
    pub(crate) offsets: Vec<u32>,
}

/// What was found.
pub(crate) struct Recovered {
    /// Oldest first.
    pub(crate) segments: Vec<Replayed>,
    /// Where the next segment begins.
    pub(crate) next_base: u64,
    /// Above every file number there is.
    pub(crate) next_number: u32,
}

struct Candidate {
    path: PathBuf,
    file: Arc<dyn File>,
    header: Header,
}

/// Finds the log of the database. Writes nothing if `read_only`.
pub(crate) fn recover(place: &Place<'_>) -> Result<Recovered> {
    let mut candidates = Vec::new();
    let mut next_number = 1;
    let mut highest = place.floor.max(FIRST);
    for (number, path, len) in log_files(place.vfs, place.dir)? {
        next_number = next_number.max(number.saturating_add(1));
        let mode = if place.read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let file = place.vfs.open(&path, mode).map_err(|e| Error::io("open a log segment", &path, e))?;
        let header = read_header(&*file, &path, number, len)?;
        match header {
            Some(header)
                if header.database == place.database && header.base.checked_add(header.len).is_some() =>
            {
                highest = highest.max(header.base + header.len);
                if header.base < place.floor {
                    // Its entries are in tables.
                } else if header.len > len || header.len <= FIRST + record::SMALL as u64 {
                    let message =
                        format!("the log segment should be {} bytes long and is cut to {len}", header.len);
                    return Err(Error::corruption(&path, len, message));
                } else {
                    candidates.push(Candidate { path, file, header });
                }
            }
            // Never begun, or of another database.
            _ => {}
        }
    }

    let mut segments: Vec<Replayed> = Vec::new();
    let mut expected = place.floor;
    let mut cut = false;
    while !cut {
        // The floor of a new database is 0, and its first segment begins there.
        let Some(i) = candidates.iter().position(|c| c.header.base == expected) else { break };
        let candidate = candidates.swap_remove(i);
        let scan = replay(place, candidate)?;
        expected = scan.next_base;
        cut = scan.cut;
        segments.push(scan.replayed);
    }
    // A seal is stored before the next segment begins: on the same boot no segment can follow one without a seal.
    let stray = candidates.iter().find(|c| c.header.boot == place.boot && c.header.base >= expected);
    if let Some(stray) = stray {
        let (path, at) = match segments.last() {
            Some(last) => (&last.segment.raw().path, last.segment.used()),
            None => (&stray.path, 0),
        };
        let message = format!(
            "the log is damaged: it ends here, yet {} was begun later on the same run of the machine; \
             commits may be lost",
            stray.path.display()
        );
        return Err(Error::corruption(path, at, message));
    }
    // On another boot what follows a gap is given up, unless a mark in it says that it was durable.
    let end = segments.last().map_or(place.floor, |last| last.segment.base() + last.segment.used());
    for later in candidates.iter().filter(|c| c.header.base > end) {
        let bytes = read_all(&*later.file, &later.path, later.header.len)?;
        // SAFETY: this memory was made here.
        let durable = marked_behind(unsafe { bytes.slice(0, bytes.len()) }, Some(FIRST), &later.header);
        if durable > end {
            let (path, at) = match segments.last() {
                Some(last) => (&last.segment.raw().path, last.segment.used()),
                None => (&later.path, 0),
            };
            let message = format!(
                "the log is damaged: it was durable up to address {durable}, as {} says, but ends at address {end}; \
                 commits may be lost. Restore a copy, or remove nothing and ask for help",
                later.path.display()
            );
            return Err(Error::corruption(path, at, message));
        }
    }
    let mut next_base = expected;
    if !segments.is_empty() {
        if cut || !candidates.is_empty() {
            // Above everything that was ever reserved: what lies behind the end stays unreachable.
            next_base = highest.max(next_base).next_multiple_of(FIRST);
        }
        if let Some(closed) = place.closed {
            verify_closed(place, closed, &segments)?;
        }
        if !place.read_only {
            repair(&segments, next_base, cut)?;
        }
    } else {
        next_base = if candidates.is_empty() { next_base } else { highest.next_multiple_of(FIRST) };
        if let Some(closed) = place.closed {
            verify_closed(place, closed, &segments)?;
        }
    }
    Ok(Recovered { segments, next_base, next_number })
}

/// The segment files of a directory by number.
fn log_files(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<(u32, PathBuf, u64)>> {
    let entries = vfs.list(dir).map_err(|e| Error::io("list the database directory", dir, e))?;
    let mut files: Vec<_> = entries
        .into_iter()
        .filter_map(|e| {
            let number = e.name.strip_suffix(".log")?.parse().ok()?;
            let path = path_of(dir, number);
            // Only names as this module spells them.
            path.ends_with(&e.name).then_some((number, path, e.len))
        })
        .collect();
    files.sort();
    Ok(files)
}

fn read_header(file: &dyn File, path: &Path, number: u32, len: u64) -> Result<Option<Header>> {
    let mut bytes = [0; FIRST as usize];
    if len < FIRST {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, 0).map_err(|e| Error::io("read the header of a log segment", path, e))?;
    match Header::decode(&bytes, number).map_err(|e| e.at(path, 0))? {
        // The header lies within one sector, which a disk writes whole: it is old, new or all zeros.
        None if bytes.iter().any(|&b| b != 0) => Err(Error::corruption(
            path,
            0,
            "the header of a log segment is damaged; commits in it may be lost",
        )),
        header => Ok(header),
    }
}

struct Scan {
    replayed: Replayed,
    next_base: u64,
    /// The log ends here, whatever the chain says.
    cut: bool,
}

fn replay(place: &Place<'_>, candidate: Candidate) -> Result<Scan> {
    let Candidate { path, file, header } = candidate;
    let map_error = |e| Error::io("map a log segment for recovery", &path, e);
    let shared = !place.read_only && place.vfs.supports_mapped_writes(place.dir).unwrap_or(false);
    let (memory, backing) = if shared {
        (file.map(header.len as usize, MapMode::Shared).map_err(map_error)?, Backing::Mapped)
    } else {
        (read_all(&*file, &path, header.len)?, Backing::Written)
    };
    let same_boot = header.boot == place.boot;
    let mut offsets = Vec::new();
    let mut pads = Vec::new();
    let mut durable = 0;
    let mut at = FIRST;
    let mut seal = None;
    let mut cut = false;
    {
        // SAFETY: the directory is locked by this process and nothing writes to the segment yet; the pads below
        // are written after this slice is gone.
        let bytes = unsafe { memory.slice(0, header.len as usize) };
        loop {
            match record_at(bytes, at, &header) {
                Some(found) => {
                    match found.kind {
                        RecordKind::Data => collect(&found, at, &path, &mut offsets)?,
                        RecordKind::Mark => durable = durable.max(found.address()),
                        RecordKind::Pad => {}
                        RecordKind::Seal => {
                            seal = Some(found.address());
                            break;
                        }
                    }
                    at += found.len as u64;
                }
                None => {
                    let claimed =
                        bytes.get(at as usize..).is_some_and(|b| record::is_claimed(b, header.base + at));
                    if same_boot && header.mapped && claimed {
                        return Err(Error::corruption(
                            &path,
                            at,
                            "a log record was finished here and no longer matches its checksum; a commit is lost. Restore a \
                             copy, or remove nothing and ask for help",
                        ));
                    }
                    let behind = next_record(bytes, at, &header);
                    durable = durable.max(marked_behind(bytes, behind, &header));
                    if header.base + at < durable {
                        return Err(Error::corruption(
                            &path,
                            at,
                            format!(
                                "the log is damaged: it was durable up to address {durable}, but no valid record is at \
                                 address {}; commits may be lost. Restore a copy, or remove nothing and ask for help",
                                header.base + at
                            ),
                        ));
                    }
                    match behind {
                        Some(next) if same_boot => {
                            pads.push((at, next));
                            at = next;
                        }
                        _ => {
                            cut = true;
                            break;
                        }
                    }
                }
            }
        }
    }
    if !place.read_only {
        for (from, to) in pads {
            // SAFETY: as above; the bytes between belong to no record.
            let room = unsafe { memory.slice_mut(from as usize, (to - from) as usize) };
            record::finish(room, RecordKind::Pad, header.base + from, header.nonce, 0);
            if backing == Backing::Written {
                file.write_all_at(&room[..record::HEADER], from)
                    .map_err(|e| Error::io("mend the log", &path, e))?;
            }
        }
    }
    let raw = Raw { number: header.number, path, backing, file: Some(file), memory: Arc::new(memory) };
    // The end is written by `repair`, once it is known what follows.
    let end = if seal.is_some() { at } else { u64::MAX };
    let segment = Segment::recovered(raw, header, end, seal.unwrap_or(0));
    if seal.is_none() {
        segment.set_unsealed_end(at);
    }
    Ok(Scan { next_base: segment.next_base(), replayed: Replayed { segment, offsets }, cut })
}

fn record_at<'a>(bytes: &'a [u8], at: u64, header: &Header) -> Option<Record<'a>> {
    record::read(bytes.get(at as usize..)?, header.base + at, header.nonce)
}

/// The offset of the first valid record behind `at`.
fn next_record(bytes: &[u8], at: u64, header: &Header) -> Option<u64> {
    let mut next = at + record::ALIGN as u64;
    while (next as usize) + record::HEADER <= bytes.len() {
        let found = bytes.get(next as usize..).and_then(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b));
        if found == Some(header.base + next) && record_at(bytes, next, header).is_some() {
            return Some(next);
        }
        next += record::ALIGN as u64;
    }
    None
}

/// The highest durable address that a mark at or behind offset `at` names.
fn marked_behind(bytes: &[u8], at: Option<u64>, header: &Header) -> u64 {
    let mut durable = 0;
    let mut at = at;
    while let Some(offset) = at {
        match record_at(bytes, offset, header) {
            Some(found) => {
                if found.kind == RecordKind::Mark {
                    durable = durable.max(found.address());
                }
                at = Some(offset + found.len as u64);
            }
            None => at = next_record(bytes, offset, header),
        }
    }
    durable
}

/// The offsets of a data record's entries, each checked: what recovery gives to the memtable can be read there.
fn collect(found: &Record<'_>, at: u64, path: &Path, offsets: &mut Vec<u32>) -> Result<()> {
    let mut from = 0;
    while let Some(rest) = found.body.get(from..).filter(|rest| rest.first().is_some_and(|&tag| tag != 0)) {
        let offset = at + (record::HEADER + from) as u64;
        let Some(entry) = entry::decode(rest) else {
            return Err(Error::corruption(
                path,
                offset,
                "a log record's checksum is right but an entry in it cannot be read: it may come from a newer version",
            ));
        };
        if !matches!(entry.kind, Kind::Put | Kind::Delete) {
            let message = format!(
                "an entry in the log is of a kind that this version does not know ({:?}); open it with a newer one",
                entry.kind
            );
            return Err(Error::new(ErrorKind::Unsupported, message).at(path, offset));
        }
        if Prefix::split(entry.key).is_none() {
            return Err(Error::corruption(
                path,
                offset,
                "a log record's checksum is right but the key of an entry in it names no column family",
            ));
        }
        offsets.push(offset as u32);
        from += entry.len;
    }
    Ok(())
}

/// Anonymous memory with the file's content.
fn read_all(file: &dyn File, path: &Path, len: u64) -> Result<Mapping> {
    let memory =
        Mapping::anonymous(len as usize).map_err(|e| Error::io("get memory for a log segment", path, e))?;
    // SAFETY: fresh memory that no one else has.
    let bytes = unsafe { memory.slice_mut(0, len as usize) };
    file.read_exact_at(bytes, 0).map_err(|e| Error::io("read a log segment", path, e))?;
    Ok(memory)
}

/// Seals what has no seal yet and makes the mended log durable.
fn repair(segments: &[Replayed], next_base: u64, cut: bool) -> Result<()> {
    let Some(last) = segments.len().checked_sub(1) else { return Ok(()) };
    for (i, replayed) in segments.iter().enumerate() {
        if i == last && (cut || replayed.segment.next_base() != next_base) {
            replayed.segment.reseal(next_base)?;
        }
        replayed.segment.sync()?;
    }
    Ok(())
}

/// After a clean close, exactly the recorded segments must be there, unchanged.
fn verify_closed(place: &Place<'_>, closed: &[SealedSegment], segments: &[Replayed]) -> Result<()> {
    for (i, expected) in closed.iter().enumerate() {
        let path = path_of(place.dir, expected.file);
        let whole = segments.get(i).is_some_and(|found| {
            found.segment.raw().number == expected.file
                && found.segment.base() == expected.base
                && found.segment.used() == expected.end
                && found.segment.whole_sum() == expected.sum
        });
        if !whole {
            return Err(Error::corruption(
                &path,
                0,
                "the log of a cleanly closed database is damaged: this segment is missing, cut short or changed",
            ));
        }
    }
    Ok(())
}
