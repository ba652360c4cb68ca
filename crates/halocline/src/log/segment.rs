//! A segment: a stretch of the address space, backed by a mapped file, a written file, or nothing.
//!
//! ```text
//! offset 0      header, 128 bytes in a page of 4096
//!               magic "HALOSEG\0", version u32, file number u32, base u64, length u64, boot id [16],
//!               database id u64, nonce u64, mapped u8, zeros, checksum u64 (of the 120 bytes before it)
//! offset 4096   records, back to back
//! length - 24   the last place where a seal can begin
//! ```
//!
//! Rooms are reserved by one `fetch_add` on the tail. The reservation that passes the limit fails, and so do all
//! later ones: the segment is sealed, and exactly one thread, the one whose reservation began at or below the limit, is the
//! **sealer** and writes the seal there. A reserved room belongs to its thread alone; its bytes are final
//! once its record is finished, and only then are they given to the memtable.

use super::pool::Pool;
use super::record::{self, RecordKind};
use super::recovery::SealedSegment;
use super::slots::InFlight;
use crate::io::checksum::{checksum, place};
use crate::io::{Advice, File, Mapping};
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Arc, Mutex, Padded};
use crate::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// Where the first record begins.
pub(crate) const FIRST: u64 = 4096;
const HEADER: usize = 128;
const MAGIC: [u8; 8] = *b"HALOSEG\0";
const VERSION: u32 = 1;

/// How stores get to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// The memory is the file, mapped.
    Mapped,
    /// Anonymous memory, and every record is also written to the file.
    Written,
    /// Anonymous memory and no file.
    Anonymous,
}

/// A file and its memory, without a place in the address space yet.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) backing: Backing,
    pub(crate) file: Option<Arc<dyn File>>,
    pub(crate) memory: Arc<Mapping>,
}

impl Raw {
    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Faults the memory in ahead of the writers.
    pub(crate) fn populate(&self) {
        const STEP: usize = 2 << 20;
        let mut at = 0;
        while at < self.memory.len() {
            let end = (at + STEP).min(self.memory.len());
            // Only a matter of speed: a failure shows up as a fault, if at all.
            let _ = self.memory.advise(Advice::PopulateWrite, at..end);
            at = end;
        }
    }
}

/// The fields of a header that was read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u32,
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) boot: [u8; 16],
    pub(crate) database: u64,
    pub(crate) nonce: u64,
    /// Whether records were stored through a mapping: then each is there whole, or not at all, after a kill.
    pub(crate) mapped: bool,
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&self.number.to_le_bytes());
        put(&self.base.to_le_bytes());
        put(&self.len.to_le_bytes());
        put(&self.boot);
        put(&self.database.to_le_bytes());
        put(&self.nonce.to_le_bytes());
        put(&[u8::from(self.mapped)]);
        let sum = checksum(&out[..HEADER - 8], place(u64::from(self.number), 0));
        out[HEADER - 8..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// The header of file `number`, if a whole one is there. `Err` for a format that this build does not know.
    pub(crate) fn decode(bytes: &[u8], number: u32) -> Result<Option<Header>> {
        let Some(bytes) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if checksum(&bytes[..HEADER - 8], place(u64::from(number), 0)) != u64_at(HEADER - 8)
            || bytes[..8] != MAGIC
        {
            return Ok(None);
        }
        if u32_at(8) != VERSION {
            let message =
                format!("the log segment has format version {}; this build knows {VERSION}", u32_at(8));
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(Some(Header {
            number: u32_at(12),
            base: u64_at(16),
            len: u64_at(24),
            boot: std::array::from_fn(|i| bytes[32 + i]),
            database: u64_at(48),
            nonce: u64_at(56),
            mapped: bytes[64] == 1,
        }))
    }
}

/// Why a reservation failed.
pub(crate) struct Full {
    /// This thread is the sealer, and the seal belongs at this offset.
    pub(crate) seal_at: Option<u64>,
}

const OPEN: u64 = u64::MAX;

/// A segment in use.
#[derive(Debug)]
pub(crate) struct Segment {
    /// `None` only while being dropped.
    raw: Option<Raw>,
    header: Header,
    /// The next free offset; beyond `limit` the segment is sealed.
    tail: Padded<AtomicU64>,
    /// Where the seal begins; `OPEN` until it is written.
    end: AtomicU64,
    /// The base of the segment after this one, known with the seal.
    next_base: AtomicU64,
    /// Set when the tables of this segment are durable: where its file and memory go with the last reference.
    successor: Mutex<Option<Arc<Pool>>>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        let pool = self.successor.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let (Some(pool), Some(raw)) = (pool, self.raw.take()) {
            pool.returned(raw);
        }
    }
}

