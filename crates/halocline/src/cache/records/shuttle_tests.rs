//! Thread schedules explored by shuttle.
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test -p halocline --lib --target-dir target-shuttle cache::records`.

use super::*;
use crate::sync::{Arc, thread};

/// Two readers, and two who offer two keys of one set, at two numbers of flushes: a value is whole, of its key and of its number.
#[test]
fn readers_see_whole_records() {
    let test = || {
        let records = Arc::new(Records::new(SET * 8).unwrap());
        let value = |key: u8, flushes: u64| [key ^ flushes as u8; 24];
        let place = |key: u8| Place { set: 0, fingerprint: 1 + u16::from(key % 2), family: 0 };
        let threads: Vec<_> = (0..4u8)
            .map(|id| {
                let records = Arc::clone(&records);
                thread::spawn(move || {
                    for key in [b'a' + id % 2, b'b' - id % 2, b'c'] {
                        for flushes in 1..3 {
                            if id < 2 {
                                records.offer(place(key), flushes, &[key], &value(key, flushes));
                            } else if let Some(read) = records.get(place(key), flushes, &[key]) {
                                assert_eq!(read, value(key, flushes));
                            }
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(records.words.all()[0].load(Relaxed) & 1, 0);
        // Someone got through for each key.
        assert!((b'a'..=b'c').any(|key| records.get(place(key), 2, &[key]).is_some()));
    };
    shuttle::check_random(test, 1000);
    shuttle::check_pct(test, 1000, 3);
}
