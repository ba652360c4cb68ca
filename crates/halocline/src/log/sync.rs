//! Group commit: one sync for all who wait.
//!
//! The first committer that needs durability leads: it takes the tail, waits for everything below it to be
//! complete, syncs the segments from the oldest that is not durable, and wakes the others, whose addresses its sync most
//! likely covered. A sync that fails is never tried again on the same pages: the kernel may have dropped them.

use super::record;
use super::segment::Segment;
use super::slots::InFlight;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;

/// What is durable, and who is working on it.
#[derive(Default)]
pub(crate) struct GroupSync {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    leading: bool,
    durable: u64,
    /// Segments not wholly durable, oldest first; the last one is the active one.
    segments: VecDeque<Arc<Segment>>,
    failed: Option<Error>,
    /// The address behind the last mark, if nothing came between it and what it speaks of.
    marked: u64,
    syncs: u64,
}

impl GroupSync {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A segment came into use. Called in the order of the log, before any commit in it is acknowledged.
    pub(crate) fn add(&self, segment: Arc<Segment>) {
        self.lock().segments.push_back(segment);
    }

    /// The tables of everything below `floor` are durable, so the log there needs no sync any more.
    pub(crate) fn forget_below(&self, floor: u64) {
        let mut state = self.lock();
        state.segments.retain(|s| s.next_base() > floor);
        state.durable = state.durable.max(floor);
    }

    /// The address up to which the log is durable.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn durable(&self) -> u64 {
        self.lock().durable
    }

    /// Syncs that were done.
    pub(crate) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Returns when everything below `address` is durable. `sound` fails if a write to the log has failed: what lies
    /// behind it is then not part of a prefix, and neither is it acknowledged, nor marked as durable.
    pub(crate) fn wait(
        &self,
        address: u64,
        in_flight: &InFlight,
        sound: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.durable >= address {
                return Ok(());
            }
            if let Some(e) = &state.failed {
                return Err(halted(e));
            }
            if !state.leading {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.leading = true;
        let segments: Vec<_> = state.segments.iter().cloned().collect();
        drop(state);
        // Only a segment whose seal was written before the sync is wholly durable after it: without its seal,
        // recovery would not go on to the next one.
        let sealed_before =
            segments.iter().filter(|s| s.is_sealed()).map(|s| s.next_base()).max().unwrap_or(0);

        let target = segments.last().map_or(address, |s| s.position());
        in_flight.wait_below(target);
        let result = sound().and_then(|()| segments.iter().try_for_each(|s| s.sync()));

        let mut state = self.lock();
        state.leading = false;
        state.syncs += 1;
        let outcome = match result {
            Ok(()) => {
                state.durable = state.durable.max(target);
                let durable = state.durable;
                state.segments.retain(|s| s.next_base() > sealed_before);
                Ok(segments.last().cloned().map(|s| (s, durable)))
            }
            Err(e) => {
                state.failed = Some(e.clone());
                Err(e)
            }
        };
        drop(state);
        self.changed.notify_all();
        // The mark lets recovery tell damage from a torn tail.
        if let Some((segment, durable)) = outcome? {
            // A mark right behind what is durable changes nothing that would need another sync.
            if segment.mark(durable, in_flight)? == Some(durable) {
                self.lock().marked = durable + record::SMALL as u64;
            }
        }
        Ok(())
    }

    /// Whether nothing but a mark was added since the last sync, so that another one would do no good.
    pub(crate) fn is_settled(&self, tail: u64) -> bool {
        let state = self.lock();
        state.durable >= tail || state.marked == tail
    }
}

fn halted(cause: &Error) -> Error {
    Error::new(
        ErrorKind::Halted,
        format!(
            "the log could not be synced, so nothing more is acknowledged; reopen the database. The cause: {cause}"
        ),
    )
}