impl Segment {
    /// Gives `raw` a place in the address space and writes its header.
    pub(crate) fn begin(raw: Raw, base: u64, boot: [u8; 16], database: u64, nonce: u64) -> Result<Segment> {
        let mapped = raw.backing == Backing::Mapped;
        let header = Header { number: raw.number, base, len: raw.len(), boot, database, nonce, mapped };
        let bytes = header.encode();
        match (raw.backing, &raw.file) {
            (Backing::Mapped, _) => {
                // SAFETY: the segment is not in use yet: no one else has this memory.
                unsafe { raw.memory.slice_mut(0, HEADER) }.copy_from_slice(&bytes);
            }
            (Backing::Written, Some(file)) => file
                .write_all_at(&bytes, 0)
                .map_err(|e| Error::io("write the header of a log segment", &raw.path, e))?,
            _ => {}
        }
        Ok(Segment {
            raw: Some(raw),
            header,
            tail: Padded(AtomicU64::new(FIRST)),
            end: AtomicU64::new(OPEN),
            next_base: AtomicU64::new(0),
            successor: Mutex::new(None),
        })
    }

    /// A segment that recovery found, with its seal at `end`.
    pub(crate) fn recovered(raw: Raw, header: Header, end: u64, next_base: u64) -> Segment {
        Segment {
            raw: Some(raw),
            header,
            tail: Padded(AtomicU64::new(u64::MAX / 2)),
            end: AtomicU64::new(end),
            next_base: AtomicU64::new(next_base),
            successor: Mutex::new(None),
        }
    }

    pub(crate) fn raw(&self) -> &Raw {
        match &self.raw {
            Some(raw) => raw,
            None => unreachable!("taken only in drop"),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.header.base
    }

    pub(crate) fn memory(&self) -> &Arc<Mapping> {
        &self.raw().memory
    }

    /// The base of the next segment: known from the beginning unless recovery sealed this one.
    pub(crate) fn next_base(&self) -> u64 {
        match self.next_base.load(SeqCst) {
            0 => self.header.base + self.header.len,
            next => next,
        }
    }

    /// The last offset at which a seal fits.
    fn limit(&self) -> u64 {
        self.header.len - record::SMALL as u64
    }

    /// The longest record a segment of `len` bytes takes.
    pub(crate) fn capacity_of(len: u64) -> u64 {
        len.saturating_sub(FIRST + record::SMALL as u64)
    }

    /// The least length of a segment that takes a record of `need` bytes.
    pub(crate) fn len_for(need: u64) -> u64 {
        need + FIRST + record::SMALL as u64
    }

    /// The address behind the last reservation.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.header.base + self.tail.0.load(SeqCst).min(self.header.len)
    }

    /// Bytes in use, header included.
    pub(crate) fn used(&self) -> u64 {
        match self.end.load(SeqCst) {
            OPEN => self.tail.0.load(SeqCst).min(self.header.len),
            end => end,
        }
    }

    /// Reserves `len` bytes, a multiple of 8; the offset.
    #[inline]
    pub(crate) fn reserve(&self, len: u64) -> std::result::Result<u64, Full> {
        let limit = self.limit();
        let at = self.tail.0.fetch_add(len, SeqCst);
        if at <= limit && len <= limit - at {
            Ok(at)
        } else {
            // A reservation at or below the limit that fails leaves the tail beyond it: there is just one such.
            Err(Full { seal_at: (at <= limit).then_some(at) })
        }
    }

