//! SQLite as a key-value store: one table `WITHOUT ROWID`, a B-tree by key, in WAL mode.
//!
//! SQLite lets one write at a time, and a connection that finds another one writing sleeps; here, writes wait for each
//! other on a lock, which wastes less and is fair. Each session has a connection of its own, where a get is a
//! transaction of its own and sees the newest commit. A session that reads writes through the same connection, whose
//! cache then serves both. Sessions that only write share one connection instead: its cache stays good, where one of
//! their own would be stale after each write of another.
//!
//! The log is written into the database when it is as long as the write buffer.

mod api;

use super::batch::Batch;
use super::{Config, Cursor, Durability, Engine, Result, Session};
pub use api::version;
use api::{Connection, Statement};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The classes, and how this engine is told. With its log, it has none in which a kill may lose a commit.
pub const CLASSES: [(Durability, &str); 3] = [
    (Durability::Process, "WAL, synchronous=OFF"),
    (Durability::Interval, "WAL, synchronous=NORMAL: synced at checkpoints"),
    (Durability::Sync, "WAL, synchronous=FULL"),
];

const PAGE: u64 = 4096;
const PUT: &str = "REPLACE INTO kv VALUES (?, ?)";
const DELETE: &str = "DELETE FROM kv WHERE k = ?";

struct Sqlite {
    path: PathBuf,
    settings: String,
    /// For sessions that only write; whoever writes holds it.
    writer: Mutex<Writer>,
}

/// A connection with the statements that write.
struct Writer {
    put: Statement,
    delete: Statement,
    begin: Statement,
    commit: Statement,
    /// Behind its statements, which must be dropped before it.
    connection: Connection,
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let path = dir.join("data.sqlite");
    let synchronous = match config.durability {
        Durability::None | Durability::Process => "OFF",
        Durability::Interval => "NORMAL",
        Durability::Sync => "FULL",
    };
    let cache = (config.cache / (config.threads + 1) / 1024).max(256);
    let map = (config.expected_bytes * 8).max(8 << 30);
    let log = (config.write_buffer as u64 / PAGE).max(1000);
    let settings = format!(
        "PRAGMA synchronous={synchronous}; PRAGMA cache_size=-{cache}; PRAGMA mmap_size={map}; \
         PRAGMA wal_autocheckpoint={log}; PRAGMA busy_timeout=60000;"
    );
    let connection = Connection::open(&path)?;
    connection.run(&format!("PRAGMA page_size={PAGE}; PRAGMA journal_mode=WAL;"))?;
    connection.run(&settings)?;
    connection.run("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")?;
    let writer = Mutex::new(Writer::new(connection)?);
    Ok(Box::new(Sqlite { path, settings, writer }))
}

impl Sqlite {
    fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        self.writer.lock().map_err(|_| "SQLite: another thread failed while writing".into())
    }
}

impl Writer {
    fn new(connection: Connection) -> Result<Writer> {
        Ok(Writer {
            put: connection.prepare(PUT)?,
            delete: connection.prepare(DELETE)?,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            connection,
        })
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put.step(&[key, value])?;
        // Commits, where no transaction is open.
        self.put.reset();
        Ok(())
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.delete.step(&[key])?;
        self.delete.reset();
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        self.begin.step(&[])?;
        self.begin.reset();
        let done = batch.iter().try_for_each(|(key, value)| match value {
            Some(value) => self.put(key, value),
            None => self.delete(key),
        });
        match done {
            Ok(()) => {
                self.commit.step(&[])?;
                self.commit.reset();
                Ok(())
            }
            Err(e) => {
                self.connection.run("ROLLBACK")?;
                Err(e)
            }
        }
    }
}

impl Engine for Sqlite {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let connection = Connection::open(&self.path)?;
        connection.run(&self.settings)?;
        Ok(Box::new(SqliteSession {
            e: self,
            batch: Batch::default(),
            get: connection.prepare("SELECT v FROM kv WHERE k = ?")?,
            reads: false,
            own: Writer::new(connection)?,
        }))
    }
    fn settle(&self, limit: Duration) -> Result<bool> {
        let start = Instant::now();
        let writer = self.writer()?;
        // The answer is 1 while a reader still needs the log.
        while writer.connection.number("PRAGMA wal_checkpoint(TRUNCATE)")? != 0 {
            if start.elapsed() >= limit {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        let Ok(writer) = self.writer() else { return BTreeMap::new() };
        ["page_count", "freelist_count", "page_size"]
            .into_iter()
            .filter_map(|name| {
                Some((name.into(), writer.connection.number(&format!("PRAGMA {name}")).ok()?.to_string()))
            })
            .collect()
    }
    fn close(self: Box<Self>) -> Result<()> {
        // The drop of the last connection would do it, and tell no error.
        self.writer()?.connection.number("PRAGMA wal_checkpoint(TRUNCATE)").map(drop)
    }
}

struct SqliteSession<'a> {
    e: &'a Sqlite,
    batch: Batch,
    get: Statement,
    /// Whether it has read.
    reads: bool,
    own: Writer,
}

