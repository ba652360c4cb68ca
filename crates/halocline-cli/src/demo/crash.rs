//! The proof that acknowledged writes survive: a process writes and reports every commit through a pipe, gets killed
//! with SIGKILL in the middle of it, and what it reported must be there, with nothing half-written besides.

use super::data::{Block, Reader};
use super::terms;
use super::worker::{CRASH_BATCH, LOAD_FILE, holds};
use halobench::engine::{self, Session};
use halobench::interrupt;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What was found after the kills.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    pub kills: u32,
    /// Records that the writers reported.
    pub acknowledged: u64,
    /// Of these, not there or of another value: must be 0.
    pub lost: u64,
    /// Batches of which a part is there: must be 0.
    pub torn: u64,
    /// The longest reopening after a kill.
    pub slowest_recovery: Duration,
}

impl Proof {
    /// Whether everything acknowledged survived.
    pub fn holds(&self) -> bool {
        self.kills > 0 && self.acknowledged > 0 && self.lost == 0 && self.torn == 0
    }
}

/// Kills a writer `kills` times, on its way through `records` records.
pub fn prove(engine: &str, db: &Path, data: &Path, records: u64, kills: u32) -> Result<Proof, String> {
    fs::create_dir_all(db).map_err(|error| format!("could not create {}: {error}", db.display()))?;
    let file = Reader::open(&data.join(LOAD_FILE))
        .map_err(|error| format!("could not read the demo's records: {error}"))?;
    let config = terms::config(file.sum);
    let mut proof = Proof::default();
    let mut there = 0;
    for round in 1..=kills {
        let target = records * u64::from(round) / u64::from(kills + 1);
        let acknowledged = write_and_kill(engine, db, data, there, target)?;
        proof.kills += 1;
        proof.acknowledged = acknowledged;
        let start = Instant::now();
        let database = engine::open(engine, db, &config)?;
        let mut session = database.session()?;
        // The first read is part of being back.
        session.get(b"a key")?;
        proof.slowest_recovery = proof.slowest_recovery.max(start.elapsed());
        there = verify(session.as_mut(), data, acknowledged, &mut proof)?;
        drop(session);
        database.close()?;
    }
    Ok(proof)
}

/// Runs a writer from record `skip` on, kills it when it has acknowledged `target`, and returns what it had
/// acknowledged when it died.
fn write_and_kill(engine: &str, db: &Path, data: &Path, skip: u64, target: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["demo-worker", "write-until-killed", engine])
        .arg(db)
        .arg(data)
        .args(["--skip", &skip.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start the writer: {error}"))?;
    interrupt::set_child(Some(child.id()));
    let Some(mut pipe) = child.stdout.take() else { return Err("the writer has no pipe".into()) };
    let (mut acknowledged, mut killed) = (skip, false);
    let mut report = [0; 8];
    // After the kill, what is left in the pipe still counts: it was acknowledged.
    while pipe.read_exact(&mut report).is_ok() {
        acknowledged = u64::from_le_bytes(report);
        if acknowledged >= target && !killed {
            child.kill().map_err(|error| format!("could not kill the writer: {error}"))?;
            killed = true;
        }
    }
    interrupt::set_child(None);
    let status = child.wait().map_err(|error| error.to_string())?;
    match killed {
        true => Ok(acknowledged),
        false => Err(format!("the writer ended before it was killed: {status}")),
    }
}

/// Compares what is there with what was acknowledged; returns how many records are there.
fn verify(
    session: &mut dyn Session,
    data: &Path,
    acknowledged: u64,
    proof: &mut Proof,
) -> Result<u64, String> {
    let in_words = |error: std::io::Error| format!("could not read the demo's records: {error}");
    let mut reader = Reader::open(&data.join(LOAD_FILE)).map_err(in_words)?;
    let mut block = Block::default();
    let mut at = 0;
    while at < acknowledged {
        let size = (acknowledged - at).min(CRASH_BATCH as u64) as usize;
        reader.block(&mut block, size).map_err(in_words)?;
        for (key, value) in block.iter() {
            proof.lost += u64::from(!holds(session, key, value)?);
        }
        at += block.len() as u64;
    }
    // One commit may have been on its way: it is there as a whole, or not at all. None may be behind it.
    reader.block(&mut block, CRASH_BATCH).map_err(in_words)?;
    let (mut present, size) = (0, block.len());
    for (key, value) in block.iter() {
        match session.get(key)? {
            Some(found) if found == value => present += 1,
            // Of another value: no number of these makes a whole commit.
            Some(_) => present += size + 1,
            None => {}
        }
    }
    if present != 0 && present != size {
        proof.torn += 1;
    }
    let mut total = 0;
    let mut cursor = session.cursor()?;
    let mut more = cursor.seek_first()?;
    while more {
        total += 1;
        more = cursor.next()?;
    }
    if total != acknowledged + present as u64 {
        proof.torn += 1;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::super::data;
    use super::super::text::tests::sample;
    use super::*;

    /// What is found when of 1,000 records the first `written` are there and `acknowledged` were reported.
    fn found(written: usize, acknowledged: u64, change: Option<usize>) -> (Proof, u64) {
        let dir = tempfile::tempdir().unwrap();
        let text = sample(1000);
        let sum = data::write(&text, &dir.path().join(LOAD_FILE)).unwrap();
        let db = dir.path().join("db");
        fs::create_dir(&db).unwrap();
        let database = engine::open("lmdb", &db, &terms::config(sum)).unwrap();
        let mut session = database.session().unwrap();
        for at in 0..written {
            let (key, value) = text.record(at);
            session.batch_put(key, if change == Some(at) { b"changed" } else { value }).unwrap();
        }
        session.commit().unwrap();
        let mut proof = Proof { kills: 1, acknowledged, ..Proof::default() };
        let there = verify(session.as_mut(), dir.path(), acknowledged, &mut proof).unwrap();
        (proof, there)
    }

    #[test]
    fn what_was_acknowledged_and_a_whole_commit_behind_it_verify() {
        for (written, acknowledged) in [(300, 300), (400, 300), (1000, 1000)] {
            let (proof, there) = found(written, acknowledged, None);
            assert!(proof.holds(), "{proof:?}");
            assert_eq!(there, written as u64);
        }
    }

    #[test]
    fn losses_changes_and_torn_commits_do_not_verify() {
        let verdict = |written, acknowledged, change| {
            let (proof, _) = found(written, acknowledged, change);
            assert!(!proof.holds());
            (proof.lost, proof.torn)
        };
        assert_eq!(verdict(250, 300, None).0, 50);
        assert_eq!(verdict(300, 300, Some(7)), (1, 0));
        assert_eq!(verdict(350, 300, None).1, 1);
        assert_eq!(verdict(400, 300, Some(350)).0, 0);
        // Two commits behind the last acknowledged one: the writer waits for each, so one of them is a ghost.
        assert_eq!(verdict(500, 300, None), (0, 1));
    }

    #[test]
    fn no_kill_proves_nothing() {
        assert!(!Proof { acknowledged: 1, ..Proof::default() }.holds());
        assert!(!Proof { kills: 1, ..Proof::default() }.holds());
    }
}
