//! A record: what one commit adds to the log, whole or not at all.
//!
//! ```text
//! lsn    u64   the record's own log address: what an earlier lap of a recycled file left cannot match. Stored last
//! sum    u32   checksum of everything behind this field, seeded with the segment's nonce and the address
//! shape  u32   kind in the low 3 bits; above them the length of the record in units of 8 bytes, header included
//! body   ..    Data: entries, then zeros up to a multiple of 8
//!              Pad:  anything; not covered by the checksum. Fills what a killed writer reserved and never finished
//!              Seal: next u64, the base address of the segment that follows this one
//!              Mark: synced u64, an address up to which the log was known to be durable when this was written
//! ```
//!
//! Records begin at multiples of 8 and follow each other without gaps, except where a writer was killed between
//! reserving its room and filling it. All numbers are little-endian.

use crate::io::checksum::checksum;
use std::sync::atomic::{Ordering, fence};

/// Bytes of a record's header.
pub(crate) const HEADER: usize = 16;
/// Records begin at multiples of this, and their lengths are multiples of it.
pub(crate) const ALIGN: usize = 8;
/// Bytes of a seal or mark record.
pub(crate) const SMALL: usize = HEADER + 8;
/// Longest record, in bytes: the offsets within a segment are 32 bits wide.
pub(crate) const MAX: u64 = (1 << 32) - (2 << 20);

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// A commit's entries.
    Data = 1,
    /// Fills a hole.
    Pad = 2,
    /// The end of a segment.
    Seal = 3,
    /// How far the log was durable.
    Mark = 4,
}

/// A record found in a segment's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: RecordKind,
    /// Bytes of the whole record.
    pub(crate) len: usize,
    pub(crate) body: &'a [u8],
}

impl Record<'_> {
    /// The address in the body of a seal or mark.
    pub(crate) fn address(&self) -> u64 {
        self.body.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
    }
}

/// The length of a data record with a body of `body` bytes.
pub(crate) fn data_len(body: u64) -> u64 {
    (HEADER as u64 + body).next_multiple_of(ALIGN as u64)
}

fn sum(nonce: u64, lsn: u64, covered: &[u8]) -> u32 {
    checksum(covered, nonce ^ lsn) as u32
}

/// Completes a record whose body is already in `record[HEADER..]`: zeroes the padding behind `body_len` and writes
/// the header. `record` is exactly the room that was reserved.
pub(crate) fn finish(record: &mut [u8], kind: RecordKind, lsn: u64, nonce: u64, body_len: usize) {
    debug_assert!(record.len().is_multiple_of(ALIGN) && record.len() >= HEADER + body_len);
    let shape = ((record.len() / ALIGN) as u32) << 3 | kind as u32;
    record[12..16].copy_from_slice(&shape.to_le_bytes());
    let covered = if kind == RecordKind::Pad {
        HEADER
    } else {
        record[HEADER + body_len..].fill(0);
        record.len()
    };
    let sum = sum(nonce, lsn, &record[12..covered]);
    record[8..12].copy_from_slice(&sum.to_le_bytes());
    store_last(record, lsn);
}

/// Stores the address after all else: in a mapped log a killed writer leaves either no record here or a whole one, so one
/// with the right address and a wrong checksum was damaged.
fn store_last(record: &mut [u8], lsn: u64) {
    fence(Ordering::Release);
    record[..8].copy_from_slice(&lsn.to_le_bytes());
}

/// Copies a finished record to its place, its address last.
pub(crate) fn place(room: &mut [u8], finished: &[u8; SMALL], lsn: u64) {
    room[8..].copy_from_slice(&finished[8..]);
    store_last(room, lsn);
}

/// Whether a record with this address was finished here, be it damaged since.
pub(crate) fn is_claimed(bytes: &[u8], lsn: u64) -> bool {
    bytes.first_chunk().is_some_and(|b| u64::from_le_bytes(*b) == lsn)
}

/// Writes a seal or a mark into `record`.
pub(crate) fn write_small(record: &mut [u8; SMALL], kind: RecordKind, lsn: u64, nonce: u64, address: u64) {
    record[HEADER..].copy_from_slice(&address.to_le_bytes());
    finish(record, kind, lsn, nonce, 8);
}

/// The record at the start of `bytes`, if a whole and undamaged one with address `lsn` is there.
pub(crate) fn read(bytes: &[u8], lsn: u64, nonce: u64) -> Option<Record<'_>> {
    let header = bytes.first_chunk::<HEADER>()?;
    let [a0, a1, a2, a3, a4, a5, a6, a7, s0, s1, s2, s3, h0, h1, h2, h3] = *header;
    if u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]) != lsn {
        return None;
    }
    let shape = u32::from_le_bytes([h0, h1, h2, h3]);
    let kind = match shape & 7 {
        1 => RecordKind::Data,
        2 => RecordKind::Pad,
        3 => RecordKind::Seal,
        4 => RecordKind::Mark,
        _ => return None,
    };
    let len = (shape >> 3) as usize * ALIGN;
    let record = bytes.get(..len)?;
    let body = record.get(HEADER..)?;
    if matches!(kind, RecordKind::Seal | RecordKind::Mark) && len != SMALL {
        return None;
    }
    let covered = if kind == RecordKind::Pad { &record[12..HEADER] } else { &record[12..] };
    (sum(nonce, lsn, covered) == u32::from_le_bytes([s0, s1, s2, s3])).then_some(Record { kind, len, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_only_at_its_own_address() {
        let mut room = vec![0xAA; data_len(21) as usize];
        room[HEADER..HEADER + 21].copy_from_slice(&[7; 21]);
        finish(&mut room, RecordKind::Data, 4096, 99, 21);
        let record = read(&room, 4096, 99).unwrap();
        assert_eq!((record.kind, record.len), (RecordKind::Data, 40));
        assert_eq!(record.body, [&[7; 21][..], &[0; 3]].concat());
        assert!(read(&room, 4104, 99).is_none(), "another address");
        assert!(read(&room, 4096, 98).is_none(), "another segment's nonce");
        for byte in 0..room.len() {
            let mut damaged = room.clone();
            damaged[byte] ^= 0x10;
            assert!(read(&damaged, 4096, 99).is_none(), "byte {byte} is not covered");
        }
        for cut in 0..room.len() {
            assert!(read(&room[..cut], 4096, 99).is_none());
        }
    }

    #[test]
    fn seals_and_marks_carry_an_address() {
        for kind in [RecordKind::Seal, RecordKind::Mark] {
            let mut room = [0; SMALL];
            write_small(&mut room, kind, 8, 1, 1 << 40);
            let record = read(&room, 8, 1).unwrap();
            assert_eq!((record.kind, record.address()), (kind, 1 << 40));
        }
    }

    #[test]
    fn a_pad_does_not_care_for_its_body() {
        let mut room = vec![0; 64];
        finish(&mut room, RecordKind::Pad, 8, 1, 0);
        room[40] = 3;
        assert_eq!(read(&room, 8, 1).unwrap().len, 64);
    }
}
