//! Sorted tables.

mod meta;

pub(crate) use meta::TableMeta;
