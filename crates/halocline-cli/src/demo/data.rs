//! The demo's records in a file, in the order in which a worker process is to use them.
//!
//! ```text
//! magic     [u8; 8]   "HALODEMO"
//! records   u64       little-endian, as all numbers here
//! bytes     u64       of all keys and values
//! digest    u64       the sum of the records' digests, whatever their order
//! then, a record:
//! key_len   u32
//! value_len u32
//! key, value
//! ```
//!
//! Workers read it block by block, outside the timed sections, so that they hold little memory of their own.

use super::text::Text;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"HALODEMO";

/// What all records together must come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub records: u64,
    pub bytes: u64,
    pub digest: u64,
}

impl Sum {
    /// Takes a record in. It looks at both ends of the value, so that an engine must produce it.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.bytes += (key.len() + value.len()) as u64;
        let ends = word(value, 0)
            ^ word(value, value.len().saturating_sub(8)).rotate_left(16)
            ^ (value.len() as u64).rotate_left(32);
        // The key's part must go through a product of its own, or values could trade places unseen.
        let key = word(key, key.len().saturating_sub(8)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (key ^ (key >> 32) ^ ends).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.digest = self.digest.wrapping_add(mixed ^ (mixed >> 31));
    }
}

/// Eight bytes at `at`, or what there is of them.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    match rest.first_chunk() {
        Some(&whole) => u64::from_le_bytes(whole),
        None => rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Writes the records in the order that `text` has now.
pub fn write(text: &Text, path: &Path) -> io::Result<Sum> {
    let mut sum = Sum::default();
    for at in 0..text.len() {
        let (key, value) = text.record(at);
        sum.add(key, value);
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(MAGIC)?;
    for number in [sum.records, sum.bytes, sum.digest] {
        out.write_all(&number.to_le_bytes())?;
    }
    for at in 0..text.len() {
        let (key, value) = text.record(at);
        out.write_all(&(key.len() as u32).to_le_bytes())?;
        out.write_all(&(value.len() as u32).to_le_bytes())?;
        out.write_all(key)?;
        out.write_all(value)?;
    }
    out.flush()?;
    Ok(sum)
}

/// Reads records block by block.
pub struct Reader {
    input: BufReader<File>,
    left: u64,
    /// What the file says that all its records come to.
    pub sum: Sum,
}

impl Reader {
    pub fn open(path: &Path) -> io::Result<Reader> {
        let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut magic = [0; 8];
        input.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file of the demo"));
        }
        let sum =
            Sum { records: u64_of(&mut input)?, bytes: u64_of(&mut input)?, digest: u64_of(&mut input)? };
        Ok(Reader { input, left: sum.records, sum })
    }

    /// Reads the next block, of at most `records`; an empty block is the end.
    pub fn block(&mut self, block: &mut Block, records: usize) -> io::Result<()> {
        block.bytes.clear();
        block.places.clear();
        while self.left > 0 && block.places.len() < records {
            let mut head = [0; 8];
            self.input.read_exact(&mut head)?;
            let [k0, k1, k2, k3, v0, v1, v2, v3] = head;
            let key = u32::from_le_bytes([k0, k1, k2, k3]) as usize;
            let value = u32::from_le_bytes([v0, v1, v2, v3]) as usize;
            let offset = block.bytes.len();
            block.bytes.resize(offset + key + value, 0);
            self.input.read_exact(&mut block.bytes[offset..])?;
            block.places.push((offset, key, value));
            self.left -= 1;
        }
        Ok(())
    }

    /// Passes over records.
    pub fn skip(&mut self, records: u64) -> io::Result<()> {
        let mut block = Block::default();
        for _ in 0..records {
            self.block(&mut block, 1)?;
        }
        Ok(())
    }
}

fn u64_of(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Some records in memory.
#[derive(Default)]
pub struct Block {
    bytes: Vec<u8>,
    places: Vec<(usize, usize, usize)>,
}

impl Block {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|&(offset, key, value)| {
            (&self.bytes[offset..offset + key], &self.bytes[offset + key..offset + key + value])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::sample;
    use super::*;

    #[test]
    fn what_is_written_is_read_in_its_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let mut text = sample(1234);
        text.shuffle(1);
        let sum = write(&text, &path).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.sum, sum);
        let mut block = Block::default();
        let mut seen = Sum::default();
        reader.skip(34).unwrap();
        loop {
            reader.block(&mut block, 500).unwrap();
            if block.is_empty() {
                break;
            }
            for (key, value) in block.iter() {
                assert_eq!((key, value), text.record(34 + seen.records as usize));
                seen.add(key, value);
            }
        }
        assert_eq!(seen.records, 1200);
    }

    #[test]
    fn the_digest_sees_a_changed_value_and_not_the_order() {
        let add = |records: &[(&[u8], &[u8])]| {
            let mut sum = Sum::default();
            records.iter().for_each(|(key, value)| sum.add(key, value));
            sum
        };
        let plain = add(&[(b"a", b"1"), (b"b", b"222222222")]);
        assert_eq!(plain, add(&[(b"b", b"222222222"), (b"a", b"1")]));
        assert_ne!(plain, add(&[(b"a", b"2"), (b"b", b"222222222")]));
        assert_ne!(plain, add(&[(b"a", b"1"), (b"b", b"222222223")]));
        assert_ne!(plain, add(&[(b"b", b"1"), (b"a", b"222222222")]));
    }
}
