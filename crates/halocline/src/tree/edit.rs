//! Edits of the tree, and their bytes.
//!
//! A group of edits, applied all or not at all, is the payload of one record of the manifest:
//!
//! ```text
//! group        = edit*                        to the end of the payload
//! edit         = kind u8, body
//!
//! kind  body
//! 1  AddFamily    id varint, name string
//! 2  DropFamily   id varint
//! 3  NewRun       family varint, run varint, tier u8, newer run's id + 1 varint (0: this is the newest)
//! 4  AddTable     family varint, run varint, table
//! 5  RemoveTable  family varint, run varint, table id varint
//! 6  LogFloor     lsn varint
//! 7  NextId       id varint
//! 8  NextFamily   id varint
//! 9  Closed       count varint, count x (file varint, base varint, end varint, sum u64)
//! 10 Opened
//!
//! table        = id varint, file_len varint, footer_sum u64, entries varint, deletes varint,
//!                raw_bytes varint, max_version varint, smallest string, largest string
//! string       = length varint, bytes
//! varint       = LEB128 of a u64, at most 10 bytes, shortest form
//! u64          = little-endian
//! ```
//!
//! Decoding never panics and allocates no more than a small multiple of the bytes it is given. A kind that is not
//! known is refused as unsupported, since its length is not known either.

use crate::entry::{MAX_KEY, MAX_PREFIX};
pub(crate) use crate::log::recovery::SealedSegment;
use crate::table::TableMeta;

/// Longest name of a column family, in bytes.
pub(crate) const MAX_NAME: usize = 1024;

/// One step from one state of the tree to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// A column family without tables.
    AddFamily { id: u32, name: String },
    /// A column family and all its tables are gone.
    DropFamily { id: u32 },
    /// A run without tables, directly older than run `after`; `None`: newer than all.
    NewRun { family: u32, run: u64, tier: u8, after: Option<u64> },
    /// A table of a run.
    AddTable { family: u32, run: u64, meta: TableMeta },
    /// A table is no longer part of a run.
    RemoveTable { family: u32, run: u64, table: u64 },
    /// Everything in the log below this address is in tables.
    LogFloor { lsn: u64 },
    /// No run and no table has had this id or a higher one.
    NextId { id: u64 },
    /// No column family has had this id or a higher one.
    NextFamily { id: u32 },
    /// The database was closed cleanly with these log segments. Any later edit makes this void.
    Closed { segments: Vec<SealedSegment> },
    /// The database was opened for writing.
    Opened,
}

/// Why bytes are not edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// No writer wrote these bytes.
    Malformed(&'static str),
    /// A kind of edit that this build does not know.
    UnknownKind(u8),
}

use DecodeError::Malformed;

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

impl Edit {
    /// Appends the edit's bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Edit::AddFamily { id, name } => {
                out.push(1);
                put_varint(out, u64::from(*id));
                put_string(out, name.as_bytes());
            }
            Edit::DropFamily { id } => {
                out.push(2);
                put_varint(out, u64::from(*id));
            }
            Edit::NewRun { family, run, tier, after } => {
                out.push(3);
                put_varint(out, u64::from(*family));
                put_varint(out, *run);
                out.push(*tier);
                // Run ids stay below the highest number: the state refuses ids without a successor.
                put_varint(out, after.map_or(0, |id| id.saturating_add(1)));
            }
            Edit::AddTable { family, run, meta } => {
                out.push(4);
                put_varint(out, u64::from(*family));
                put_varint(out, *run);
                put_varint(out, meta.id);
                put_varint(out, meta.file_len);
                out.extend_from_slice(&meta.footer_sum.to_le_bytes());
                for n in [meta.entries, meta.deletes, meta.raw_bytes, meta.max_version] {
                    put_varint(out, n);
                }
                put_string(out, &meta.smallest);
                put_string(out, &meta.largest);
            }
            Edit::RemoveTable { family, run, table } => {
                out.push(5);
                put_varint(out, u64::from(*family));
                put_varint(out, *run);
                put_varint(out, *table);
            }
            Edit::LogFloor { lsn } => {
                out.push(6);
                put_varint(out, *lsn);
            }
            Edit::NextId { id } => {
                out.push(7);
                put_varint(out, *id);
            }
            Edit::NextFamily { id } => {
                out.push(8);
                put_varint(out, u64::from(*id));
            }
            Edit::Closed { segments } => {
                out.push(9);
                put_varint(out, segments.len() as u64);
                for segment in segments {
                    put_varint(out, u64::from(segment.file));
                    put_varint(out, segment.base);
                    put_varint(out, segment.end);
                    out.extend_from_slice(&segment.sum.to_le_bytes());
                }
            }
            Edit::Opened => out.push(10),
        }
    }

    /// Decodes a group of edits.
    pub(crate) fn decode_group(bytes: &[u8]) -> Result<Vec<Edit>, DecodeError> {
        let mut reader = Reader { rest: bytes };
        let mut edits = Vec::new();
        while !reader.rest.is_empty() {
            edits.push(reader.edit()?);
        }
        Ok(edits)
    }
}

