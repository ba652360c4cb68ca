//! The immutable shape of the tree: families of runs of tables.
//!
//! Invariants, checked by [`Tree::apply`] on every edit:
//! - families are sorted by id, and no two have one id or one name;
//! - a family's upper runs are newest first, none is empty, none has the id of another or of the last run; the
//!   last run, the oldest, is always there and may be empty;
//! - tables of a run do not overlap; no two tables of the tree have the same id.
//!
//! A tree is never changed once it is shared: `apply` builds the next one, which shares all families, runs and
//! tables that the edits did not touch. Within one group of edits a table is taken out before what replaces it is
//! added, and a table moves without being opened again when it is removed and added with the same metadata.

use super::edit::Edit;
use super::run::{LAST_RUN, LAST_TIER, Run, TableLike};
use crate::table::TableMeta;
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A column family: upper runs, newest first, over one last run.
#[derive(Debug)]
pub(crate) struct Family<T> {
    /// Its id, which is also the prefix of its keys.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// The upper runs, newest first.
    pub(crate) runs: Vec<Arc<Run<T>>>,
    /// The last run: partitioned, the oldest.
    pub(crate) last: Arc<Run<T>>,
}

impl<T> Clone for Family<T> {
    fn clone(&self) -> Self {
        Family { id: self.id, name: self.name.clone(), runs: self.runs.clone(), last: self.last.clone() }
    }
}

impl<T> Family<T> {
    /// Whether it is the engine's own, and not shown to users.
    pub(crate) fn is_own(&self) -> bool {
        self.name.starts_with('\0')
    }
}

impl<T> Family<T> {
    /// A family without tables.
    pub(crate) fn empty(id: u32, name: &str) -> Family<T> {
        Family { id, name: name.into(), runs: Vec::new(), last: Arc::new(Run::empty(LAST_RUN, LAST_TIER)) }
    }

    /// All runs, newest first, the last run last.
    pub(crate) fn all_runs(&self) -> impl DoubleEndedIterator<Item = &Arc<Run<T>>> + Clone {
        self.runs.iter().chain(std::iter::once(&self.last))
    }

    /// The run of that id.
    pub(crate) fn run(&self, id: u64) -> Option<&Arc<Run<T>>> {
        self.all_runs().find(|r| r.id == id)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.all_runs().fold(0, |sum, r| sum.saturating_add(r.bytes))
    }

    fn run_mut(&mut self, id: u64) -> Option<&mut Run<T>> {
        if id == LAST_RUN {
            return Some(Arc::make_mut(&mut self.last));
        }
        self.runs.iter_mut().find(|r| r.id == id).map(Arc::make_mut)
    }
}

/// All families.
#[derive(Debug)]
pub(crate) struct Tree<T> {
    /// Sorted by id.
    pub(crate) families: Vec<Arc<Family<T>>>,
    /// The ids of all tables.
    tables: Arc<HashSet<u64>>,
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Tree { families: self.families.clone(), tables: self.tables.clone() }
    }
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Tree { families: Vec::new(), tables: Arc::default() }
    }
}

impl<T> Tree<T> {
    /// The family of that id.
    #[inline]
    pub(crate) fn family(&self, id: u32) -> Option<&Arc<Family<T>>> {
        // Ids are handed out in order, so a family is nearly always at the index of its id.
        if let Some(family) = self.families.get(id as usize)
            && family.id == id
        {
            return Some(family);
        }
        let at = self.families.binary_search_by_key(&id, |f| f.id).ok()?;
        self.families.get(at)
    }

    /// The family of that name.
    pub(crate) fn family_named(&self, name: &str) -> Option<&Arc<Family<T>>> {
        self.families.iter().find(|f| &*f.name == name)
    }

    /// The ids of all tables: what is not among them may be deleted.
    pub(crate) fn table_ids(&self) -> &HashSet<u64> {
        &self.tables
    }
}

