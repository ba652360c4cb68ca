//! One simulated file: what it holds now, what of that is durable, and what a crash makes of the difference.
//!
//! Versions of the content:
//!
//! ```text
//! now      what reads see: `pages`; for a file with a shared mapping, the region, of which `pages` is the copy
//!          made by the last `absorb`
//! durable  what the last successful sync left on the disk
//! early    pages that the kernel may have written back between syncs, as they were then
//! lost     pages that a failed sync marked clean, as they were then: they are not written until changed again
//! ```
//!
//! A page is dirty where `now` and `durable` differ; nothing else keeps track of it, so stores through a mapping,
//! which no one sees happen, count like writes.

use super::CrashMode;
use super::pages::{
    PAGE, Page, PageMap, Region, SECTOR, ZEROS, as_page, differing, page, pages_for, put_page, split,
};
use super::rng::Rng;
use crate::io::{MapMode, Mapping};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Inode {
    len: u64,
    pages: Arc<PageMap>,
    durable: Arc<PageMap>,
    durable_len: u64,
    early: BTreeMap<u64, Option<Arc<Page>>>,
    lost: BTreeMap<u64, Option<Arc<Page>>>,
    /// The memory of a mapped file.
    region: Option<Arc<Region>>,
    /// Whether the region has been mapped for writing, so that it and not `pages` has the content.
    shared: bool,
    /// Pages that have their place on the disk.
    reserved: BTreeSet<u64>,
    /// Open files.
    pub(super) handles: u64,
    /// Whether it has a name now.
    pub(super) linked: bool,
}

