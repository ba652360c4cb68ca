//! What the manifest says: the tree over bare metadata, how far the log is covered, and the counters.

use super::edit::{Edit, SealedSegment};
use super::version::Tree;
use crate::table::TableMeta;
use crate::{Error, Result};
use std::sync::Arc;

/// The state that a sequence of edits leads to.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Families, runs and tables.
    pub(crate) tree: Tree<TableMeta>,
    /// Everything in the log below this address is in tables.
    pub(crate) log_floor: u64,
    /// The next id for a run or a table.
    pub(crate) next_id: u64,
    /// The next id for a column family.
    pub(crate) next_family: u32,
    /// The log as a clean close left it, if nothing happened since.
    pub(crate) closed: Option<Vec<SealedSegment>>,
}

impl Default for State {
    fn default() -> State {
        // 0 is the id of the last runs.
        State { tree: Tree::default(), log_floor: 0, next_id: 1, next_family: 0, closed: None }
    }
}

impl State {
    /// Applies a group of edits. After an error the state is spoilt.
    pub(crate) fn apply(&mut self, edits: &[Edit]) -> Result<()> {
        for edit in edits {
            self.closed = None;
            match edit {
                Edit::AddFamily { id, .. } => {
                    let next = id.checked_add(1).ok_or_else(no_more_ids)?;
                    self.next_family = self.next_family.max(next);
                }
                Edit::NewRun { run: id, .. } | Edit::AddTable { meta: TableMeta { id, .. }, .. } => {
                    let next = id.checked_add(1).ok_or_else(no_more_ids)?;
                    self.next_id = self.next_id.max(next);
                }
                Edit::LogFloor { lsn } => {
                    if *lsn < self.log_floor {
                        return Err(Error::invalid(format!(
                            "the log floor would go back from {} to {lsn}",
                            self.log_floor
                        )));
                    }
                    self.log_floor = *lsn;
                }
                Edit::NextId { id } => self.next_id = self.next_id.max(*id),
                Edit::NextFamily { id } => self.next_family = self.next_family.max(*id),
                Edit::Closed { segments } => self.closed = Some(segments.clone()),
                Edit::DropFamily { .. } | Edit::RemoveTable { .. } | Edit::Opened => {}
            }
        }
        self.tree.apply_in_place(edits, |meta| Ok(Arc::new(meta.clone())))
    }

    /// Edits that lead from nothing to this state.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        let mut edits = vec![
            Edit::NextId { id: self.next_id },
            Edit::NextFamily { id: self.next_family },
            Edit::LogFloor { lsn: self.log_floor },
        ];
        for family in &self.tree.families {
            edits.push(Edit::AddFamily { id: family.id, name: family.name.to_string() });
            let mut after = None;
            for run in &family.runs {
                edits.push(Edit::NewRun { family: family.id, run: run.id, tier: run.tier, after });
                after = Some(run.id);
            }
            for run in family.all_runs() {
                for meta in run.tables() {
                    edits.push(Edit::AddTable { family: family.id, run: run.id, meta: (**meta).clone() });
                }
            }
        }
        // Last, since every other edit makes it void.
        if let Some(segments) = &self.closed {
            edits.push(Edit::Closed { segments: segments.clone() });
        }
        edits
    }
}

fn no_more_ids() -> Error {
    Error::invalid("there is no id after this one")
}
