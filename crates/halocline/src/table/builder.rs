//! Writes a table, from entries given in order.
//!
//! Pages are encoded as they fill and leave in writes of [`WRITE`] bytes; fences and key hashes stay in memory
//! until the end. A builder that is dropped unfinished leaves a file without a footer, which no one opens.

use super::fence::FenceBuilder;
use super::filter::Filter;
use super::footer::{Footer, Properties, Section};
use super::page_builder::PageBuilder;
use super::{Codec, FilterKind, TableMeta, TableOptions, dictionary, group};
use crate::entry::{Kind, MAX_KEY, MAX_PREFIX, MAX_VALUE};
use crate::io::File;
use crate::io::checksum::{checksum, key_hash, place};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes to a write.
const WRITE: usize = 256 << 10;
/// A dictionary is chosen from so many times its size of values.
const SAMPLE: usize = 16;

/// A table being written.
pub(crate) struct TableBuilder {
    file: Arc<dyn File>,
    path: PathBuf,
    options: TableOptions,
    id: u64,
    page: PageBuilder,
    /// Pages held back until the dictionary is chosen, and the bytes of their values; `None` once it is.
    held: Option<(Vec<PageBuilder>, usize)>,
    dictionary: Vec<u8>,
    encoder: group::Encoder,
    fences: FenceBuilder,
    hashes: Vec<u64>,
    /// Encoded, not yet written; `written` is its place in the file.
    out: Vec<u8>,
    written: u64,
    properties: Properties,
    last_key: Vec<u8>,
    last_version: u64,
}

impl TableBuilder {
    /// Begins table `id` in `file`, which is empty.
    pub(crate) fn new(file: Arc<dyn File>, path: &Path, id: u64, mut options: TableOptions) -> TableBuilder {
        options.page_bytes = options.page_bytes.clamp(256, 32 << 10);
        options.group_bytes = options.group_bytes.clamp(64, 32 << 10);
        options.dictionary_bytes = options.dictionary_bytes.min(16 << 10);
        TableBuilder {
            file,
            path: path.to_path_buf(),
            id,
            page: PageBuilder::default(),
            held: (options.compression == Codec::Lz4 && options.dictionary_bytes > 0).then(Default::default),
            dictionary: Vec::new(),
            encoder: group::Encoder::new(options.compression, &[]),
            fences: FenceBuilder::default(),
            hashes: Vec::new(),
            out: Vec::with_capacity(WRITE + (16 << 10)),
            written: 0,
            properties: Properties {
                page_bytes: options.page_bytes as u32,
                group_bytes: options.group_bytes as u32,
                ..Properties::default()
            },
            options,
            last_key: Vec::new(),
            last_version: 0,
        }
    }

