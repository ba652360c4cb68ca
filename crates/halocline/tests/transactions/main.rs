//! Transactions: what each isolation level forbids and allows, own writes, savepoints, locks, and many threads at once.

mod anomalies;
mod history;
mod locks;
mod own_writes;
mod prepared;
mod review;
mod serializable;
mod threads;

use halocline::{Db, ErrorKind, Isolation, TxOptions};

/// A database in a temporary folder that lives as long.
struct Scratch {
    db: Db,
    _dir: tempfile::TempDir,
}

impl std::ops::Deref for Scratch {
    type Target = Db;
    fn deref(&self) -> &Db {
        &self.db
    }
}

fn scratch() -> Scratch {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    Scratch { db, _dir: dir }
}

const LEVELS: [Isolation; 5] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Snapshot,
    Isolation::Serializable,
];

fn at(level: Isolation) -> TxOptions {
    TxOptions::new().isolation(level)
}

/// What happens between a transaction's reads and its commit, so that each way of checking is taken.
#[derive(Clone, Copy, Debug)]
enum Between {
    /// Nothing more: the log window is short.
    Little,
    /// Many commits of other keys: the window is long, so the reads are looked up.
    Much,
    /// A flush: what was changed lies in a table.
    Flush,
    /// A flush and a merge of everything.
    Merge,
}

const BETWEEN: [Between; 4] = [Between::Little, Between::Much, Between::Flush, Between::Merge];

impl Between {
    fn happen(self, db: &Db) {
        match self {
            Between::Little => {}
            Between::Much => {
                for i in 0..2000u32 {
                    db.put([b"~other".as_slice(), &i.to_be_bytes()].concat(), [7; 50]).unwrap();
                }
            }
            Between::Flush => db.flush().unwrap(),
            Between::Merge => db.compact_range(..).unwrap(),
        }
    }
}

/// Whether a commit was refused for a conflict; panics at any other error.
fn conflicts(result: halocline::Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(e) if e.kind() == ErrorKind::Conflict => true,
        Err(e) => panic!("{e}"),
    }
}

fn text(value: Option<halocline::Value>) -> Option<String> {
    value.map(|v| String::from_utf8(v.to_vec()).unwrap())
}