impl Inode {
    /// An empty file that has just been given a name.
    pub(super) fn linked() -> Inode {
        Inode { linked: true, ..Inode::default() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the disk that it takes.
    pub(super) fn used(&self) -> u64 {
        self.reserved.len() as u64 * PAGE as u64
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let n = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        for (number, range, part) in split(offset, n) {
            match self.live_region(number) {
                Some(region) => region.load(number, range, &mut buf[part]),
                None => buf[part].copy_from_slice(&page(&self.pages, number)[range]),
            }
        }
        n
    }

    /// The region, if it has the content of page `number`.
    fn live_region(&self, number: u64) -> Option<&Arc<Region>> {
        self.region.as_ref().filter(|r| self.shared && r.covers(number))
    }

    /// Writes as much of `buf` as there is room for, `room` being the bytes that are free; returns how much.
    pub(super) fn write(&mut self, buf: &[u8], offset: u64, room: u64) -> usize {
        self.clear_past_end(offset.saturating_add(buf.len() as u64));
        let mut room = room / PAGE as u64;
        let mut written = 0;
        for (number, range, part) in split(offset, buf.len()) {
            if !self.reserved.contains(&number) {
                if room == 0 {
                    break;
                }
                room -= 1;
                self.reserved.insert(number);
            }
            written = part.end;
            self.put(number, range.start, &buf[part]);
        }
        if written > 0 {
            self.len = self.len.max(offset + written as u64);
        }
        written
    }

    /// What is stored past the end of a mapped file is no content: it must not become any when the file grows.
    fn clear_past_end(&self, new_len: u64) {
        let Some(region) = self.region.as_ref().filter(|_| self.shared) else { return };
        let (end, new_end) = (self.len.min(region.len()), new_len.min(region.len()));
        for (number, range, _) in split(end, new_end.saturating_sub(end) as usize) {
            region.store(number, range.start, &ZEROS[range]);
        }
    }

    /// Stores bytes into one page, wherever its content is.
    fn put(&mut self, number: u64, start: usize, bytes: &[u8]) {
        // Written again, so dirty again.
        self.lost.remove(&number);
        if let Some(region) = self.region.as_ref().filter(|r| r.covers(number)) {
            region.store(number, start, bytes);
            if self.shared {
                return;
            }
        }
        let mut new = *page(&self.pages, number);
        new[start..start + bytes.len()].copy_from_slice(bytes);
        put_page(Arc::make_mut(&mut self.pages), number, as_page(&new));
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.absorb();
            cut(Arc::make_mut(&mut self.pages), len);
            if let Some(region) = &self.region {
                for number in len / PAGE as u64..pages_for(self.len.min(region.len())) {
                    region.store(number, 0, page(&self.pages, number));
                }
            }
            let kept = pages_for(len);
            self.lost.split_off(&kept);
            self.early.split_off(&kept);
            self.reserved.split_off(&kept);
        }
        self.clear_past_end(len);
        self.len = len;
    }

    /// Reserves `[0, len)`; false, and nothing done, if `room` bytes are too few.
    pub(super) fn allocate(&mut self, len: u64, room: u64) -> bool {
        let wanted = pages_for(len);
        let missing = wanted - self.reserved.range(..wanted).count() as u64;
        if missing > room / PAGE as u64 {
            return false;
        }
        self.reserved.extend(0..wanted);
        self.clear_past_end(len);
        self.len = self.len.max(len);
        true
    }

    pub(super) fn map(&mut self, len: usize, mode: MapMode) -> io::Result<Mapping> {
        if len == 0 || len as u64 > self.len {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping must lie within its file"));
        }
        let wanted = pages_for(len as u64);
        if mode == MapMode::Shared && (self.reserved.range(..wanted).count() as u64) < wanted {
            let why = "a store into a shared mapping of unreserved space could find the disk full (SIGBUS)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.absorb();
        let region = match &self.region {
            Some(region) if region.len() >= len as u64 => Arc::clone(region),
            Some(_) => {
                let why = "the simulated file is mapped already, and for less; that cannot grow";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            None => {
                let region = Arc::new(Region::new(self.len)?);
                for (number, bytes) in self.pages.iter() {
                    region.store(*number, 0, &**bytes);
                }
                self.region = Some(Arc::clone(&region));
                region
            }
        };
        self.shared |= mode == MapMode::Shared;
        Ok(region.map(len, mode))
    }

    /// Brings `pages` up to what the mapped memory holds, and gives the memory back once no one maps it. Returns
    /// whether anything had changed.
    pub(super) fn absorb(&mut self) -> bool {
        let Some(region) = &mut self.region else { return false };
        // Asked first, and with acquire ordering: if the last mapping is gone, its stores are visible below.
        let unmapped = Arc::get_mut(region).is_some();
        let mut changed = false;
        if self.shared {
            for number in region.touched(pages_for(self.len.min(region.len()))) {
                if region.holds(number, page(&self.pages, number)) {
                    continue;
                }
                let mut bytes = region.load_page(number);
                if number == self.len / PAGE as u64 {
                    // Stores past the end of the file reach no disk.
                    bytes[(self.len % PAGE as u64) as usize..].fill(0);
                }
                if bytes != *page(&self.pages, number) {
                    put_page(Arc::make_mut(&mut self.pages), number, as_page(&bytes));
                    changed = true;
                }
            }
        }
        if unmapped {
            self.region = None;
            self.shared = false;
        }
        changed
    }

    pub(super) fn sync(&mut self) {
        self.absorb();
        self.durable_len = self.len;
        if self.lost.is_empty() {
            self.durable = Arc::clone(&self.pages);
            self.early.clear();
            return;
        }
        // A page that has changed since is dirty again, and a later return to the same bytes is no return to clean.
        let pages = &self.pages;
        self.lost.retain(|number, lost| lost.as_ref() == pages.get(number));
        let lost = &self.lost;
        self.early.retain(|number, _| lost.contains_key(number));
        for number in differing(&self.durable, &self.pages) {
            if !self.lost.contains_key(&number) {
                let now = self.pages.get(&number).cloned();
                put_page(Arc::make_mut(&mut self.durable), number, now);
            }
        }
    }

    /// What a sync that the disk failed leaves: the dirty pages count as clean, and are not on the disk.
    pub(super) fn fail_sync(&mut self) {
        self.absorb();
        for number in differing(&self.durable, &self.pages) {
            self.lost.insert(number, self.pages.get(&number).cloned());
        }
    }

    /// The kernel writes dirty pages back on its own: those that `choose` picks may be found, as they are now, after
    /// a crash, whatever is stored over them until the next sync.
    pub(super) fn write_back(&mut self, mut choose: impl FnMut(u64) -> bool) {
        self.absorb();
        for number in differing(&self.durable, &self.pages) {
            let now = self.pages.get(&number).cloned();
            if choose(number) && self.lost.get(&number).is_none_or(|lost| *lost != now) {
                self.early.insert(number, now);
            }
        }
    }

    /// All bytes, as reads see them.
    pub(super) fn content(&self) -> Vec<u8> {
        let mut all = vec![0; self.len as usize];
        self.read(&mut all, 0);
        all
    }

    /// Makes the content `bytes`, durably, whether there is room or not.
    pub(super) fn replace(&mut self, bytes: &[u8]) {
        self.set_len(0);
        self.write(bytes, 0, u64::MAX);
        self.lost.clear();
        self.sync();
    }

    /// The file as another process finds it when this one is gone: everything as of the last `absorb`, nothing open
    /// or mapped.
    pub(super) fn after_kill(&self) -> Inode {
        Inode {
            len: self.len,
            pages: Arc::clone(&self.pages),
            durable: Arc::clone(&self.durable),
            durable_len: self.durable_len,
            early: self.early.clone(),
            lost: self.lost.clone(),
            reserved: self.reserved.clone(),
            linked: self.linked,
            ..Inode::default()
        }
    }

    /// The file as the machine finds it when it starts again.
    pub(super) fn after_crash(&mut self, rng: &mut Rng, mode: CrashMode) -> Inode {
        self.absorb();
        let (mut pages, mut len) = (Arc::clone(&self.durable), self.durable_len);
        if mode != CrashMode::DropUnsynced {
            len = self.crash_len(rng);
            // Sometimes nearly all survives, sometimes nearly nothing, sometimes half.
            let new_of_16 = [1, 8, 15][rng.below(3) as usize];
            let mut unsure = differing(&self.durable, &self.pages);
            unsure.extend(self.early.keys());
            unsure.sort_unstable();
            unsure.dedup();
            let unit = if mode == CrashMode::Torn { SECTOR } else { PAGE };
            for number in unsure {
                let bytes = self.crash_page(number, unit, new_of_16, rng);
                put_page(Arc::make_mut(&mut pages), number, as_page(&bytes));
            }
        }
        if pages.last_key_value().is_some_and(|(n, _)| n * PAGE as u64 + PAGE as u64 > len) {
            cut(Arc::make_mut(&mut pages), len);
        }
        let mut reserved = self.reserved.clone();
        reserved.split_off(&pages_for(len));
        reserved.extend(pages.keys());
        Inode { len, durable: Arc::clone(&pages), pages, durable_len: len, reserved, ..Inode::linked() }
    }

    /// A length that was never synced may be there or not; a file that grew may have got part of the way.
    fn crash_len(&self, rng: &mut Rng) -> u64 {
        match rng.below(3) {
            0 => self.durable_len,
            1 if self.len > self.durable_len => {
                let grown = self.durable_len + rng.below(self.len - self.durable_len + 1);
                (grown / PAGE as u64 * PAGE as u64).max(self.durable_len)
            }
            _ => self.len,
        }
    }

    /// Page `number` after a crash: each `unit` bytes of it are of one of its versions.
    fn crash_page(&self, number: u64, unit: usize, new_of_16: u64, rng: &mut Rng) -> Page {
        let old = page(&self.durable, number);
        let now = self.pages.get(&number);
        let lost = self.lost.get(&number).is_some_and(|lost| lost.as_ref() == now);
        let new = if lost { old } else { page(&self.pages, number) };
        let early = self.early.get(&number).map(|p| p.as_deref().unwrap_or(&ZEROS));
        let mut bytes = *old;
        for start in (0..PAGE).step_by(unit) {
            let from = match early {
                Some(early) if rng.chance(1, 3) => early,
                _ if rng.chance(new_of_16, 16) => new,
                _ => old,
            };
            bytes[start..start + unit].copy_from_slice(&from[start..start + unit]);
        }
        bytes
    }
}

/// Drops what lies past `len`.
fn cut(pages: &mut PageMap, len: u64) {
    pages.split_off(&pages_for(len));
    let last = len / PAGE as u64;
    if let Some(bytes) = pages.get(&last) {
        let mut bytes = **bytes;
        bytes[(len % PAGE as u64) as usize..].fill(0);
        put_page(pages, last, as_page(&bytes));
    }
}