impl SqliteSession<'_> {
    /// Does a write when no other is being done.
    #[inline]
    fn write(&mut self, work: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
        // A row that is still lent would keep its snapshot, and with it the log.
        self.get.reset();
        let mut shared = self.e.writer()?;
        work(if self.reads { &mut self.own } else { &mut shared })
    }
}

impl Session for SqliteSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|w| w.put(key, value))
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(|w| w.delete(key))
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push(key, Some(value));
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.push(key, None);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut self.batch);
        let done = self.write(|w| w.batch(&batch));
        batch.clear();
        self.batch = batch;
        done
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.reads = true;
        // The row stays, and its bytes with it, until the next call resets the statement.
        Ok(if self.get.step(&[key])? { Some(self.get.column(0)) } else { None })
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        self.get.reset();
        let connection = &self.own.connection;
        connection.run("BEGIN")?;
        let view = View(connection);
        // The snapshot is taken by the first read.
        connection.number("SELECT count(*) FROM (SELECT 1 FROM kv LIMIT 1)")?;
        Ok(Box::new(SqliteCursor {
            up: connection.prepare("SELECT k, v FROM kv WHERE k >= ? ORDER BY k")?,
            down: connection.prepare("SELECT k, v FROM kv WHERE k <= ? ORDER BY k DESC")?,
            last: connection.prepare("SELECT k, v FROM kv ORDER BY k DESC")?,
            at: At::Up,
            turned: Vec::new(),
            _view: view,
        }))
    }
}

/// A read transaction, ended by the drop.
struct View<'a>(&'a Connection);

impl Drop for View<'_> {
    fn drop(&mut self) {
        // An error here could only be that there is no transaction.
        drop(self.0.run("COMMIT"));
    }
}

/// The statement whose row is the cursor's entry.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Up,
    Down,
    Last,
}

struct SqliteCursor<'a> {
    up: Statement,
    down: Statement,
    last: Statement,
    at: At,
    /// The key where the direction turned.
    turned: Vec<u8>,
    /// Behind the statements, which must be ended before it.
    _view: View<'a>,
}

impl SqliteCursor<'_> {
    #[inline]
    fn statement(&mut self) -> &mut Statement {
        match self.at {
            At::Up => &mut self.up,
            At::Down => &mut self.down,
            At::Last => &mut self.last,
        }
    }

    #[inline]
    fn row(&self) -> &Statement {
        match self.at {
            At::Up => &self.up,
            At::Down => &self.down,
            At::Last => &self.last,
        }
    }

    fn begin(&mut self, at: At, parameters: &[&[u8]]) -> Result<bool> {
        if at != self.at {
            self.statement().reset();
            self.at = at;
        }
        self.statement().step(parameters)
    }

    /// Looks for the entry it stands on the other way round, and goes on from there.
    fn turn(&mut self, at: At) -> Result<bool> {
        let mut key = std::mem::take(&mut self.turned);
        key.clear();
        key.extend_from_slice(self.key());
        let found = self.begin(at, &[&key]);
        self.turned = key;
        if found? { self.statement().on() } else { Ok(false) }
    }
}

impl Cursor for SqliteCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.begin(At::Up, &[&[]])
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.begin(At::Up, &[key])
    }
    fn next(&mut self) -> Result<bool> {
        if self.at == At::Up { self.up.on() } else { self.turn(At::Up) }
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.begin(At::Last, &[])
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.begin(At::Down, &[key])
    }
    fn prev(&mut self) -> Result<bool> {
        if self.at == At::Up { self.turn(At::Down) } else { self.statement().on() }
    }
    fn key(&self) -> &[u8] {
        self.row().column(0)
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(self.row().column(1))
    }
}