/// What is left to decode.
struct Reader<'a> {
    rest: &'a [u8],
}

/// The fewest bytes of a segment in `Closed`.
const MIN_SEGMENT: usize = 3 + 8;

impl<'a> Reader<'a> {
    fn edit(&mut self) -> Result<Edit, DecodeError> {
        Ok(match self.u8()? {
            1 => {
                let id = self.varint_u32()?;
                let name = std::str::from_utf8(self.string(MAX_NAME)?);
                Edit::AddFamily { id, name: name.map_err(|_| Malformed("a name is not UTF-8"))?.to_owned() }
            }
            2 => Edit::DropFamily { id: self.varint_u32()? },
            3 => Edit::NewRun {
                family: self.varint_u32()?,
                run: self.varint()?,
                tier: self.u8()?,
                after: self.varint()?.checked_sub(1),
            },
            4 => Edit::AddTable { family: self.varint_u32()?, run: self.varint()?, meta: self.table()? },
            5 => Edit::RemoveTable { family: self.varint_u32()?, run: self.varint()?, table: self.varint()? },
            6 => Edit::LogFloor { lsn: self.varint()? },
            7 => Edit::NextId { id: self.varint()? },
            8 => Edit::NextFamily { id: self.varint_u32()? },
            9 => {
                let count = self.varint()?;
                if count > (self.rest.len() / MIN_SEGMENT) as u64 {
                    return Err(Malformed("more log segments than there are bytes for"));
                }
                let mut segments = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    segments.push(SealedSegment {
                        file: self.varint_u32()?,
                        base: self.varint()?,
                        end: self.varint()?,
                        sum: self.u64()?,
                    });
                }
                Edit::Closed { segments }
            }
            10 => Edit::Opened,
            kind => return Err(DecodeError::UnknownKind(kind)),
        })
    }

    fn table(&mut self) -> Result<TableMeta, DecodeError> {
        Ok(TableMeta {
            id: self.varint()?,
            file_len: self.varint()?,
            footer_sum: self.u64()?,
            entries: self.varint()?,
            deletes: self.varint()?,
            raw_bytes: self.varint()?,
            max_version: self.varint()?,
            smallest: self.string(MAX_KEY + MAX_PREFIX)?.into(),
            largest: self.string(MAX_KEY + MAX_PREFIX)?.into(),
        })
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Malformed("an edit is cut short"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&byte, rest) = self.rest.split_first().ok_or(Malformed("an edit is cut short"))?;
        self.rest = rest;
        Ok(byte)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed("an edit is cut short"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return Err(Malformed("a number is too large"));
            }
            n |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                if byte == 0 && shift > 0 {
                    return Err(Malformed("a number is not in its shortest form"));
                }
                return Ok(n);
            }
        }
        Err(Malformed("a number is too long"))
    }

    fn varint_u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number is too large"))
    }

    fn string(&mut self, max: usize) -> Result<&'a [u8], DecodeError> {
        let len = self.varint()?;
        if len > max as u64 {
            return Err(Malformed("a string is too long"));
        }
        self.take(len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta() -> impl Strategy<Value = TableMeta> {
        let key = || proptest::collection::vec(any::<u8>(), 0..40);
        (any::<[u64; 5]>(), any::<[u64; 2]>(), key(), key()).prop_map(|(a, b, smallest, largest)| TableMeta {
            id: a[0],
            file_len: a[1] >> 20,
            footer_sum: a[2],
            entries: a[3],
            deletes: a[4] >> 40,
            raw_bytes: b[0],
            max_version: b[1],
            smallest: smallest.into(),
            largest: largest.into(),
        })
    }

    fn edit() -> impl Strategy<Value = Edit> {
        let segment = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(file, base, end, sum)| SealedSegment { file, base, end, sum });
        prop_oneof![
            (any::<u32>(), ".{0,20}").prop_map(|(id, name)| Edit::AddFamily { id, name }),
            any::<u32>().prop_map(|id| Edit::DropFamily { id }),
            (any::<u32>(), any::<u64>(), any::<u8>(), proptest::option::of(0..u64::MAX))
                .prop_map(|(family, run, tier, after)| Edit::NewRun { family, run, tier, after }),
            (any::<u32>(), any::<u64>(), meta()).prop_map(|(family, run, meta)| Edit::AddTable {
                family,
                run,
                meta
            }),
            (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(family, run, table)| Edit::RemoveTable {
                family,
                run,
                table
            }),
            any::<u64>().prop_map(|lsn| Edit::LogFloor { lsn }),
            any::<u64>().prop_map(|id| Edit::NextId { id }),
            any::<u32>().prop_map(|id| Edit::NextFamily { id }),
            proptest::collection::vec(segment, 0..4).prop_map(|segments| Edit::Closed { segments }),
            Just(Edit::Opened),
        ]
    }

    fn encoded(edits: &[Edit]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for edit in edits {
            edit.encode(&mut bytes);
        }
        bytes
    }

    proptest! {
        #[test]
        fn groups_survive_encoding_and_no_prefix_passes_for_one(edits in proptest::collection::vec(edit(), 0..6)) {
            let bytes = encoded(&edits);
            prop_assert_eq!(Edit::decode_group(&bytes), Ok(edits.clone()));
            for len in 0..bytes.len() {
                // A prefix is whole edits, or refused; it is never another edit.
                match Edit::decode_group(&bytes[..len]) {
                    Ok(fewer) => prop_assert_eq!(&fewer[..], &edits[..fewer.len()]),
                    Err(e) => prop_assert!(matches!(e, Malformed(_))),
                }
            }
        }

        #[test]
        fn arbitrary_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(edits) = Edit::decode_group(&bytes) {
                // There is one encoding of everything.
                prop_assert_eq!(encoded(&edits), bytes);
            }
        }

        #[test]
        fn changed_bytes_decode_or_are_refused(
            edits in proptest::collection::vec(edit(), 1..4), at in any::<usize>(), to in any::<u8>()
        ) {
            let mut bytes = encoded(&edits);
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(edits) = Edit::decode_group(&bytes) {
                prop_assert_eq!(encoded(&edits), bytes);
            }
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for bytes in [
            &[7, 0x80, 0][..],
            &[7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2],
            &[2, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F],
            &[9, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
            &[1, 0, 0x81, 0x08],
            &[1, 0, 1, 0xFF],
        ] {
            assert!(matches!(Edit::decode_group(bytes), Err(Malformed(_))), "{bytes:?}");
        }
        assert_eq!(Edit::decode_group(&[10, 11]), Err(DecodeError::UnknownKind(11)));
        let largest = [7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert_eq!(Edit::decode_group(&largest), Ok(vec![Edit::NextId { id: u64::MAX }]));
    }
}
