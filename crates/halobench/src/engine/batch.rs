//! A batch kept in one buffer until its commit, for engines with one writer at a time: were their own transaction open
//! while the batch is being filled, all other writers would wait for it.

/// Writes that wait for their commit.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Lengths of a key and of its value; no value for a removal.
    entries: Vec<(usize, Option<usize>)>,
}

impl Batch {
    /// Adds a put, or a removal where there is no value.
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.entries.push((key.len(), value.map(<[u8]>::len)));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The writes, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = self.bytes.as_slice();
        let mut take = move |n: usize| {
            let (head, tail) = rest.split_at(n);
            rest = tail;
            head
        };
        self.entries.iter().map(move |&(key, value)| (take(key), value.map(&mut take)))
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    #[test]
    fn gives_back_what_was_added() {
        let mut batch = Batch::default();
        batch.push(b"a", Some(b"one"));
        batch.push(b"bb", None);
        batch.push(b"ccc", Some(b""));
        let all: Vec<(&[u8], Option<&[u8]>)> = batch.iter().collect();
        assert_eq!(all, [(&b"a"[..], Some(&b"one"[..])), (b"bb", None), (b"ccc", Some(b""))]);
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.iter().count(), 0);
    }
}
