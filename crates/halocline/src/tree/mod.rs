//! The tree of runs.