    /// Adds an entry. Keys ascend; versions of one key come newest first; version 0 says that every snapshot sees the
    /// entry, so it is the last of its key.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], version: u64, kind: Kind, value: &[u8]) -> Result<()> {
        let hash = if self.options.filter == FilterKind::None { 0 } else { key_hash(key) };
        self.add_hashed(key, hash, version, kind, value)
    }

    /// As [`add`](TableBuilder::add), with the key's `key_hash` already known.
    pub(crate) fn add_hashed(
        &mut self,
        key: &[u8],
        hash: u64,
        version: u64,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        if key.len() > MAX_KEY + MAX_PREFIX || value.len() > MAX_VALUE {
            return Err(Error::invalid(format!(
                "a key of {} bytes with a value of {} bytes is too long for a table",
                key.len(),
                value.len()
            )));
        }
        let properties = &mut self.properties;
        let new_key = properties.entries == 0 || *self.last_key != *key;
        if new_key {
            if properties.entries == 0 {
                properties.smallest = key.into();
            } else if *self.last_key > *key {
                return Err(Error::invalid("entries were given to a table out of key order"));
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            properties.keys += 1;
            if self.options.filter != FilterKind::None {
                self.hashes.push(hash);
            }
        } else if version >= self.last_version {
            return Err(Error::invalid("versions of a key were given to a table out of order"));
        }
        self.last_version = version;
        properties.entries += 1;
        properties.deletes += u64::from(kind == Kind::Delete);
        properties.raw_bytes += (key.len() + value.len()) as u64;
        properties.max_version = properties.max_version.max(version);
        if version != 0 && (version < properties.min_version || properties.min_version == 0) {
            properties.min_version = version;
        }
        if self.page.is_full_for(key.len(), value.len(), self.options.page_bytes) {
            self.end_page()?;
        }
        self.page.add(key, version, kind, value);
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        let mut page = std::mem::take(&mut self.page);
        if let Some((pages, bytes)) = &mut self.held {
            *bytes += page.values().len();
            pages.push(page);
            if *bytes < SAMPLE * self.options.dictionary_bytes { Ok(()) } else { self.choose_dictionary() }
        } else {
            self.write_page(&page)?;
            // Its buffers serve the next.
            page.clear();
            self.page = page;
            Ok(())
        }
    }

    /// Chooses the dictionary, if that is still to be done, and writes the pages held back.
    fn choose_dictionary(&mut self) -> Result<()> {
        let Some((pages, _)) = self.held.take() else { return Ok(()) };
        let groups: Vec<&[u8]> =
            pages.iter().flat_map(|page| page.values().chunks(self.options.group_bytes)).collect();
        self.dictionary = dictionary::choose(&groups, self.options.dictionary_bytes);
        self.encoder = group::Encoder::new(self.options.compression, &self.dictionary);
        pages.iter().try_for_each(|page| self.write_page(page))
    }

    fn write_page(&mut self, page: &PageBuilder) -> Result<()> {
        let offset = self.written + self.out.len() as u64;
        let unit = u32::try_from(offset / 8).ok().filter(|&unit| unit < (1 << 31) - (1 << 28));
        let Some(unit) = unit.filter(|_| self.fences.has_room_for(page.first_key().len())) else {
            return Err(Error::invalid("a table is full: at most 14 GB of pages and 2 GB of separators"));
        };
        self.fences.add(unit, page.first_key(), page.last_key());
        page.finish(&mut self.out, self.id, offset, self.options.group_bytes, &mut self.encoder);
        if self.out.len() >= WRITE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let attempt = |e| Error::io("write a table", &self.path, e);
        self.file.write_all_at(&self.out, self.written).map_err(attempt)?;
        self.file.start_writeback(self.written, self.out.len() as u64).map_err(attempt)?;
        self.written += self.out.len() as u64;
        self.out.clear();
        if self.out.capacity() > 4 * WRITE {
            self.out = Vec::with_capacity(WRITE + (16 << 10));
        }
        Ok(())
    }

    /// Bytes of keys and values added so far.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.properties.raw_bytes
    }

    /// Writes everything out, syncs the file, and returns what the manifest needs. The directory is not synced.
    /// A table needs at least one entry.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        if self.properties.entries == 0 {
            return Err(Error::invalid("a table needs at least one entry"));
        }
        if !self.page.is_empty() {
            self.end_page()?;
        }
        self.choose_dictionary()?;
        self.properties.largest = std::mem::take(&mut self.last_key).into();

        let dictionary = std::mem::take(&mut self.dictionary);
        let mut filter = Vec::new();
        Filter::build(self.options.filter, &mut self.hashes).encode(&mut filter);
        let mut index = Vec::with_capacity(self.fences.encoded_len());
        self.fences.encode(&mut index);
        let mut properties = Vec::new();
        self.properties.encode(&mut properties);
        let footer = Footer {
            id: self.id,
            filter: self.section(&filter),
            index: self.section(&index),
            dictionary: self.section(&dictionary),
            properties: self.section(&properties),
        };
        let offset = self.written + self.out.len() as u64;
        let (bytes, footer_sum) = footer.encode(offset);
        self.out.extend_from_slice(&bytes);
        self.flush()?;
        self.file.sync().map_err(|e| Error::io("sync a table", &self.path, e))?;
        let Properties { entries, deletes, raw_bytes, max_version, smallest, largest, .. } = self.properties;
        Ok(TableMeta {
            id: self.id,
            file_len: self.written,
            footer_sum,
            entries,
            deletes,
            raw_bytes,
            max_version,
            smallest,
            largest,
        })
    }

    fn section(&mut self, bytes: &[u8]) -> Section {
        let offset = self.written + self.out.len() as u64;
        self.out.extend_from_slice(bytes);
        Section { offset, len: bytes.len() as u64, sum: checksum(bytes, place(self.id, offset)) }
    }
}
