//! Tests of the whole format: against a model, and against damage.

mod damage;
mod model;

pub(super) use model::noise;

use super::*;
use crate::io::sim::SimVfs;
use crate::io::{File, OpenMode, Vfs};

pub(super) fn path() -> &'static Path {
    Path::new("/000000000007.tbl")
}

/// A file of these bytes.
pub(super) fn file_of(bytes: &[u8]) -> Arc<dyn File> {
    let vfs = SimVfs::new(1);
    vfs.write_file(path(), bytes).unwrap();
    vfs.open(path(), OpenMode::ReadWrite).unwrap()
}

pub(super) fn bytes_of(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// One entry to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Vec<u8>,
    pub(super) version: u64,
    pub(super) kind: crate::entry::Kind,
    pub(super) value: Vec<u8>,
}

pub(super) fn write(items: &[Item], options: &TableOptions, id: u64) -> (Arc<dyn File>, TableMeta) {
    let file = file_of(&[]);
    let mut builder = TableBuilder::new(file.clone(), path(), id, options.clone());
    for item in items {
        builder.add(&item.key, item.version, item.kind, &item.value).unwrap();
    }
    let meta = builder.finish().unwrap();
    (file, meta)
}
