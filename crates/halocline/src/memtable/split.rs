//! Making room: full nodes are split from the root down, each while its parent, which has room, is locked too.

use super::Memtable;
use super::node::{CAP, Node, Word};
use crate::sync::atomic::Ordering;

impl Memtable {
    /// Splits the full nodes on the way to `key`, whose entry at `offset` is about to be inserted. When it returns the
    /// leaf had room, for a moment.
    #[cold]
    pub(super) fn make_room(&self, key: &[u8], offset: u32) {
        let mut spare = self.spare.swap(0, Ordering::AcqRel);
        while self.split_one(key, offset, &mut spare) {}
        // One that was made and not needed, as someone else was faster, serves the next split.
        if spare != 0 {
            self.spare.store(spare, Ordering::Release);
        }
    }

    /// Splits the topmost full node on the way to `key`, and says whether there may be more to do. Takes `spare`, and
    /// leaves 0, if it did split.
    fn split_one(&self, key: &[u8], offset: u32, spare: &mut u32) -> bool {
        let mut parent: Option<(&Node, u64)> = None;
        let mut node = self.node(0);
        let mut version = node.read_begin();
        loop {
            let meta = node.meta();
            let rank = node.rank(meta, key, &self.entries);
            let at = rank.pos + usize::from(rank.exact && meta.level > 0);
            let child = if meta.level > 0 { node.child(at) } else { 0 };
            if !node.validate(version) {
                return true;
            }
            if meta.count == CAP {
                // Made before anything is locked: its memory may have to come from the system, a huge page at a time.
                if *spare == 0 {
                    *spare = self.nodes.push(Node::new());
                }
                if self.split_node(parent, (node, version), *spare, at, offset) {
                    *spare = 0;
                }
                return true;
            }
            if meta.level == 0 {
                return false;
            }
            let below = self.node(child);
            let below_version = below.read_begin();
            if !node.validate(version) {
                return true;
            }
            parent = Some((node, version));
            (node, version) = (below, below_version);
        }
    }

    /// Locks and splits the full node, its upper part going to `right`, unless it or its parent changed.
    fn split_node(
        &self,
        parent: Option<(&Node, u64)>,
        (node, version): (&Node, u64),
        right: u32,
        at: usize,
        offset: u32,
    ) -> bool {
        let Some((parent, parent_version)) = parent else {
            // The root: its content moves one level down, and is split there.
            let below_id = self.nodes.push(Node::new());
            if !node.try_lock(version) {
                return false;
            }
            let below = self.node(below_id);
            node.raise(below, below_id);
            self.split_into(node, below, right, at, offset);
            node.unlock();
            return true;
        };
        if !parent.try_lock(parent_version) {
            return false;
        }
        let locked = node.try_lock(version);
        if locked {
            self.split_into(parent, node, right, at, offset);
            node.unlock();
        }
        parent.unlock();
        locked
    }

    /// Splits `node`; it and `parent`, which has room, are locked (or known to no one else).
    fn split_into(&self, parent: &Node, node: &Node, right: u32, at: usize, offset: u32) {
        let separator = node.split_to(self.node(right), right, at, offset, &self.entries);
        let key = self.entries.key(separator);
        let rank = parent.rank(parent.meta(), key, &self.entries);
        parent.insert(rank, key, Word::new(separator, right), &self.entries);
    }
}
