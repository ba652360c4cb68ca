//! Fetching and building what engines need.

use super::code;
use halobench::driver;
use halobench::engine::{registry, rocksdb};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Gets what these engines need. What cannot be had becomes their rows' reason later, and the run goes on; the words are
/// said here too, at once.
pub fn prepare(engines: &[String], rocksdb_lib: Option<&Path>) {
    for version in rocksdb::fetch::wanted(engines.iter().map(String::as_str), rocksdb_lib.is_some()) {
        if let Err(e) = fetch_rocksdb(version) {
            eprintln!("halobench: RocksDB {} will not run: {e}", version.name);
        }
    }
    for driver in driver::all() {
        let wanted: Vec<&str> =
            driver.engines().iter().map(|g| g.name).filter(|g| engines.iter().any(|e| e == g)).collect();
        if !wanted.is_empty()
            && let Err(e) = driver.build(&mut |step| eprintln!("{} driver: {step}", driver.name()))
        {
            eprintln!("halobench: {} will not run: {e}", wanted.join(", "));
        }
    }
}

fn fetch_rocksdb(version: &rocksdb::fetch::Version) -> Result<PathBuf, String> {
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("fetching RocksDB {msg} [{bar:24}] {bytes}/{total_bytes}")
            .map_err(|e| e.to_string())?,
    );
    bar.set_message(version.name);
    let path = rocksdb::fetch::fetch(version, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    path
}

/// `setup`: everything, then what is there and what is not. One thing that cannot be had does not hold up the others.
pub fn setup() -> Result<u8, String> {
    let mut rows: Vec<(String, Result<String, String>)> = Vec::new();
    for version in &rocksdb::fetch::VERSIONS {
        let path = fetch_rocksdb(version).map(|path| path.display().to_string());
        rows.push((format!("RocksDB {}", version.name), path));
    }
    for driver in driver::all() {
        if driver.engines().is_empty() {
            continue;
        }
        let built = driver.build(&mut |step| eprintln!("{} driver: {step}", driver.name()));
        let names: Vec<&str> = driver.engines().iter().map(|g| g.name).collect();
        rows.push((
            format!("{} driver", driver.name()),
            built.map(|()| format!("built, for {}", names.join(", "))),
        ));
    }
    let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    for (what, state) in &rows {
        match state {
            Ok(words) => println!("{what:<width$}  {words}"),
            Err(why) => println!("{what:<width$}  not there: {why}"),
        }
    }
    let (there, missing): (Vec<_>, Vec<_>) =
        registry::all().iter().map(|e| e.availability(None)).partition(|a| a.missing.is_none());
    let names =
        |list: &[registry::Availability]| list.iter().map(|a| a.name.clone()).collect::<Vec<_>>().join(", ");
    println!("\nengines that run: {}", names(&there));
    if !missing.is_empty() {
        println!("engines that do not: {} (`halobench engines` tells why)", names(&missing));
    }
    Ok(if rows.iter().all(|(_, state)| state.is_ok()) { code::GOOD } else { code::TROUBLE })
}
