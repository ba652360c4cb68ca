//! An open table: point reads, and what cursors are made from.
//!
//! Filter, fences and dictionary are in memory; pages are reached through a mapping or by `pread` ([`Access`]). The
//! file is immutable, so readers need no lock: the only shared words that change are the bits that say which mapped
//! pages have had their checksum compared since the file was opened.

use super::cursor::TableCursor;
use super::fence::Fences;
use super::filter::Filter;
use super::footer::{FOOTER, Footer, Properties, Section};
use super::page::{Group, Page};
use super::{Access, Checked, Damage, GroupCache, TableMeta, get_u64, group, prefetch};
use crate::entry::Kind;
use crate::io::checksum::{checksum, key_hash, place};
use crate::io::{Advice, File, MapMode, Mapping};
use crate::iter::{Source, Visibility};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{Error, Result, Value};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a point read found.
#[derive(Debug)]
pub(crate) struct TableHit {
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

/// How pages are reached.
pub(super) enum Pages {
    Mapped { mapping: Arc<Mapping>, verified: Box<[AtomicU64]> },
    Pread,
}

/// An open table.
pub(crate) struct Table {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: TableMeta,
    properties: Properties,
    pub(super) pages: Pages,
    pub(super) fences: Fences,
    filter: Filter,
    dictionary: Box<[u8]>,
    groups: Option<Arc<dyn GroupCache>>,
    on_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

thread_local! {
    /// Buffers for a page and a decoded group. Taken out while in use, so a nested read would use fresh ones.
    static PAGE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static GROUP: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Cache lines at the front of a page that a search is likely to touch: a key section of 16-byte keys.
const KEY_LINES: usize = 10;
/// Larger buffers are not kept.
const KEEP: usize = 256 << 10;

fn with_buffer<R>(
    buffer: &'static std::thread::LocalKey<Cell<Vec<u8>>>,
    f: impl FnOnce(&mut Vec<u8>) -> R,
) -> R {
    let mut bytes = buffer.take();
    let result = f(&mut bytes);
    if bytes.capacity() <= KEEP {
        buffer.set(bytes);
    }
    result
}

/// Where an entry was found.
struct Found<'a> {
    bytes: &'a [u8],
    page: Page,
    /// The page's offset in the file.
    offset: u64,
    entry: usize,
    kind: Kind,
    version: u64,
}

impl Table {
    /// Opens the table that `meta` describes.
    ///
    /// # Errors
    /// `Corruption` if the file is not that table, or damaged where opening reads it; `Unsupported` if it is of a
    /// format this version does not know.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        meta: TableMeta,
        access: Access,
        groups: Option<Arc<dyn GroupCache>>,
    ) -> Result<Arc<Table>> {
        let opened = Opened::read(&*file, path, meta.id)?;
        if opened.meta != meta {
            let damage = Damage::Corrupt("it is not the table that the manifest describes");
            return Err(damage.at(path, opened.footer_offset));
        }
        let index = read_section(&*file, path, meta.id, opened.footer.index)?;
        let fences = Fences::decode(&index, opened.footer.filter.offset)
            .map_err(|d| d.at(path, opened.footer.index.offset))?;
        let filter = read_section(&*file, path, meta.id, opened.footer.filter)?;
        let filter = Filter::decode(&filter).map_err(|d| d.at(path, opened.footer.filter.offset))?;
        let dictionary = read_section(&*file, path, meta.id, opened.footer.dictionary)?;
        let pages = match access {
            Access::Pread => Pages::Pread,
            Access::Mapped => {
                let attempt = |e| Error::io("map a table", path, e);
                let len = usize::try_from(opened.footer.filter.offset)
                    .map_err(|_| Error::invalid("a table is larger than the address space"))?;
                let mapping = file.map(len, MapMode::Read).map_err(attempt)?;
                mapping.advise(Advice::Random, 0..len).map_err(attempt)?;
                let words = fences.pages().div_ceil(64);
                Pages::Mapped {
                    mapping: Arc::new(mapping),
                    verified: (0..words).map(|_| AtomicU64::new(0)).collect(),
                }
            }
        };
        Ok(Arc::new(Table {
            file,
            path: path.to_path_buf(),
            meta,
            properties: opened.properties,
            pages,
            fences,
            filter,
            dictionary: dictionary.into(),
            groups,
            on_drop: Mutex::new(None),
        }))
    }

    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Has the filter's cache lines for a key with that `key_hash` fetched.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        self.filter.prefetch(hash);
    }

