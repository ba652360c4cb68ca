//! What is written and read: keys, values and the order of operations, specified to the bit in
//! `docs/lab/generators.md`. Everything here runs before the clock starts, except the formatting of one key and the
//! copy of one value.

mod arrivals;
mod digest;
mod expect;
mod keys;
mod mixed;
mod ops;
mod ranges;
pub mod rng;
mod text;
mod values;
mod zipf;

pub use arrivals::Arrivals;
pub use digest::digest;
pub use expect::{Bits, Expect, Racing, Versions, base_version, done};
pub use keys::{Encoding, Keys};
pub use mixed::{Mixed, Turn};
pub use ops::{Ops, Order};
pub use ranges::{Ranges, Sorted};
pub use values::{Read, ValueKind, Values};

use serde::{Deserialize, Serialize};

/// A key pattern, by the names of benchtool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Ascending ids.
    #[value(alias = "sequential")]
    Seq,
    /// Descending ids.
    Reverse,
    /// Every key once, in random order; reads draw evenly.
    Random,
    /// Keys drawn evenly, with repetition.
    Uniform,
    /// Keys drawn by Zipf's law, theta 0.99.
    #[value(alias = "zipf")]
    Zipfian,
    /// Rising timestamps.
    Timestamp,
    /// Version 4 UUIDs.
    Uuid,
    /// benchtool's "random": a byte-reversed counter, read in the order of writing.
    Compat,
}

impl Pattern {
    /// How this pattern's ids become keys.
    pub fn encoding(self) -> Encoding {
        match self {
            Pattern::Seq | Pattern::Reverse => Encoding::Ordered,
            Pattern::Random | Pattern::Uniform | Pattern::Zipfian => Encoding::Hashed,
            Pattern::Timestamp => Encoding::Timestamp,
            Pattern::Uuid => Encoding::Uuid,
            Pattern::Compat => Encoding::Compat,
        }
    }

    /// The order in which a write of this pattern visits the ids.
    pub fn write_order(self) -> Order {
        match self {
            Pattern::Reverse => Order::Down,
            Pattern::Uniform => Order::Uniform,
            Pattern::Zipfian => Order::Zipf,
            _ => Order::Up,
        }
    }

    /// The order in which a read of this pattern visits the ids.
    pub fn read_order(self) -> Order {
        match self {
            Pattern::Reverse => Order::Down,
            Pattern::Random | Pattern::Uniform | Pattern::Uuid => Order::Uniform,
            Pattern::Zipfian => Order::Zipf,
            Pattern::Seq | Pattern::Timestamp | Pattern::Compat => Order::Up,
        }
    }

    /// The order in which a deletion of this pattern visits the ids.
    pub fn delete_order(self) -> Order {
        match self {
            Pattern::Random | Pattern::Uniform | Pattern::Uuid => Order::Shuffled,
            _ => self.read_order(),
        }
    }
}

/// A set of keys and values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataSet {
    /// Ids run from 0 to here.
    pub n: u64,
    /// How ids become keys.
    pub encoding: Encoding,
    /// Bytes of a key.
    pub key_len: usize,
    /// Bytes of a value.
    pub value_len: usize,
    /// What values are made of.
    pub value_kind: ValueKind,
    /// The seed of everything.
    pub seed: u64,
}

impl DataSet {
    /// Bytes of keys and values in the whole set.
    pub fn bytes(&self) -> u64 {
        self.n * (self.key_len + self.value_len) as u64
    }

    /// The generators; fails, in words, on sizes that cannot work.
    pub fn generator(&self) -> Result<Generator, String> {
        if self.n == 0 || self.n > u64::from(u32::MAX) {
            return Err(format!("{} keys: between 1 and {} are possible", self.n, u32::MAX));
        }
        let keys = Keys::new(self.encoding, self.key_len, self.n, self.seed)?;
        Ok(Generator {
            keys,
            values: Values::new(self.value_kind, self.value_len, self.seed),
            set: self.clone(),
        })
    }
}

/// A data set with its generators.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Keys from ids.
    pub keys: Keys,
    /// Values from ids and versions.
    pub values: Values,
    /// The set.
    pub set: DataSet,
}
