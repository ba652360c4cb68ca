//! Making room: full nodes are split from the root down, each while its parent, which has room, is locked too.

use super::Memtable;
use super::node::{CAP, Node, Word};

impl Memtable {
    /// Splits the full nodes on the way to `key`, whose entry at `offset` is about to be inserted. When it returns the
    /// leaf had room, for a moment.
    #[cold]
    pub(super) fn make_room(&self, key: &[u8], offset: u32) {
        while self.split_one(key, offset) {}
    }

    /// Splits the topmost full node on the way to `key`, and says whether there may be more to do.
    fn split_one(&self, key: &[u8], offset: u32) -> bool {
        let mut parent: Option<(&Node, u64)> = None;
        let mut id = 0;
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
                self.split_node(parent, (node, version), id, at, offset);
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
            (id, node, version) = (child, below, below_version);
        }
    }

    /// Locks and splits the full node `id`, unless it or its parent changed.
    fn split_node(
        &self,
        parent: Option<(&Node, u64)>,
        (node, version): (&Node, u64),
        id: u32,
        at: usize,
        offset: u32,
    ) {
        match parent {
            None => {
                if !node.try_lock(version) {
                    return;
                }
                // The root: its content moves one level down, and is split there.
                let below_id = self.nodes.push(Node::new(0));
                let below = self.node(below_id);
                node.raise(below, below_id);
                self.split_into(node, below, at, offset);
                node.unlock();
            }
            Some((parent, parent_version)) => {
                debug_assert_ne!(id, 0);
                if !parent.try_lock(parent_version) {
                    return;
                }
                if node.try_lock(version) {
                    self.split_into(parent, node, at, offset);
                    node.unlock();
                }
                parent.unlock();
            }
        }
    }

    /// Splits `node`; it and `parent`, which has room, are locked (or known to no one else).
    fn split_into(&self, parent: &Node, node: &Node, at: usize, offset: u32) {
        let right_id = self.nodes.push(Node::new(node.meta().level));
        let separator = node.split_to(self.node(right_id), right_id, at, offset, &self.entries);
        let key = self.entries.key(separator);
        let rank = parent.rank(parent.meta(), key, &self.entries);
        parent.insert(rank, key, Word::new(separator, right_id), &self.entries);
    }
}
