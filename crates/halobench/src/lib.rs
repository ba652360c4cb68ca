//! Halobench: measures embedded key-value engines side by side, in one run, with every answer checked.
//!
//! A run is a set of [`cases`], each a few timed phases on one database; every engine works through each case in a
//! process of its own ([`child`]), in interleaved rounds ([`run`]); what comes out is one [`report::Report`], as JSON
//! and as a table.
//!
//! A program that starts runs must call [`child::enter_if_child`] first in its `main`.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod cases;
pub mod child;
pub mod driver;
pub mod durability;
pub mod engine;
pub mod interrupt;
pub mod machine;
pub mod report;
pub mod run;
pub mod spec;
pub mod workload;