    /// Whether the room `[at, at + len)` spans the middle: true for one reservation.
    #[inline]
    pub(crate) fn passed_half(&self, at: u64, len: u64) -> bool {
        let half = self.header.len / 2;
        at < half && at + len >= half
    }

    /// Whether more than half of it is in use.
    pub(crate) fn is_half_full(&self) -> bool {
        self.used() >= self.header.len / 2
    }

    /// What a clean close records of a sealed segment.
    pub(crate) fn sealed(&self) -> SealedSegment {
        SealedSegment { file: self.raw().number, base: self.base(), end: self.used(), sum: self.whole_sum() }
    }

    /// Ends the segment now. As `reserve`: exactly one of all threads becomes the sealer.
    pub(crate) fn close(&self) -> Full {
        let at = self.tail.0.fetch_add(self.header.len, SeqCst);
        Full { seal_at: (at <= self.limit()).then_some(at) }
    }

    /// Fills a reserved room: `encode` writes the body, whose length it is told, and the record is finished. Returns the address.
    ///
    /// # Safety
    /// `[at, at + len)` was reserved by this thread and not filled yet.
    #[inline]
    pub(crate) unsafe fn fill(
        &self,
        at: u64,
        len: u64,
        body_len: usize,
        encode: impl FnOnce(&mut [u8]),
    ) -> Result<u64> {
        // SAFETY: the room is this thread's alone by the caller's promise.
        let room = unsafe { self.raw().memory.slice_mut(at as usize, len as usize) };
        encode(&mut room[record::HEADER..record::HEADER + body_len]);
        let lsn = self.header.base + at;
        record::finish(room, RecordKind::Data, lsn, self.header.nonce, body_len);
        self.write_through(at, room)?;
        Ok(lsn)
    }

    /// Gives a reserved room up: a pad, which replay and verification pass over.
    ///
    /// # Safety
    /// As for `fill`.
    pub(crate) unsafe fn abandon(&self, at: u64, len: u64) -> Result<()> {
        // SAFETY: the room is this thread's alone by the caller's promise.
        let room = unsafe { self.raw().memory.slice_mut(at as usize, len as usize) };
        record::finish(room, RecordKind::Pad, self.header.base + at, self.header.nonce, 0);
        // All of it: the file must be what the memory is when the segment is sealed.
        self.write_through(at, room)
    }

    /// Whether `[from, to)` is a stretch of records of this segment, given that each of the two is the first record's address, or
    /// was once the address behind the last one. Where the segment was closed, that one lies behind the end of the
    /// records, at no record's beginning.
    pub(crate) fn has_records(&self, from: u64, to: u64) -> bool {
        let end = match self.end.load(SeqCst) {
            // The tail only rises: `to` was taken from it when it was no higher than now.
            OPEN => Some(self.tail.0.load(SeqCst)).filter(|&tail| tail <= self.limit()),
            end => Some(end),
        };
        from >= self.base() + FIRST && end.is_some_and(|end| to <= self.base() + end)
    }

