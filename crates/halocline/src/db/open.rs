//! Opening: lock, manifest, tables, log; then the background threads.
//!
//! Order matters for durability: what recovery mended in the log is synced before the manifest says that the database
//! is open, and no commit is taken before that.

use super::background;
use super::core::{Core, Halt, Mem, Signals, Version, lock};
use super::options::{Compression, Durability, LogMode, Options};
use super::snapshots::Snapshots;
use super::stats::Counters;
use super::{Db, Handle};
use crate::cache::{Budget, HotGroups, Records};
use crate::io::Vfs;
use crate::log::pool::Pool;
use crate::log::recovery::{self, Place, Recovered};
use crate::log::segment::{Backing, Segment};
use crate::log::slots::InFlight;
use crate::log::sync::GroupSync;
use crate::sync::{Arc, Mutex};
use crate::table::Table;
use crate::tree::edit::Edit;
use crate::tree::heat::Heat;
use crate::tree::manifest::{self, Manifest, Presence};
use crate::tree::output::{open_table, path_of};
use crate::tree::pacing::Pacing;
use crate::tree::pin::Pinned;
use crate::tree::version::Tree;
use crate::txn::{Gate, Locks, PreparedSet, recover_prepared};
use crate::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// The name of the column family that is always there.
pub(crate) const DEFAULT: &str = "default";

/// Opens the database in `dir`.
pub(crate) fn open(options: Options, dir: &Path) -> Result<Db> {
    let core = Arc::new(open_core(options, dir)?);
    let mut threads = Vec::new();
    let started = if core.options.read_only { Ok(()) } else { background::start(&core, &mut threads) };
    let started = started.and_then(|()| recover_prepared(&core));
    // If only some threads could be started, dropping the handle ends them.
    let db = Db::new(Arc::clone(&core), Arc::new(Handle::new(core, threads)));
    started.map(|()| db)
}

/// Everything but the threads.
pub(crate) fn open_core(options: Options, dir: &Path) -> Result<Core> {
    let vfs = Arc::clone(&options.vfs);
    let exists = Manifest::presence(&vfs, dir)?;
    if exists != Presence::Present && !options.create {
        return Err(
            Error::new(ErrorKind::Missing, "no database is there, and it was not to be created").at(dir, 0)
        );
    }
    if !options.read_only {
        vfs.create_dir_all(dir).map_err(|e| Error::io("create the database directory", dir, e))?;
    }
    let directory_lock = if options.read_only { None } else { Some(lock_directory(&*vfs, dir)?) };

    // Looked at again under the lock: another process may have been creating it.
    let mut manifest = if Manifest::presence(&vfs, dir)? == Presence::Present {
        Manifest::recover(&vfs, dir, options.read_only)?
    } else {
        Manifest::create(
            &vfs,
            dir,
            &[Edit::AddFamily { id: 0, name: DEFAULT.into() }, Edit::NextFamily { id: 1 }],
        )?
    };
    let boot = vfs.boot_id().map_err(|e| Error::io("read the machine's boot id", dir, e))?;
    let database = manifest.database().first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let backing = backing(&options, dir)?;
    let state = manifest.state();
    let next_id = state.next_id;
    let recovered = recovery::recover(&Place {
        vfs: &*vfs,
        dir,
        database,
        floor: state.log_floor,
        closed: state.closed.as_deref(),
        boot,
        read_only: options.read_only,
    })?;
    if recovered.segments.is_empty() && recovered.next_base > manifest.state().log_floor && !options.read_only
    {
        // The first segment is gone, though later ones are there: no seal can lead to where the log goes on.
        manifest.append(&[Edit::LogFloor { lsn: recovered.next_base }])?;
    }

    let pool = Arc::new(Pool::new(
        Arc::clone(&vfs),
        dir,
        if options.read_only { Backing::Anonymous } else { backing },
        options.write_buffer as u64,
        recovered.next_number,
    ));
    // Groups only where decoding them is dear: elsewhere looking for one costs as much.
    let groups = if matches!(options.compression, Compression::Zstd(_)) { options.cache / 2 } else { 0 };
    let cache = (groups > 0).then(|| Arc::new(HotGroups::new(groups)));
    let records = Records::new(options.cache - groups);
    let threads = merge_threads(&options);
    let (mems, active, group) = memtables(recovered, &pool, &*vfs, boot, database, &options)?;
    let tree: Arc<Tree<Table>> = Arc::new(Tree::default());
    let version = Version { active, sealed: mems, tree, flushes: 0 };
    let core = Core {
        dir: dir.to_path_buf(),
        vfs,
        boot,
        database,
        backing: if options.read_only { Backing::Anonymous } else { backing },
        pool,
        in_flight: InFlight::new(),
        group,
        version: Pinned::new(Arc::new(version)),
        manifest: Mutex::new(Some(manifest)),
        rotation: Mutex::new(()),
        publish: Mutex::new(()),
        snapshots: Snapshots::default(),
        gate: Gate::default(),
        locks: Locks::new(),
        prepared: PreparedSet::default(),
        halt: Halt::default(),
        signals: Signals::default(),
        pacing: Pacing::new(threads),
        heat: Heat::default(),
        budget: Budget::new(options.cache + options.write_buffer),
        cache,
        records,
        counters: Counters::default(),
        next_file: AtomicU64::new(next_id),
        busy: Mutex::default(),
        flush_error: Mutex::new(None),
        directory_lock: Mutex::new(directory_lock),
        options,
    };
    let tree = {
        let manifest = lock(&core.manifest);
        let state = manifest.as_ref().map(|m| m.state().tree.clone()).unwrap_or_default();
        Arc::new(state.map(|meta| open_table(&core, meta))?)
    };
    core.counters.manifest_bytes.add(lock(&core.manifest).as_ref().map_or(0, Manifest::bytes_written));
    let floor = core.version.pin().oldest_base();
    core.install(tree, floor);
    if !core.options.read_only {
        let mut manifest = lock(&core.manifest);
        core.append(&mut manifest, &[Edit::Opened])?;
        drop(manifest);
        remove_strays(&core)?;
    }
    Ok(core)
}

