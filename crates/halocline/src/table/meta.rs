//! What the manifest knows of a table.

/// A table's identity and summary, as the manifest records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableMeta {
    /// Names the file (`{id:012}.tbl`) and seeds its checksums.
    pub(crate) id: u64,
    /// Bytes of the file.
    pub(crate) file_len: u64,
    /// The footer's checksum: a file that was put in this one's place does not match.
    pub(crate) footer_sum: u64,
    /// All versions, deletions included.
    pub(crate) entries: u64,
    /// Deletions among them.
    pub(crate) deletes: u64,
    /// Bytes of keys and values before compression.
    pub(crate) raw_bytes: u64,
    /// The highest log address of an entry in it, as given to the builder.
    pub(crate) max_version: u64,
    /// The first key.
    pub(crate) smallest: Box<[u8]>,
    /// The last key.
    pub(crate) largest: Box<[u8]>,
}