    /// Whether a key with that `key_hash` may be here; false is certain.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// The newest version of `key` below `before` (one stored as 0 always is). Does not ask the filter.
    pub(crate) fn get(&self, key: &[u8], before: u64) -> Result<Option<TableHit>> {
        self.find::<true, _>(key, before, |found| {
            let value = self.value_of(found)?;
            Ok(TableHit { kind: found.kind, value })
        })
    }

    /// As [`get`](Table::get), of kind and version only: no value is decoded.
    pub(crate) fn contains(&self, key: &[u8], before: u64) -> Result<Option<(Kind, u64)>> {
        self.find::<false, _>(key, before, |found| Ok((found.kind, found.version)))
    }

    /// As [`get`](Table::get), appending the value to `out`.
    pub(crate) fn get_into(&self, key: &[u8], before: u64, out: &mut Vec<u8>) -> Result<Option<(Kind, u64)>> {
        self.find::<true, _>(key, before, |found| {
            self.with_value(found, |_, value| out.extend_from_slice(value))?;
            Ok((found.kind, found.version))
        })
    }

    /// A position in the table; it keeps the table open.
    pub(crate) fn cursor(self: &Arc<Self>, visibility: Visibility) -> TableCursor {
        TableCursor::new(Arc::clone(self), visibility)
    }

    /// Bytes this table keeps in memory: filter, fences, dictionary, bits.
    pub(crate) fn memory_bytes(&self) -> usize {
        let verified = match &self.pages {
            Pages::Mapped { verified, .. } => verified.len() * 8,
            Pages::Pread => 0,
        };
        self.filter.memory_bytes() + self.fences.memory_bytes() + self.dictionary.len() + verified
    }

    /// Has `hook` called when the table is dropped for good: the file can then be removed.
    pub(crate) fn mark_obsolete(&self, hook: Box<dyn FnOnce() + Send>) {
        *self.on_drop.lock().unwrap_or_else(|e| e.into_inner()) = Some(hook);
    }

    /// Reads all of it and checks every checksum, order, count, and that the filter admits every key. Returns the
    /// number of entries; the error names file and offset.
    pub(crate) fn verify(self: &Arc<Self>) -> Result<u64> {
        let footer_offset = self.meta.file_len - FOOTER as u64;
        let Footer { filter, index, dictionary, .. } =
            Opened::read(&*self.file, &self.path, self.meta.id)?.footer;
        for section in [filter, index, dictionary] {
            read_section(&*self.file, &self.path, self.meta.id, section)?;
        }
        let mut seen = Properties::default();
        let mut cursor = self.cursor(Visibility::All).uncached();
        let mut last: Option<(Vec<u8>, u64)> = None;
        cursor.seek_first()?;
        while cursor.valid() {
            let wrong = |what| Damage::Corrupt(what).at(&self.path, cursor.page_offset());
            let (key, version) = (cursor.key(), cursor.version());
            let new_key = match &mut last {
                None => {
                    seen.smallest = key.into();
                    true
                }
                Some((last_key, last_version)) if *last_key == key => {
                    if version >= *last_version {
                        return Err(wrong("versions of a key are out of order"));
                    }
                    false
                }
                Some((last_key, _)) if **last_key > *key => return Err(wrong("keys are out of order")),
                Some(_) => true,
            };
            if new_key {
                let page = self.fences.last_page_for(key);
                if !self.may_contain(key_hash(key)) {
                    return Err(wrong("the filter denies a key"));
                }
                if self.fences.page(page).0 < cursor.page_offset() {
                    return Err(wrong("the index does not lead to a key"));
                }
                seen.keys += 1;
            }
            seen.entries += 1;
            seen.deletes += u64::from(cursor.kind() == Kind::Delete);
            seen.max_version = seen.max_version.max(version);
            let key = key.to_vec();
            seen.raw_bytes += (key.len() + cursor.value()?.len()) as u64;
            last = Some((key, version));
            cursor.next()?;
        }
        if let Some((key, _)) = last {
            seen.largest = key.into();
        }
        let stated = &self.properties;
        seen.min_version = stated.min_version;
        seen.page_bytes = stated.page_bytes;
        seen.group_bytes = stated.group_bytes;
        if seen != *stated {
            return Err(Damage::Corrupt("the entries are not those that its properties state")
                .at(&self.path, footer_offset));
        }
        Ok(seen.entries)
    }

    /// Has the front of page `i` fetched, if it is mapped: header, groups, heads and most suffixes are asked for
    /// together, before the first of them is waited for.
    #[inline]
    pub(super) fn prefetch_keys(&self, i: usize) {
        if let Pages::Mapped { mapping, .. } = &self.pages {
            let start = mapping.as_ptr().wrapping_add(self.fences.page(i).0 as usize);
            for line in 0..KEY_LINES {
                prefetch(start.wrapping_add(line * 64));
            }
        }
    }

