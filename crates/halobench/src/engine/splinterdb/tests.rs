//! The adapter over a stand-in for SplinterDB (`fake.c`), in both states of its interface. Without a C compiler there is
//! nothing to test.

use super::*;
use crate::engine::Compression;
use std::path::PathBuf;
use std::process::Command;

/// Compiles the stand-in as a library in `dir/lib`, with headers in `dir/include`.
fn fake(dir: &Path, macros: &[&str]) -> Option<PathBuf> {
    let headers = dir.join("include/splinterdb");
    std::fs::create_dir_all(&headers).unwrap();
    std::fs::create_dir_all(dir.join("lib")).unwrap();
    let defines: String =
        macros.iter().map(|m| format!("#define {}\n", m.trim_start_matches("-D"))).collect();
    std::fs::write(headers.join("splinterdb.h"), defines + include_str!("fake.h")).unwrap();
    std::fs::write(headers.join("default_data_config.h"), "#include \"splinterdb/splinterdb.h\"\n").unwrap();
    let source = dir.join("fake.c");
    std::fs::write(&source, include_str!("fake.c")).unwrap();
    // Names of their own: a process loads one library of a name.
    let name = format!("libsplinterdb{}.so", macros.len());
    let library = dir.join("lib").join(&name);
    let done = Command::new("cc")
        .args(["-std=gnu11", "-shared", "-fPIC", "-pthread", "-I"])
        .arg(dir.join("include"))
        .arg(format!("-Wl,-soname,{name}"))
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .output();
    match done {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(library)
        }
        Err(_) => None,
    }
}

fn config() -> Config {
    Config {
        write_buffer: 1 << 20,
        cache: 1 << 20,
        durability: Durability::None,
        compression: Compression::None,
        threads: 4,
        expected_bytes: 1 << 20,
        rocksdb_lib: None,
    }
}

fn pass(session: &mut dyn Session) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = session.cursor().unwrap();
    let mut all = Vec::new();
    let mut more = cursor.seek_first().unwrap();
    while more {
        let key = cursor.key().to_vec();
        all.push((key, cursor.value().unwrap().to_vec()));
        more = cursor.next().unwrap();
    }
    all
}

fn works_with(macros: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = fake(dir.path(), macros) else { return };
    let include = build::beside(&library).unwrap();
    let shim = build::compiled(&library, &include, &dir.path().join("cache")).unwrap();
    assert_eq!(build::compiled(&library, &include, &dir.path().join("cache")), Ok(shim.clone()), "kept");
    assert_eq!(Api::load(&shim).unwrap().version(), Ok("fake".into()));
    let place = dir.path().join("db");
    std::fs::create_dir(&place).unwrap();
    {
        let engine = open_with(Api::load(&shim).unwrap(), &place, &config()).unwrap();
        let mut session = engine.session().unwrap();
        assert_eq!(pass(&mut *session), []);
        for i in (0..100u8).rev() {
            session.put(&[b'k', i], &[i; 3]).unwrap();
        }
        session.put(b"k\x05", b"").unwrap();
        session.delete(b"k\x06").unwrap();
        session.delete(b"nothing").unwrap();
        session.batch_put(b"k\x07", b"batch").unwrap();
        session.batch_delete(b"k\x08").unwrap();
        session.commit().unwrap();
        assert_eq!(session.get(b"k\x04"), Ok(Some(&[4; 3][..])));
        assert_eq!(session.get(b"k\x05"), Ok(Some(&b""[..])), "an empty value is there");
        assert_eq!(session.get(b"k\x06"), Ok(None));
        assert_eq!(session.get(b"k\x07"), Ok(Some(&b"batch"[..])));
        assert_eq!(session.get(b"k\x08"), Ok(None));
        {
            let mut cursor = session.cursor().unwrap();
            assert_eq!(cursor.seek(b"k\x06"), Ok(true));
            assert_eq!(cursor.key(), b"k\x07", "the one behind");
            assert_eq!(cursor.value(), Ok(&b"batch"[..]));
            assert_eq!(cursor.next(), Ok(true));
            assert_eq!(cursor.key(), b"k\x09");
            assert_eq!(cursor.seek(b"l"), Ok(false));
            assert_eq!(cursor.seek(b""), Ok(true), "a cursor can be used again");
            assert_eq!(cursor.key(), b"k\x00");
            assert!(cursor.seek_last().is_err(), "it does not go backward");
        }
        std::thread::scope(|scope| {
            for t in 0..4u8 {
                let engine = &engine;
                scope.spawn(move || {
                    // Registered by the first session, until the last one is gone.
                    let mut one = engine.session().unwrap();
                    let mut two = engine.session().unwrap();
                    one.put(&[b't', t], b"one").unwrap();
                    drop(one);
                    two.put(&[b'u', t], b"two").unwrap();
                });
            }
        });
        assert_eq!(session.get(b"u\x03"), Ok(Some(&b"two"[..])));
        let all = pass(&mut *session);
        assert_eq!(all.len(), 98 + 8);
        assert!(all.is_sorted());
        drop(session);
        assert_eq!(engine.settle(Duration::ZERO), Ok(false), "no time to see that it is idle");
        engine.close().unwrap();
    }
    assert_eq!(USES.with(Cell::get), 0);
}

#[test]
fn the_adapter_works_with_the_older_interface() {
    works_with(&[]);
}

#[test]
fn the_adapter_works_with_the_newer_interface() {
    works_with(&["-DFAKE_NEW"]);
}

#[test]
fn headers_that_are_not_there_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let lib = dir.path().join("libsplinterdb.so");
    std::fs::write(&lib, "").unwrap();
    assert!(build::beside(&lib).unwrap_err().contains("SPLINTERDB_INCLUDE"));
    assert!(build::beside(&dir.path().join("none.so")).unwrap_err().contains("none.so"));
}
