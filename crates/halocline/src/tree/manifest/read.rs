//! Reading a manifest and `CURRENT`: what is there, what was cut short, and what is damage.
//!
//! No bytes make this panic, take more than linear time, or allocate more than the longest record.

use super::super::edit::{DecodeError, Edit};
use super::*;

/// The number of the manifest that `CURRENT` names.
pub(super) fn read_current(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<u64> {
    let path = dir.join(CURRENT);
    let file = match vfs.open(&path, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(match Manifest::presence(vfs, dir)? {
                Presence::Present => {
                    let message = "CURRENT is missing, though manifests are there: restore it, or the directory, \
                                   from a copy";
                    Error::corruption(&path, 0, message)
                }
                _ => Error::new(ErrorKind::Missing, "no database is there").at(dir, 0),
            });
        }
        Err(e) => return Err(Error::io("open the file", &path, e)),
    };
    let mut bytes = [0; MAX_CURRENT];
    let mut len = 0;
    while len < MAX_CURRENT {
        match file.read_at(&mut bytes[len..], len as u64) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read the file", &path, e)),
        }
    }
    let number = std::str::from_utf8(&bytes[..len]).ok().and_then(|text| {
        let (name, _) = text.split_once(' ')?;
        let expected = format!("{name} {:016x}\n", checksum(name.as_bytes(), 0));
        (expected == text).then(|| number_of(name))?
    });
    number.ok_or_else(|| Error::corruption(&path, 0, "CURRENT does not name a manifest"))
}

/// What a manifest file says.
pub(super) struct Contents {
    pub(super) state: State,
    pub(super) database: [u8; 16],
    pub(super) snapshot_end: u64,
    /// Behind the last valid record.
    pub(super) end: u64,
    /// Everything below was durable.
    pub(super) marked: u64,
    pub(super) next_mark: usize,
    /// Whether an incomplete append follows the last valid record.
    pub(super) torn: bool,
}