impl<T: TableLike> Tree<T> {
    /// The next tree: this one after `edits`, in their order, all or (with an error) none. `open` makes a table of
    /// its metadata. Edits that concern only the log or the counters are passed over.
    pub(crate) fn apply(
        &self,
        edits: &[Edit],
        open: impl FnMut(&TableMeta) -> Result<Arc<T>>,
    ) -> Result<Tree<T>> {
        let mut next = self.clone();
        next.apply_in_place(edits, open)?;
        for family in &mut next.families {
            if family.all_runs().all(|r| r.is_sealed()) {
                continue;
            }
            let family = Arc::make_mut(family);
            for run in family.runs.iter_mut().chain([&mut family.last]).filter(|r| !r.is_sealed()) {
                Arc::make_mut(run).seal();
            }
        }
        Ok(next)
    }

    /// As [`apply`](Self::apply), on this tree itself, which is spoilt by an error; runs are left without heads.
    pub(super) fn apply_in_place(
        &mut self,
        edits: &[Edit],
        mut open: impl FnMut(&TableMeta) -> Result<Arc<T>>,
    ) -> Result<()> {
        let mut removed: HashMap<u64, Arc<T>> = HashMap::new();
        let mut touched = Vec::new();
        for edit in edits {
            match edit {
                Edit::AddFamily { id, name } => self.add_family(*id, name)?,
                Edit::DropFamily { id } => self.drop_family(*id)?,
                Edit::NewRun { family, run, tier, after } => {
                    touched.push(*family);
                    new_run(self.family_mut(*family)?, *run, *tier, *after)?;
                }
                Edit::AddTable { family, run, meta } => {
                    check(meta)?;
                    let id = meta.id;
                    if !Arc::make_mut(&mut self.tables).insert(id) {
                        return Err(Error::invalid(format!("table {id} is there already")));
                    }
                    let table = match removed.remove(&id) {
                        Some(table) if (*table).meta() == meta => table,
                        _ => open(meta)?,
                    };
                    let in_family = self.family_mut(*family)?;
                    let in_run = in_family.run_mut(*run).ok_or_else(|| no_run(*family, *run))?;
                    in_run.insert(table)?;
                    touched.push(*family);
                }
                Edit::RemoveTable { family, run, table } => {
                    let in_family = self.family_mut(*family)?;
                    let in_run = in_family.run_mut(*run).ok_or_else(|| no_run(*family, *run))?;
                    let taken = in_run.remove(*table).ok_or_else(|| {
                        Error::invalid(format!("table {table} is not in run {run} of column family {family}"))
                    })?;
                    Arc::make_mut(&mut self.tables).remove(table);
                    removed.insert(*table, taken);
                    touched.push(*family);
                }
                Edit::LogFloor { .. }
                | Edit::NextId { .. }
                | Edit::NextFamily { .. }
                | Edit::Closed { .. }
                | Edit::Opened => {}
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for id in touched {
            // A family may have been dropped by a later edit of the group.
            if let Ok(at) = self.families.binary_search_by_key(&id, |f| f.id)
                && self.families[at].runs.iter().any(|r| r.is_empty())
            {
                Arc::make_mut(&mut self.families[at]).runs.retain(|r| !r.is_empty());
            }
        }
        Ok(())
    }

    fn family_mut(&mut self, id: u32) -> Result<&mut Family<T>> {
        match self.families.binary_search_by_key(&id, |f| f.id) {
            Ok(at) => Ok(Arc::make_mut(&mut self.families[at])),
            Err(_) => Err(Error::invalid(format!("column family {id} is not there"))),
        }
    }

    fn add_family(&mut self, id: u32, name: &str) -> Result<()> {
        if self.family_named(name).is_some() {
            return Err(Error::invalid(format!("column family {name:?} is there already")));
        }
        match self.families.binary_search_by_key(&id, |f| f.id) {
            Ok(_) => Err(Error::invalid(format!("column family {id} is there already"))),
            Err(at) => {
                self.families.insert(at, Arc::new(Family::empty(id, name)));
                Ok(())
            }
        }
    }

    fn drop_family(&mut self, id: u32) -> Result<()> {
        let Ok(at) = self.families.binary_search_by_key(&id, |f| f.id) else {
            return Err(Error::invalid(format!("column family {id} is not there")));
        };
        let family = self.families.remove(at);
        let ids = Arc::make_mut(&mut self.tables);
        for table in family.all_runs().flat_map(|r| r.tables()) {
            ids.remove(&table.meta().id);
        }
        Ok(())
    }

    /// The same shape over other tables: the step from the manifest's state to an open tree.
    pub(crate) fn map<U: TableLike>(
        &self,
        mut open: impl FnMut(&TableMeta) -> Result<Arc<U>>,
    ) -> Result<Tree<U>> {
        let mut convert = |run: &Run<T>| -> Result<Arc<Run<U>>> {
            let mut to = Run::empty(run.id, run.tier);
            for table in run.tables() {
                to.insert(open(table.meta())?)?;
            }
            to.seal();
            Ok(Arc::new(to))
        };
        let mut families = Vec::with_capacity(self.families.len());
        for family in &self.families {
            families.push(Arc::new(Family {
                id: family.id,
                name: family.name.clone(),
                runs: family.runs.iter().map(|r| convert(r)).collect::<Result<_>>()?,
                last: convert(&family.last)?,
            }));
        }
        Ok(Tree { families, tables: self.tables.clone() })
    }
}

fn no_run(family: u32, run: u64) -> Error {
    Error::invalid(format!("run {run} of column family {family} is not there"))
}

/// Refuses metadata that cannot be true.
fn check(meta: &TableMeta) -> Result<()> {
    if meta.smallest > meta.largest {
        return Err(Error::invalid(format!("the bounds of table {} are the wrong way round", meta.id)));
    }
    if meta.deletes > meta.entries {
        return Err(Error::invalid(format!("table {} has more deletions than entries", meta.id)));
    }
    Ok(())
}

fn new_run<T>(family: &mut Family<T>, id: u64, tier: u8, after: Option<u64>) -> Result<()> {
    if family.run(id).is_some() {
        return Err(Error::invalid(format!("run {id} of column family {} is there already", family.id)));
    }
    if tier == LAST_TIER {
        return Err(Error::invalid(format!("run {id} has the tier of the last run")));
    }
    let at = match after {
        None => 0,
        Some(newer) => {
            let at = family.runs.iter().position(|r| r.id == newer);
            at.ok_or_else(|| no_run(family.id, newer))? + 1
        }
    };
    family.runs.insert(at, Arc::new(Run::empty(id, tier)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(id: u64, smallest: &str, largest: &str) -> TableMeta {
        TableMeta {
            id,
            file_len: 100,
            footer_sum: 1,
            entries: 5,
            deletes: 2,
            raw_bytes: 300,
            max_version: 9,
            smallest: smallest.as_bytes().into(),
            largest: largest.as_bytes().into(),
        }
    }

    fn add(run: u64, id: u64, smallest: &str, largest: &str) -> Edit {
        Edit::AddTable { family: 1, run, meta: meta(id, smallest, largest) }
    }

    fn new_run(run: u64, tier: u8, after: Option<u64>) -> Edit {
        Edit::NewRun { family: 1, run, tier, after }
    }

    fn remove(run: u64, table: u64) -> Edit {
        Edit::RemoveTable { family: 1, run, table }
    }

    fn family(id: u32, name: &str) -> Edit {
        Edit::AddFamily { id, name: name.into() }
    }

    fn apply(tree: &Tree<TableMeta>, edits: &[Edit]) -> Result<Tree<TableMeta>> {
        tree.apply(edits, |meta| Ok(Arc::new(meta.clone())))
    }

    /// Family 1 with runs 12, 11 and 10, newest first, and two tables in the last run.
    fn tree() -> Tree<TableMeta> {
        let edits = [
            family(1, "one"),
            family(5, "five"),
            add(0, 1, "a", "c"),
            add(0, 2, "e", "g"),
            new_run(10, 1, None),
            add(10, 3, "a", "z"),
            new_run(12, 0, None),
            add(12, 4, "b", "d"),
            new_run(11, 0, Some(12)),
            add(11, 5, "m", "n"),
        ];
        apply(&Tree::default(), &edits).unwrap()
    }

    fn runs(tree: &Tree<TableMeta>) -> Vec<(u64, Vec<u64>)> {
        let family = tree.family(1).unwrap();
        family.all_runs().map(|r| (r.id, r.tables().iter().map(|t| t.id).collect())).collect()
    }

    #[test]
    fn runs_lie_in_the_order_of_age_and_empty_ones_vanish() {
        let tree = tree();
        assert_eq!(runs(&tree), [(12, vec![4]), (11, vec![5]), (10, vec![3]), (0, vec![1, 2])]);
        assert_eq!(tree.family(1).unwrap().bytes(), 500);
        let next = apply(&tree, &[remove(11, 5), new_run(20, 0, None)]).unwrap();
        assert_eq!(runs(&next), [(12, vec![4]), (10, vec![3]), (0, vec![1, 2])]);
        // The older tree is as it was.
        assert_eq!(runs(&tree).len(), 4);
        assert!(!next.table_ids().contains(&5) && tree.table_ids().contains(&5));
        assert_eq!(tree.family(5).unwrap().name.as_ref(), "five");
        assert!(tree.family(0).is_none() && tree.family(2).is_none());
        assert_eq!(tree.family_named("one").unwrap().id, 1);
    }

    #[test]
    fn what_is_not_touched_is_shared_and_a_moved_table_is_not_opened() {
        let tree = tree();
        let edits = [remove(12, 4), remove(0, 1), add(0, 9, "a", "a"), add(0, 4, "b", "d")];
        let mut opened = Vec::new();
        let next = tree
            .apply(&edits, |meta| {
                opened.push(meta.id);
                Ok(Arc::new(meta.clone()))
            })
            .unwrap();
        assert_eq!(opened, [9]);
        assert_eq!(runs(&next), [(11, vec![5]), (10, vec![3]), (0, vec![9, 4, 2])]);
        let (old, new) = (tree.family(1).unwrap(), next.family(1).unwrap());
        assert!(Arc::ptr_eq(old.run(10).unwrap(), new.run(10).unwrap()));
        assert!(Arc::ptr_eq(&old.last.tables()[1], &new.last.tables()[2]));
        assert!(Arc::ptr_eq(tree.family(5).unwrap(), next.family(5).unwrap()));
        assert!(new.all_runs().all(|r| r.is_sealed()));
        assert_eq!(new.last.find(b"c").unwrap().id, 4);
    }

    #[test]
    fn edits_that_do_not_fit_are_errors() {
        let tree = tree();
        let backwards = Edit::AddTable { family: 1, run: 0, meta: meta(50, "z", "y") };
        let mut too_many = meta(50, "y", "z");
        too_many.deletes = 6;
        let too_many = Edit::AddTable { family: 1, run: 0, meta: too_many };
        for edits in [
            vec![family(1, "other")],
            vec![family(2, "one")],
            vec![Edit::DropFamily { id: 2 }],
            vec![Edit::DropFamily { id: 1 }, remove(0, 1)],
            vec![new_run(10, 0, None)],
            vec![new_run(0, 0, None)],
            vec![new_run(20, 0, Some(99))],
            vec![new_run(20, 0, Some(0))],
            vec![new_run(20, LAST_TIER, None)],
            vec![Edit::NewRun { family: 3, run: 20, tier: 0, after: None }],
            vec![add(99, 50, "a", "b")],
            vec![add(0, 50, "c", "d")],
            vec![add(0, 50, "b", "b")],
            vec![add(0, 50, "d", "e")],
            vec![add(0, 4, "x", "y")],
            vec![add(0, 50, "x", "y"), add(11, 50, "x", "y")],
            vec![remove(0, 4)],
            vec![remove(0, 1), remove(0, 1)],
            vec![remove(99, 1)],
            vec![backwards],
            vec![too_many],
        ] {
            assert!(apply(&tree, &edits).is_err(), "{edits:?}");
        }
        let failed = tree.apply(&[add(0, 50, "x", "y")], |_| Err(Error::invalid("no")));
        assert!(failed.is_err());
        assert_eq!(runs(&tree).len(), 4);
    }

    #[test]
    fn a_dropped_family_takes_its_tables_along() {
        let tree = tree();
        let next = apply(&tree, &[remove(12, 4), Edit::DropFamily { id: 1 }]).unwrap();
        assert!(next.table_ids().is_empty() && next.family(1).is_none());
        let again = apply(&next, &[family(1, "one"), add(0, 1, "a", "b")]).unwrap();
        assert_eq!(runs(&again), [(0, vec![1])]);
    }
}
