//! A position in a table.
//!
//! A cursor parses a page once and walks its columns; it assembles keys in a buffer of its own, where the page's
//! prefix stays, and decodes a value group only when a value is asked for, keeping it for the neighbours. It always
//! stands on an entry of the file (or is not valid), and moves from there in either direction.

use super::page::{Group, Page};
use super::reader::{Pages, Table, raw_group};
use super::{Checked, Damage};
use crate::entry::Kind;
use crate::io::Advice;
use crate::iter::{Source, Visibility};
use crate::{Result, Value};
use std::ops::Range;
use std::sync::Arc;

/// How far ahead of a forward scan the kernel is told to read mapped pages.
const READ_AHEAD: u64 = 512 << 10;
/// How much a forward scan reads at once without a mapping.
const READ_CHUNK: u64 = 64 << 10;
/// A page so far ahead that was touched before is in memory, most likely with those up to it: asking the kernel to read
/// them would only cost, about 6 us each time.
const AHEAD_PAGES: usize = 16;
/// After so many pages in a row a scan is taken for one.
const SCAN: u32 = 4;

/// A position in a table; keeps the table open.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    visibility: Visibility,
    /// The page stood on, `NONE` before the first seek; its place in the file and layout.
    number: usize,
    offset: u64,
    len: usize,
    page: Page,
    /// What was read from `buffered` on, the page's bytes among it, unless they are mapped.
    buffer: Vec<u8>,
    buffered: u64,
    entry: usize,
    valid: bool,
    key: Vec<u8>,
    kind: Kind,
    version: u64,
    /// The group of the last value asked for; decoded in `decoded` unless it is stored raw.
    group: Option<Group>,
    decoded: Vec<u8>,
    /// Pages entered one after the other, and up to where reading ahead has been asked for.
    in_a_row: u32,
    advised: u64,
    /// Reads pages afresh, past the mapping, and checks each.
    uncached: bool,
}

const NONE: usize = usize::MAX;

impl TableCursor {
    pub(super) fn new(table: Arc<Table>, visibility: Visibility) -> TableCursor {
        TableCursor {
            table,
            visibility,
            number: NONE,
            offset: 0,
            len: 0,
            page: Page::EMPTY,
            buffer: Vec::new(),
            buffered: 0,
            entry: 0,
            valid: false,
            key: Vec::new(),
            kind: Kind::Put,
            version: 0,
            group: None,
            decoded: Vec::new(),
            in_a_row: 0,
            advised: 0,
            uncached: false,
        }
    }

    /// Reads every page from the file and compares its checksum, whatever was verified before.
    pub(super) fn uncached(mut self) -> TableCursor {
        self.uncached = true;
        self
    }