enum Record {
    Edits {
        payload: Vec<u8>,
        len: u64,
    },
    /// No valid record is here.
    Damaged(&'static str),
}

fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn le_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Contents {
    pub(super) fn read(file: &dyn File, path: &Path, number: u64) -> Result<Contents> {
        let damaged = |offset, message: &str| Error::corruption(path, offset, message);
        let read = |buf: &mut [u8], offset| {
            let failed = |e| Error::io("read the manifest", path, e).at(path, offset);
            file.read_exact_at(buf, offset).map_err(failed)
        };
        let file_len = file.len().map_err(|e| Error::io("get the length of the manifest", path, e))?;
        if file_len < RECORDS {
            return Err(damaged(file_len, "the manifest is cut short"));
        }
        let mut page = vec![0; RECORDS as usize];
        read(&mut page, 0)?;
        let field = |at| le_u64(&page, at).unwrap_or_default();
        if page[..8] != *MAGIC {
            return Err(damaged(0, "this is not a manifest"));
        }
        if field(56) != checksum(&page[..HEADER - 8], place(number, 0)) {
            return Err(damaged(0, "the header of the manifest does not match its checksum"));
        }
        let format = le_u32(&page, 8).unwrap_or_default();
        if format != FORMAT {
            let message = format!("the manifest has format version {format}; this build knows {FORMAT}");
            return Err(Error::new(ErrorKind::Unsupported, message).at(path, 8));
        }
        let mut database = [0; 16];
        database.copy_from_slice(&page[16..32]);
        let snapshot_end = field(40);
        if field(32) != number || snapshot_end < RECORDS {
            return Err(damaged(32, "the header of the manifest contradicts itself"));
        }
        let mut marked = snapshot_end;
        let mut next_mark = 0;
        for (i, at) in MARKS.into_iter().enumerate() {
            let end = field(at as usize);
            if page[at as usize..at as usize + MARK] == mark(number, at, end) && end >= marked {
                marked = end;
                next_mark = i ^ 1;
            }
        }

        let mut state = State::default();
        let mut at = RECORDS;
        let mut torn = false;
        while at < file_len {
            match read_record(file, path, number, at, file_len)? {
                Record::Edits { payload, len } => {
                    let edits = Edit::decode_group(&payload).map_err(|e| match e {
                        DecodeError::Malformed(what) => damaged(at, what),
                        DecodeError::UnknownKind(kind) => {
                            let message =
                                format!("the manifest uses a feature that this build does not know ({kind})");
                            Error::new(ErrorKind::Unsupported, message).at(path, at)
                        }
                    })?;
                    state
                        .apply(&edits)
                        .map_err(|e| damaged(at, &format!("an edit does not fit the state: {e}")))?;
                    at += len;
                }
                Record::Damaged(what) => {
                    if at < marked || valid_record_follows(file, path, number, at, file_len)? {
                        return Err(damaged(at, what));
                    }
                    torn = true;
                    break;
                }
            }
        }
        if at < marked {
            return Err(damaged(at, "the manifest is cut short"));
        }
        Ok(Contents { state, database, snapshot_end, end: at, marked, next_mark, torn })
    }
}

/// Reads the record at `at`, where the file has at least one more byte.
fn read_record(file: &dyn File, path: &Path, number: u64, at: u64, file_len: u64) -> Result<Record> {
    let failed = |e| Error::io("read the manifest", path, e).at(path, at);
    let left = file_len - at;
    let mut header = [0; RECORD_HEADER];
    if left < RECORD_HEADER as u64 {
        return Ok(Record::Damaged("a record of the manifest is cut short"));
    }
    file.read_exact_at(&mut header, at).map_err(failed)?;
    let payload_len = le_u32(&header, 8).unwrap_or_default() as usize;
    let len = ((RECORD_HEADER + payload_len) as u64).next_multiple_of(8);
    if payload_len > MAX_PAYLOAD {
        return Ok(Record::Damaged("the length of a record of the manifest is impossible"));
    }
    if len > left {
        return Ok(Record::Damaged("a record of the manifest is cut short"));
    }
    let mut bytes = vec![0; RECORD_HEADER - 8 + payload_len];
    file.read_exact_at(&mut bytes, at + 8).map_err(failed)?;
    if le_u64(&header, 0) != Some(checksum(&bytes, place(number, at))) {
        return Ok(Record::Damaged("a record of the manifest does not match its checksum"));
    }
    let kind = le_u32(&header, 12).unwrap_or_default();
    if kind != KIND_EDITS {
        let message = format!("the manifest has a kind of record that this build does not know ({kind})");
        return Err(Error::new(ErrorKind::Unsupported, message).at(path, at));
    }
    bytes.drain(..RECORD_HEADER - 8);
    Ok(Record::Edits { payload: bytes, len })
}

/// Whether a valid record begins behind `at`: then the damage at `at` is not an append that was cut short, since
/// nothing is appended behind one of those. More bytes than one append leaves, or bytes made so that the search
/// would take long, count as one.
fn valid_record_follows(file: &dyn File, path: &Path, number: u64, at: u64, file_len: u64) -> Result<bool> {
    let left = file_len - at;
    if left > (RECORD_HEADER + MAX_PAYLOAD) as u64 {
        return Ok(true);
    }
    let mut bytes = vec![0; left as usize];
    file.read_exact_at(&mut bytes, at).map_err(|e| Error::io("read the manifest", path, e).at(path, at))?;
    let mut budget = (4 * bytes.len()).max(1 << 20);
    for start in (8..bytes.len().saturating_sub(RECORD_HEADER - 1)).step_by(8) {
        let Some((len, KIND_EDITS)) = le_u32(&bytes, start + 8).zip(le_u32(&bytes, start + 12)) else {
            continue;
        };
        let Some(covered) = bytes.get(start + 8..start + RECORD_HEADER + len as usize) else { continue };
        if covered.len() > budget {
            return Ok(true);
        }
        budget -= covered.len();
        if le_u64(&bytes, start) == Some(checksum(covered, place(number, at + start as u64))) {
            return Ok(true);
        }
    }
    Ok(false)
}