    /// Whether page `i` of a mapped table was read since the table was opened.
    #[inline]
    pub(super) fn was_touched(&self, i: usize) -> bool {
        match &self.pages {
            Pages::Mapped { verified, .. } => {
                verified.get(i / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (i % 64) & 1 == 1)
            }
            Pages::Pread => false,
        }
    }

    /// The bytes of page `i`: of the mapping, or read into `buffer`.
    #[inline]
    pub(super) fn page_bytes<'a>(&'a self, i: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let (offset, len) = self.fences.page(i);
        match &self.pages {
            Pages::Mapped { mapping, verified } => {
                let bytes = Self::mapped(mapping, offset, len);
                let (word, bit) = (&verified[i / 64], 1 << (i % 64));
                // Relaxed: the bit says something about bytes that never change; it orders nothing.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    self.check_page(bytes, offset)?;
                    word.fetch_or(bit, Ordering::Relaxed);
                }
                Ok(bytes)
            }
            Pages::Pread => {
                self.read(offset, len, buffer)?;
                self.check_page(buffer, offset)?;
                Ok(buffer)
            }
        }
    }

    /// Reads that part of the file into `buffer`, whatever the access. Nothing is checked.
    pub(super) fn read(&self, offset: u64, len: usize, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.resize(len, 0);
        self.file.read_exact_at(buffer, offset).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Damage::Corrupt("it is shorter than it was").at(&self.path, offset)
            }
            _ => Error::io("read a table", &self.path, e).at(&self.path, offset),
        })
    }

    #[inline]
    pub(super) fn mapped(mapping: &Mapping, offset: u64, len: usize) -> &[u8] {
        // SAFETY: a table's bytes are not written any more once it is finished, and only finished tables are opened.
        unsafe { mapping.slice(offset as usize, len) }
    }

    /// Compares the checksum of the page at `offset`.
    pub(super) fn check_page(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let sum = get_u64(bytes, 0);
        if bytes.get(8..).map(|rest| checksum(rest, place(self.meta.id, offset))) != sum {
            return Err(Damage::Corrupt("a page's checksum does not match").at(&self.path, offset));
        }
        Ok(())
    }

    /// Finds the newest version of `key` below `before` and hands it to `f`, which wants its value if `VALUE`.
    #[inline]
    fn find<const VALUE: bool, R>(
        &self,
        key: &[u8],
        before: u64,
        mut f: impl FnMut(&Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let mut i = self.fences.first_page_for(key);
        self.prefetch_keys(i);
        with_buffer(&PAGE, |buffer| {
            loop {
                let offset = self.fences.page(i).0;
                let bytes = self.page_bytes(i, buffer)?;
                let at = |d: Damage| d.at(&self.path, offset);
                let page = Page::parse(bytes).map_err(at)?;
                let (mut entry, found) = page
                    .lower_bound_with(bytes, key, |entry| {
                        if VALUE {
                            page.prefetch_value(bytes, entry);
                        }
                    })
                    .map_err(at)?;
                if found {
                    loop {
                        let version = page.version(bytes, entry).map_err(at)?;
                        if version == 0 || version < before {
                            let kind = page.kind(bytes, entry).map_err(at)?;
                            return f(&Found { bytes, page, offset, entry, kind, version }).map(Some);
                        }
                        entry += 1;
                        if entry == page.entries || !page.same_key_as_next(bytes, entry - 1).map_err(at)? {
                            break;
                        }
                    }
                }
                // The key can only go on, or begin, on a page that lies before its separator's end.
                let more = entry == page.entries && i + 1 < self.fences.pages();
                if !more || self.fences.separator(i + 1) != key {
                    return Ok(None);
                }
                i += 1;
            }
        })
    }

    fn value_of(&self, found: &Found<'_>) -> Result<Value> {
        self.with_value(found, |owner, value| match owner {
            Owner::Mapping(mapping, offset) => Value::mapped(mapping, offset, value.len()),
            Owner::Group(group, offset) => Value::shared(group, offset, value.len()),
            Owner::None => Value::copy(value),
        })
    }

    /// Calls `f` with the found entry's value, and with what keeps it in memory if something does.
    fn with_value<R>(&self, found: &Found<'_>, f: impl FnOnce(Owner<'_>, &[u8]) -> R) -> Result<R> {
        let Found { bytes, ref page, offset, entry, .. } = *found;
        let at = |d: Damage| d.at(&self.path, offset);
        let group = page.group_of(bytes, entry).map_err(at)?;
        let range = page.value_in_group(bytes, &group, entry).map_err(at)?;
        if let Some(raw) = raw_group(bytes, &group).map_err(at)? {
            let value = &raw[range.clone()];
            let owner = match &self.pages {
                Pages::Mapped { mapping, .. } => {
                    Owner::Mapping(mapping, offset as usize + group.start + range.start)
                }
                Pages::Pread => Owner::None,
            };
            return Ok(f(owner, value));
        }
        let group_offset = offset + group.start as u64;
        let mut upto = range.end;
        let mut wanted = false;
        if let Some(cache) = &self.groups {
            if let Some(decoded) = cache.get(self.meta.id, group_offset)
                && let Some(value) = decoded.get(range.clone())
            {
                return Ok(f(Owner::Group(&decoded, range.start), value));
            }
            wanted = cache.wants(self.meta.id, group_offset);
            if wanted {
                upto = group.raw_len;
            }
        }
        with_buffer(&GROUP, |decoded| {
            self.decode_group(bytes, &group, upto, decoded).map_err(at)?;
            if let Some(cache) = &self.groups
                && wanted
            {
                cache.offer(self.meta.id, group_offset, &decoded[..group.raw_len]);
            }
            let value =
                decoded.get(range).ok_or(Damage::Corrupt("a value group is too short")).map_err(at)?;
            Ok(f(Owner::None, value))
        })
    }

    /// Decodes at least the first `upto` bytes of a group.
    pub(super) fn decode_group(
        &self,
        bytes: &[u8],
        group: &Group,
        upto: usize,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let stored = bytes.get(group.start..group.end).ok_or(Damage::Corrupt("a group is cut off"))?;
        group::decode(group.codec, stored, group.raw_len, upto, &self.dictionary, out)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let hook = self.on_drop.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(hook) = hook {
            hook();
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("path", &self.path).field("entries", &self.meta.entries).finish()
    }
}

