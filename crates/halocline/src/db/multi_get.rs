//! Many point reads at once: the cache misses of their descents and filters overlap.

use super::core::Core;
use super::read::InternalKey;
use crate::{Result, Value};

/// Keys whose memory is fetched ahead together.
const GROUP: usize = 16;

impl Core {
    /// The values of `keys`, in their order.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, family: u32, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let mut values = Vec::with_capacity(keys.len());
        for group in keys.chunks(GROUP) {
            {
                let version = self.version.pin();
                for mem in std::iter::once(&version.active).chain(&version.sealed) {
                    if !mem.memtable.is_empty() {
                        for key in group {
                            mem.memtable.prefetch(InternalKey::new(family, key.as_ref()).as_slice());
                        }
                    }
                }
                if let Some(family) = version.tree.family(family) {
                    for key in group {
                        let hash = crate::io::checksum::key_hash(key.as_ref());
                        for table in family.all_runs().filter_map(|run| run.find(key.as_ref())) {
                            table.prefetch_filter(hash);
                        }
                    }
                }
            }
            for key in group {
                values.push(self.get(family, key.as_ref(), u64::MAX)?);
            }
        }
        Ok(values)
    }
}
