//! The memtable: a B+tree whose slots point into a log segment.