    /// Where the current page lies in the file.
    pub(super) fn page_offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        page_bytes(&self.table, self.uncached, self.offset, self.len, &self.buffer, self.buffered)
    }

    #[cold]
    fn damage(&self, damage: Damage) -> crate::Error {
        damage.at(self.table.path(), self.offset)
    }

    fn checked<T>(&self, result: Checked<T>) -> Result<T> {
        result.map_err(|d| self.damage(d))
    }

    /// Goes to page `number`, at no entry yet.
    fn load(&mut self, number: usize) -> Result<()> {
        if number == self.number {
            return Ok(());
        }
        self.in_a_row =
            if number == self.number.wrapping_add(1) { self.in_a_row.saturating_add(1) } else { 0 };
        let backward = self.number == number + 1;
        self.number = NONE;
        self.group = None;
        (self.offset, self.len) = self.table.fences.page(number);
        let table = &*self.table;
        let bytes = match &table.pages {
            Pages::Mapped { .. } if !self.uncached => {
                if self.in_a_row >= SCAN && !table.was_touched(number + AHEAD_PAGES) {
                    self.advised = read_ahead(table, self.offset, self.advised);
                }
                // The processor's own prefetching stops at the end of a page of memory.
                if self.in_a_row >= 1 && number + 1 < table.fences.pages() {
                    table.prefetch_keys(number + 1);
                } else if backward && number > 0 {
                    table.prefetch_keys(number - 1);
                }
                table.page_bytes(number, &mut self.buffer)?
            }
            _ => {
                let end = self.offset + self.len as u64;
                if self.offset < self.buffered || end > self.buffered + self.buffer.len() as u64 {
                    let wanted =
                        if self.in_a_row >= SCAN { READ_CHUNK.max(self.len as u64) } else { self.len as u64 };
                    let len = wanted.min(table.fences.end() - self.offset) as usize;
                    // Nothing is in the buffer should the read fail.
                    let mut buffer = std::mem::take(&mut self.buffer);
                    table.read(self.offset, len, &mut buffer)?;
                    (self.buffer, self.buffered) = (buffer, self.offset);
                }
                let start = (self.offset - self.buffered) as usize;
                let bytes = &self.buffer[start..start + self.len];
                table.check_page(bytes, self.offset)?;
                bytes
            }
        };
        let page = Page::parse(bytes).map_err(|d| d.at(table.path(), self.offset))?;
        self.key.clear();
        self.key.extend_from_slice(page.prefix(bytes));
        self.page = page;
        self.number = number;
        Ok(())
    }

    /// Stands on the current entry: works out what may be asked of it.
    #[inline]
    fn land(&mut self) -> Result<()> {
        // Not `self.bytes()`: the key is written while the bytes are read.
        let bytes =
            page_bytes(&self.table, self.uncached, self.offset, self.len, &self.buffer, self.buffered);
        let (page, i) = (&self.page, self.entry);
        let landed = page
            .assemble(bytes, i, &mut self.key)
            .and_then(|()| Ok((page.kind(bytes, i)?, page.version(bytes, i)?)));
        match landed {
            Ok((kind, version)) => {
                (self.kind, self.version) = (kind, version);
                self.valid = true;
                Ok(())
            }
            Err(damage) => {
                self.valid = false;
                Err(self.damage(damage))
            }
        }
    }

    /// Whether the entry stood on is one that this cursor shows, leaving newer versions of its key aside.
    #[inline]
    fn visible(&self) -> Result<bool> {
        match self.visibility {
            Visibility::All => Ok(true),
            Visibility::Before(before) => {
                if !self.page.has_versions() {
                    return Ok(true);
                }
                let version = self.checked(self.page.version(self.bytes(), self.entry))?;
                Ok(version == 0 || version < before)
            }
        }
    }

    /// One entry forward. `None` at the end, else whether the key is still the same.
    #[inline]
    fn step(&mut self) -> Result<Option<bool>> {
        self.entry += 1;
        if self.entry < self.page.entries {
            // Without versions a page holds one entry of a key.
            return Ok(Some(
                self.page.has_versions()
                    && self.checked(self.page.same_key_as_next(self.bytes(), self.entry - 1))?,
            ));
        }
        let next = self.number + 1;
        if next >= self.table.fences.pages() {
            return Ok(None);
        }
        self.load(next)?;
        self.entry = 0;
        Ok(Some(self.table.fences.continues(next)))
    }

    /// One entry back. `None` at the start, else whether the key is still the same.
    #[inline]
    fn step_back(&mut self) -> Result<Option<bool>> {
        if self.entry > 0 {
            self.entry -= 1;
            return Ok(Some(
                self.page.has_versions()
                    && self.checked(self.page.same_key_as_next(self.bytes(), self.entry))?,
            ));
        }
        if self.number == 0 {
            return Ok(None);
        }
        let same = self.table.fences.continues(self.number);
        self.load(self.number - 1)?;
        self.entry = self.page.entries - 1;
        Ok(Some(same))
    }

    /// Whether the entry before this one is a newer version of the same key.
    #[inline]
    fn same_key_before(&self) -> Result<bool> {
        if self.entry == 0 {
            return Ok(self.table.fences.continues(self.number));
        }
        Ok(self.page.has_versions()
            && self.checked(self.page.same_key_as_next(self.bytes(), self.entry - 1))?)
    }

    /// From an entry that may be hidden to the first shown one at or behind it.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        while !self.visible()? {
            if self.step()?.is_none() {
                self.valid = false;
                return Ok(());
            }
        }
        self.land()
    }

    /// From the oldest version of a key to its newest shown one, or that of the nearest key before with one.
    fn settle_back(&mut self) -> Result<()> {
        while !self.visible()? {
            // Newer versions are hidden too.
            if self.step_back()?.is_none() {
                self.valid = false;
                return Ok(());
            }
        }
        while self.same_key_before()? {
            let (number, entry) = (self.number, self.entry);
            self.step_back()?;
            if !self.visible()? {
                self.load(number)?;
                self.entry = entry;
                break;
            }
        }
        self.land()
    }

    /// Seeks on the current page if the answer is surely there.
    #[inline]
    fn seek_here(&mut self, key: &[u8]) -> Result<bool> {
        if self.number == NONE {
            return Ok(false);
        }
        let (at, _) = self.checked(self.page.lower_bound(self.bytes(), key))?;
        self.entry = at;
        Ok(at > 0 && at < self.page.entries)
    }

    /// The group and range of the current entry's value; the group is decoded in `decoded` unless it is raw.
    #[inline]
    fn locate_value(&mut self) -> Result<(Group, Range<usize>)> {
        debug_assert!(self.valid);
        let i = self.entry;
        let group = match self.group {
            Some(group) if (group.first..group.last).contains(&i) => group,
            _ => {
                self.group = None;
                let group = self.checked(self.page.group_of(self.bytes(), i))?;
                let bytes = page_bytes(
                    &self.table,
                    self.uncached,
                    self.offset,
                    self.len,
                    &self.buffer,
                    self.buffered,
                );
                let decoded = match raw_group(bytes, &group) {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) => self.table.decode_group(bytes, &group, group.raw_len, &mut self.decoded),
                    Err(damage) => Err(damage),
                };
                self.checked(decoded)?;
                self.group = Some(group);
                group
            }
        };
        let range = self.checked(self.page.value_in_group(self.bytes(), &group, i))?;
        Ok((group, range))
    }
}