    /// Calls `f` with the address and the entries of every commit in `[from, to)`, for which `has_records` holds.
    /// All of these records must be complete.
    pub(crate) fn each_commit(
        &self,
        from: u64,
        to: u64,
        mut f: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut at, end) = (from - self.header.base, to - self.header.base);
        while at < end {
            // SAFETY: the records are complete by the caller's promise: their bytes are final.
            let bytes = unsafe { self.raw().memory.slice(at as usize, (end - at) as usize) };
            let Some(found) = record::read(bytes, self.header.base + at, self.header.nonce) else {
                return Err(Error::corruption(
                    &self.raw().path,
                    at,
                    "a log record in memory does not match its checksum: the memory was overwritten by something outside \
                     the engine; reopen the database to recover from the log file",
                ));
            };
            if found.kind == RecordKind::Data {
                f(self.header.base + at, found.body)?;
            }
            at += found.len as u64;
        }
        Ok(())
    }

    fn write_through(&self, at: u64, bytes: &[u8]) -> Result<()> {
        match (self.raw().backing, &self.raw().file) {
            (Backing::Written, Some(file)) => file
                .write_all_at(bytes, at)
                .map_err(|e| Error::io("write to the log", &self.raw().path, e).at(&self.raw().path, at)),
            _ => Ok(()),
        }
    }

    /// Writes the seal: called by the one sealer.
    pub(crate) fn seal(&self, at: u64) -> Result<()> {
        let next = self.next_base();
        self.put_small(at, RecordKind::Seal, next)?;
        self.next_base.store(next, SeqCst);
        self.end.store(at, SeqCst);
        Ok(())
    }

    /// Recovery found no seal: the records end at `at`.
    pub(crate) fn set_unsealed_end(&self, at: u64) {
        self.end.store(at, SeqCst);
    }

    /// Recovery decided what follows: writes the seal, again if there is one, with `next` as the next base.
    pub(crate) fn reseal(&self, next: u64) -> Result<()> {
        self.put_small(self.end.load(SeqCst), RecordKind::Seal, next)?;
        self.next_base.store(next, SeqCst);
        Ok(())
    }

    /// Adds a mark that the log is durable up to `synced`, if there is room; its address.
    /// It is in flight meanwhile like a commit: what lies behind it must not be acknowledged, and the segment not
    /// verified, while its room is empty.
    pub(crate) fn mark(&self, synced: u64, in_flight: &InFlight) -> Result<Option<u64>> {
        if self.tail.0.load(SeqCst) + 2 * record::SMALL as u64 > self.limit() {
            return Ok(None);
        }
        let _entered = in_flight.enter(self.position());
        match self.reserve(record::SMALL as u64) {
            Ok(at) => self.put_small(at, RecordKind::Mark, synced).map(|()| Some(self.header.base + at)),
            // Another thread filled the segment just now; someone must seal it, and if that is this thread it does.
            Err(Full { seal_at: Some(at) }) => self.seal(at).map(|()| None),
            Err(Full { seal_at: None }) => Ok(None),
        }
    }

    fn put_small(&self, at: u64, kind: RecordKind, address: u64) -> Result<()> {
        let mut bytes = [0; record::SMALL];
        record::write_small(&mut bytes, kind, self.header.base + at, self.header.nonce, address);
        // SAFETY: a seal's room is the sealer's alone (see `reserve`), a mark's was reserved.
        let room = unsafe { self.raw().memory.slice_mut(at as usize, record::SMALL) };
        record::place(room, &bytes, self.header.base + at);
        self.write_through(at, &bytes)
    }

    /// Whether the seal is written.
    pub(crate) fn is_sealed(&self) -> bool {
        self.end.load(SeqCst) != OPEN
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        match &self.raw().file {
            Some(file) => file.sync().map_err(|e| Error::io("sync the log", &self.raw().path, e)),
            None => Ok(()),
        }
    }

    /// Verifies every record of a sealed segment: a stray store by the host program must not reach a table.
    /// All writers of the segment must have finished.
    pub(crate) fn verify(&self) -> Result<()> {
        let end = self.end.load(SeqCst);
        let mut at = FIRST;
        while at < end {
            // SAFETY: the segment is sealed and its writers are done: nothing below `end` changes any more.
            let bytes = unsafe { self.raw().memory.slice(at as usize, (end - at) as usize) };
            let Some(found) = record::read(bytes, self.header.base + at, self.header.nonce) else {
                return Err(Error::corruption(
                    &self.raw().path,
                    at,
                    "a log record in memory no longer matches its checksum: the memory was overwritten by something \
                     outside the engine; reopen the database to recover from the log file",
                ));
            };
            at += found.len as u64;
        }
        Ok(())
    }

    /// A checksum of everything up to the seal, for a clean close.
    pub(crate) fn whole_sum(&self) -> u64 {
        let end = self.end.load(SeqCst);
        // SAFETY: as in `verify`.
        checksum(unsafe { self.raw().memory.slice(FIRST as usize, (end - FIRST) as usize) }, self.header.base)
    }

    /// Everything here is durable in tables: with its last reference the segment goes back to `pool`.
    pub(crate) fn retire(&self, pool: &Arc<Pool>) {
        *self.successor.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::clone(pool));
    }
}