fn lock_directory(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn crate::io::Lock>> {
    let path = dir.join(manifest::LOCK);
    vfs.lock(&path).map_err(|e| {
        if e.kind() == std::io::ErrorKind::WouldBlock {
            let message =
                "the database is open already, in this process or in another one; close it there first";
            Error::new(ErrorKind::Locked, message).at(&path, 0)
        } else {
            Error::io("lock the database directory", &path, e)
        }
    })
}

/// How the log is written here.
fn backing(options: &Options, dir: &Path) -> Result<Backing> {
    if options.durability == Durability::None {
        return Ok(Backing::Anonymous);
    }
    Ok(match options.log_mode {
        LogMode::Mapped => Backing::Mapped,
        LogMode::Written => Backing::Written,
        LogMode::Auto if options.read_only => Backing::Written,
        LogMode::Auto => {
            let safe = options.vfs.supports_mapped_writes(dir);
            match safe.map_err(|e| Error::io("find out the kind of file system", dir, e))? {
                true => Backing::Mapped,
                false => Backing::Written,
            }
        }
    })
}

/// Merge threads: one for two cores, and at least one.
pub(crate) fn merge_threads(options: &Options) -> usize {
    match options.compaction_threads {
        0 => std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).clamp(1, 8)),
        n => n,
    }
}

/// Re-indexes the recovered segments and begins a new active one.
fn memtables(
    recovered: Recovered,
    pool: &Pool,
    vfs: &dyn Vfs,
    boot: [u8; 16],
    database: u64,
    options: &Options,
) -> Result<(Vec<Arc<Mem>>, Arc<Mem>, GroupSync)> {
    let next_base = recovered.next_base;
    let group = GroupSync::default();
    let mut sealed = Vec::new();
    for replayed in recovered.segments {
        let mem = Mem::new(replayed.segment);
        mem.memtable.insert_batch(&replayed.offsets);
        sealed.push(mem);
    }
    sealed.reverse();
    let raw = pool.take(0)?;
    if !options.read_only {
        raw.populate();
    }
    let active = Mem::new(Segment::begin(raw, next_base, boot, database, vfs.random())?);
    group.forget_below(next_base);
    if active.segment.raw().file.is_some() {
        group.add(Arc::clone(&active.segment));
    }
    Ok((sealed, active, group))
}

/// Removes files that belong to nothing: tables of jobs that a crash cut short, and used log segments.
fn remove_strays(core: &Core) -> Result<()> {
    let version = core.version.load_arc();
    let entries =
        core.vfs.list(&core.dir).map_err(|e| Error::io("list the database directory", &core.dir, e))?;
    for entry in entries {
        let remove = if let Some(id) = entry.name.strip_suffix(".tbl").and_then(|n| n.parse().ok()) {
            let path = path_of(&core.dir, id);
            if !path.ends_with(&entry.name) {
                continue; // Not spelt as ours are: someone else's.
            }
            (!version.tree.table_ids().contains(&id)).then_some(path)
        } else if let Some(number) = entry.name.strip_suffix(".log").and_then(|n| n.parse().ok()) {
            let used = std::iter::once(&version.active)
                .chain(&version.sealed)
                .any(|mem| mem.segment.raw().file.is_some() && mem.segment.raw().number == number);
            let path = crate::log::pool::path_of(&core.dir, number);
            if !path.ends_with(&entry.name) {
                continue;
            }
            (!used).then_some(path)
        } else {
            None
        };
        if let Some(path) = remove {
            core.vfs
                .remove(&path)
                .map_err(|e| Error::io("remove a file that is not needed any more", &path, e))?;
        }
    }
    Ok(())
}