/// The bytes of the current page. Not a method: callers write other fields meanwhile.
#[inline]
fn page_bytes<'a>(
    table: &'a Table,
    uncached: bool,
    offset: u64,
    len: usize,
    buffer: &'a [u8],
    buffered: u64,
) -> &'a [u8] {
    match &table.pages {
        Pages::Mapped { mapping, .. } if !uncached => Table::mapped(mapping, offset, len),
        // Empty, and so found malformed, if the page was never read.
        _ => buffer
            .get((offset.wrapping_sub(buffered)) as usize..)
            .and_then(|b| b.get(..len))
            .unwrap_or_default(),
    }
}

/// Tells the kernel what a scan at `offset` will want next, unless it was told up to `advised`; up to where it is now.
#[inline]
fn read_ahead(table: &Table, offset: u64, advised: u64) -> u64 {
    let Pages::Mapped { mapping, .. } = &table.pages else { return advised };
    let told = offset..=offset + READ_AHEAD;
    if told.contains(&advised) && (offset + READ_AHEAD / 2 < advised || advised == mapping.len() as u64) {
        return advised;
    }
    let start = offset as usize & !4095;
    let end = (start + READ_AHEAD as usize).min(mapping.len());
    // Only advice: if the kernel will not take it, pages come as they are touched.
    let _ = mapping.advise(Advice::WillNeed, start..end);
    end as u64
}

impl Source for TableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.valid = false;
        self.load(0)?;
        self.entry = 0;
        self.settle()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.valid = false;
        self.load(self.table.fences.pages() - 1)?;
        self.entry = self.page.entries - 1;
        self.settle_back()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.valid = false;
        if !self.seek_here(key)? {
            let number = self.table.fences.first_page_for(key);
            self.table.prefetch_keys(number);
            self.load(number)?;
            let (at, _) = self.checked(self.page.lower_bound(self.bytes(), key))?;
            self.entry = at;
            if at == self.page.entries {
                // One back, so that a step leads onto the next page.
                self.entry -= 1;
                if self.step()?.is_none() {
                    return Ok(());
                }
            }
        }
        self.settle()
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.valid = false;
        self.load(self.table.fences.last_page_for(key))?;
        let at = self.checked(self.page.upper_bound(self.bytes(), key))?;
        self.entry = at;
        if self.step_back()?.is_none() {
            return Ok(());
        }
        self.settle_back()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        self.valid = false;
        loop {
            match self.step()? {
                None => return Ok(()),
                Some(true) if self.visibility != Visibility::All => {}
                Some(_) => return self.settle(),
            }
        }
    }

    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid && self.visibility != Visibility::All);
        self.valid = false;
        loop {
            match self.step_back()? {
                None => return Ok(()),
                Some(true) => {}
                Some(false) => return self.settle_back(),
            }
        }
    }

    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        debug_assert!(self.valid);
        &self.key
    }

    #[inline]
    fn kind(&self) -> Kind {
        debug_assert!(self.valid);
        self.kind
    }

    #[inline]
    fn version(&self) -> u64 {
        debug_assert!(self.valid);
        self.version
    }

    #[inline]
    fn value(&mut self) -> Result<&[u8]> {
        let (group, range) = self.locate_value()?;
        let bytes = if group.codec == super::group::RAW {
            self.bytes().get(group.start + range.start..group.start + range.end)
        } else {
            self.decoded.get(range)
        };
        bytes.ok_or_else(|| self.damage(Damage::Corrupt("a value group is too short")))
    }

    fn pinned_value(&mut self) -> Result<Value> {
        let (group, range) = self.locate_value()?;
        if let Pages::Mapped { mapping, .. } = &self.table.pages
            && group.codec == super::group::RAW
            && !self.uncached
        {
            let start = self.offset as usize + group.start + range.start;
            return Ok(Value::mapped(mapping, start, range.len()));
        }
        self.value().map(Value::copy)
    }
}
