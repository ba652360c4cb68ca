//! Random operations on one file against the simplest model of it: two vectors of bytes, the newest and the synced.

use super::*;
use crate::io::sim::rng::Rng;
use crate::io::{MapMode, Mapping};

#[derive(Default)]
struct Model {
    now: Vec<u8>,
    durable: Vec<u8>,
}

impl Model {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        if self.now.len() < at + bytes.len() {
            self.now.resize(at + bytes.len(), 0);
        }
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Whether `found` may be there after a crash: each sector old or new, of a length between.
    fn may_become(&self, found: &[u8]) -> bool {
        let sector = |of: &[u8], at: usize| {
            let mut sector = of[at.min(of.len())..(at + 512).min(of.len())].to_vec();
            // A sector may be cut by the length found, and is zeros past its own.
            sector.resize(512.min(found.len() - at), 0);
            sector
        };
        let lens = self.now.len().min(self.durable.len())..=self.now.len().max(self.durable.len());
        lens.contains(&found.len())
            && (0..found.len()).step_by(512).all(|at| {
                let piece = sector(found, at);
                piece == sector(&self.now, at) || piece == sector(&self.durable, at)
            })
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let disk = disk();
    let mut file = new_file(&disk, "/d/f");
    let mut model = Model::default();
    let mut mapping: Option<Mapping> = None;
    for step in 0..120 {
        let at = rng.below(30_000) as usize;
        let bytes = vec![rng.below(255) as u8 + 1; rng.below([10, 600, 9_000][step % 3]) as usize];
        match rng.below(13) {
            0..4 => {
                file.write_all_at(&bytes, at as u64).unwrap();
                if !bytes.is_empty() {
                    model.write(at, &bytes);
                }
            }
            4..7 => {
                if let Some(mapping) = &mapping {
                    let end = mapping.len().min(model.now.len());
                    let at = at % end.max(1);
                    let n = bytes.len().min(end.saturating_sub(at));
                    // SAFETY: one thread, no other slice.
                    unsafe { mapping.slice_mut(at, n).copy_from_slice(&bytes[..n]) };
                    model.write(at, &bytes[..n]);
                }
            }
            7 => {
                file.set_len(at as u64).unwrap();
                model.now.resize(at, 0);
            }
            8 => {
                // Gone before the file is mapped again, and maybe for more.
                drop(mapping.take());
                file.allocate(at as u64 + 1).unwrap();
                model.now.resize(model.now.len().max(at + 1), 0);
                // A file may also be mapped in part.
                let len = if rng.chance(1, 2) { at + 1 } else { 1 + at / 2 };
                mapping = Some(file.map(len, MapMode::Shared).unwrap());
            }
            9 => mapping = None,
            10 => file = disk.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap(),
            _ => {
                file.sync().unwrap();
                model.durable.clone_from(&model.now);
            }
        }
        assert!(disk.read_file("/d/f").unwrap() == model.now, "seed {seed}, step {step}: reads");
        assert_eq!(file.len().unwrap(), model.now.len() as u64);
        if rng.chance(1, 4) {
            assert!(disk.kill().read_file("/d/f").unwrap() == model.now, "seed {seed}, step {step}: kill");
            let dropped = disk.crash(step as u64, CrashMode::DropUnsynced).read_file("/d/f").unwrap();
            assert!(dropped == model.durable, "seed {seed}, step {step}: unsynced dropped");
            for mode in [CrashMode::RandomPieces, CrashMode::Torn] {
                let crashed = disk.crash(rng.next(), mode);
                let found = crashed.read_file("/d/f").unwrap();
                assert!(model.may_become(&found), "seed {seed}, step {step}: {mode:?}");
                // Nothing lies past the end, to come up when the file grows.
                let grown = crashed.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap();
                grown.set_len(50_000).unwrap();
                let grown = crashed.read_file("/d/f").unwrap();
                assert!(grown[found.len()..].iter().all(|b| *b == 0), "seed {seed}, step {step}: {mode:?}");
            }
        }
        if let Some(mapping) = &mapping {
            let end = mapping.len().min(model.now.len());
            // SAFETY: nothing is written while the slice lives.
            let seen = unsafe { mapping.slice(0, end) };
            assert!(seen == &model.now[..end], "seed {seed}, step {step}: mapping");
        }
    }
}

#[test]
fn random_operations_on_a_file() {
    for seed in 0..50 {
        run(seed);
    }
}