/// What keeps a value's bytes in memory, and where in it they begin.
enum Owner<'a> {
    Mapping(&'a Arc<Mapping>, usize),
    Group(&'a Arc<[u8]>, usize),
    None,
}

/// The bytes of a group that is stored as it is, `None` if it is encoded.
pub(super) fn raw_group<'a>(bytes: &'a [u8], group: &Group) -> Checked<Option<&'a [u8]>> {
    if group.codec != group::RAW {
        return Ok(None);
    }
    match bytes.get(group.start..group.end) {
        Some(raw) if raw.len() == group.raw_len => Ok(Some(raw)),
        _ => Err(Damage::Corrupt("a raw value group has another length than stated")),
    }
}

/// What opening reads first.
struct Opened {
    footer: Footer,
    footer_offset: u64,
    properties: Properties,
    meta: TableMeta,
}

impl Opened {
    fn read(file: &dyn File, path: &Path, id: u64) -> Result<Opened> {
        let file_len = file.len().map_err(|e| Error::io("measure a table", path, e))?;
        let Some(footer_offset) = file_len.checked_sub(FOOTER as u64) else {
            return Err(Damage::Corrupt("it is shorter than a footer").at(path, 0));
        };
        let mut bytes = [0; FOOTER];
        file.read_exact_at(&mut bytes, footer_offset).map_err(|e| Error::io("read a table", path, e))?;
        let (footer, footer_sum) =
            Footer::decode(&bytes, id, footer_offset).map_err(|d| d.at(path, footer_offset))?;
        let properties = read_section(file, path, id, footer.properties)?;
        let properties = Properties::decode(&properties).map_err(|d| d.at(path, footer.properties.offset))?;
        let meta = TableMeta {
            id,
            file_len,
            footer_sum,
            entries: properties.entries,
            deletes: properties.deletes,
            raw_bytes: properties.raw_bytes,
            max_version: properties.max_version,
            smallest: properties.smallest.clone(),
            largest: properties.largest.clone(),
        };
        Ok(Opened { footer, footer_offset, properties, meta })
    }
}

/// Reads a section, which the footer has said to lie within the file, and compares its checksum.
fn read_section(file: &dyn File, path: &Path, id: u64, section: Section) -> Result<Vec<u8>> {
    let mut bytes = vec![0; section.len as usize];
    file.read_exact_at(&mut bytes, section.offset).map_err(|e| Error::io("read a table", path, e))?;
    if checksum(&bytes, place(id, section.offset)) != section.sum {
        return Err(Damage::Corrupt("a section's checksum does not match").at(path, section.offset));
    }
    Ok(bytes)
}
