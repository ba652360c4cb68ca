//! The key before, to check the order: keys of 16 bytes in a register, others in a buffer.

#[derive(Default)]
pub struct Previous {
    any: bool,
    short: u128,
    bytes: Vec<u8>,
}

impl Previous {
    /// Begins anew.
    #[inline]
    pub fn clear(&mut self) {
        self.any = false;
    }

    /// Whether the key before is smaller (larger, if `backward`), or there was none; `key` takes its place.
    #[inline]
    pub fn precedes(&mut self, key: &[u8], backward: bool) -> bool {
        let first = !std::mem::replace(&mut self.any, true);
        if let Ok(key) = <[u8; 16]>::try_from(key) {
            // No set mixes lengths; a foreign key of another length is found by the count or by the check of the state.
            let key = u128::from_be_bytes(key);
            let before = std::mem::replace(&mut self.short, key);
            self.bytes.clear();
            return first || if backward { key < before } else { before < key };
        }
        let right = first || if backward { key < self.bytes.as_slice() } else { self.bytes.as_slice() < key };
        self.bytes.clear();
        self.bytes.extend_from_slice(key);
        right
    }

    /// The last key.
    pub fn key(&mut self) -> &[u8] {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&self.short.to_be_bytes());
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_strict_both_ways() {
        for len in [8, 16, 20] {
            let key = |b: u8| vec![b; len];
            for backward in [false, true] {
                let mut p = Previous::default();
                let (low, high) = if backward { (9, 1) } else { (1, 9) };
                assert!(p.precedes(&key(low), backward));
                assert!(p.precedes(&key(high), backward));
                assert!(!p.precedes(&key(high), backward));
                assert!(!p.precedes(&key(low), backward));
                assert_eq!(p.key(), key(low));
                p.clear();
                assert!(p.precedes(&key(low), backward));
            }
        }
    }
}
