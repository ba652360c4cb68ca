//! The generators against the vectors of `docs/lab/vectors.tsv`, which were made by another implementation, in another
//! language, from `docs/lab/generators.md`.

use halobench::spec::Mix;
use halobench::workload::{
    Arrivals, DataSet, Encoding, Mixed, Ops, Order, Turn, ValueKind, Values, digest, rng,
};
use std::path::Path;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A choice by its name in JSON.
fn named<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(serde_json::Value::String(name.into())).unwrap()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

fn computed(f: &[&str]) -> String {
    match f[0] {
        "draw" => format!("{:016x}", rng::at(number(f[1]), number(f[2]))),
        "stream" => format!("{:016x}", rng::stream(number(f[1]), number(f[2]))),
        "key" => {
            let set = DataSet {
                n: 1_000_000,
                encoding: named::<Encoding>(f[1]),
                key_len: number(f[2]) as usize,
                value_len: 8,
                value_kind: ValueKind::Half,
                seed: number(f[3]),
            };
            let mut key = vec![0; set.key_len];
            set.generator().unwrap().keys.encode(number(f[4]), &mut key);
            hex(&key)
        }
        "value" => {
            let mut value = vec![0; number(f[2]) as usize];
            Values::new(named::<ValueKind>(f[1]), value.len(), number(f[3])).fill(
                number(f[4]),
                number(f[5]),
                &mut value,
            );
            hex(&value)
        }
        "part" => {
            let mut value = vec![0; number(f[2]) as usize];
            Values::new(named::<ValueKind>(f[1]), value.len(), number(f[3])).fill(
                number(f[4]),
                number(f[5]),
                &mut value,
            );
            let at = number(f[6]) as usize;
            hex(&value[at..at + 24])
        }
        "mix" => {
            let shares: Vec<u32> = f[5].split('/').map(|s| s.parse().unwrap()).collect();
            let &[read, update, insert, scan, modify] = &shares[..] else { panic!("{}", f[5]) };
            let mix = Mix { read, update, insert, scan, modify, latest: f[6] == "1" };
            let (ids, size, first) = (number(f[2]), number(f[7]) as u32, number(f[8]));
            let (count, threads, thread) = (number(f[9]), number(f[10]) as usize, number(f[11]) as usize);
            let ops = Ops::new(named::<Order>(f[1]), ids, count, number(f[3]), number(f[4]));
            let share = ops.share(thread, threads);
            let mixed = Mixed::new(ops, mix, size, first, number(f[3]), number(f[4]));
            let mut inserted = mixed.inserts(0..share.start);
            let mut own = 0;
            let words = share.map(|j| match mixed.turn(j) {
                Turn::Insert => {
                    (inserted, own) = (inserted + 1, own + 1);
                    format!("i{}", first + inserted - 1)
                }
                Turn::Read => format!("r{}", mixed.read_id(j, own, first + inserted)),
                Turn::Update => format!("u{}", mixed.id(j)),
                Turn::Modify => format!("m{}", mixed.id(j)),
                Turn::Scan => format!("s{}:{}", mixed.id(j), mixed.scan_len(j)),
            });
            words.collect::<Vec<_>>().join(" ")
        }
        "gap" => {
            let arrivals = Arrivals::new(number(f[1]), number(f[2]), 1, 1.0);
            format!("{:016x}", arrivals.gap(number(f[3]), 1).to_bits())
        }
        "digest" => {
            let digits = if f[1] == "-" { "" } else { f[1] };
            let bytes =
                (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap());
            format!("{:016x}", digest(&bytes.collect::<Vec<u8>>()))
        }
        "ids" => {
            let ops = Ops::new(named::<Order>(f[1]), number(f[2]), 12, number(f[3]), number(f[4]));
            (0..12).map(|j| ops.id(j).to_string()).collect::<Vec<_>>().join(" ")
        }
        "coins" => {
            let ops = Ops::new(Order::Up, 32, 32, number(f[1]), number(f[2]));
            (0..32).map(|j| if ops.writes(j) { '1' } else { '0' }).collect()
        }
        other => panic!("a vector of the unknown kind {other}"),
    }
}

#[test]
fn generators_make_the_published_vectors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/vectors.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut checked = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (expected, parameters) = fields.split_last().unwrap();
        assert_eq!(&computed(parameters), expected, "{parameters:?}");
        checked += 1;
    }
    assert!(checked > 140, "{checked} vectors");
}
