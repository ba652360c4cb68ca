//! Where RocksDB's library comes from: the `rocksdbjni` package on Maven Central, whose Linux library exports the
//! whole C API. One download, pinned by its digest, kept in a cache folder.
//!
//! The cache folder is `$HALOBENCH_CACHE`, else `$XDG_CACHE_HOME/halobench`, else `~/.cache/halobench`.

use super::super::Result;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The pinned version.
pub const VERSION: &str = "10.10.1";
const URL: &str = "https://repo1.maven.org/maven2/org/rocksdb/rocksdbjni/10.10.1/rocksdbjni-10.10.1.jar";
const JAR_SHA256: &str = "3e3c9e439b89c2ac4aaa7512bc73052d44b3a6397daed6cb88168cefa6e431a9";

/// The library's name in the package, for this machine, and its digest where the lab knows it.
fn member() -> Option<&'static str> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        Some("librocksdbjni-linux64.so")
    } else if cfg!(all(target_os = "linux", target_arch = "aarch64", target_env = "gnu")) {
        Some("librocksdbjni-linux-aarch64.so")
    } else {
        None
    }
}

/// The folder of fetched things.
pub fn cache_dir() -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    var("HALOBENCH_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("halobench")))
        .or_else(|| var("HOME").map(|d| d.join(".cache/halobench")))
        .unwrap_or_else(|| std::env::temp_dir().join("halobench-cache"))
}

/// Where the fetched library is, or would be.
pub fn cached_path() -> PathBuf {
    cache_dir().join(format!("librocksdb-{VERSION}-{}.so", std::env::consts::ARCH))
}

/// The library to load, if it is here.
pub fn library(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return if path.is_file() {
            Ok(path.into())
        } else {
            Err(format!("{} is not a file", path.display()))
        };
    }
    let path = cached_path();
    if path.is_file() {
        return Ok(path);
    }
    Err("its library is not here: run `halobench setup` (one download of 80 MB), or pass --rocksdb-lib FILE"
        .into())
}

/// Fetches the library unless it is here; `progress` is told bytes done and bytes in all.
pub fn fetch(progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf> {
    let path = cached_path();
    if path.is_file() {
        return Ok(path);
    }
    let member =
        member().ok_or("the rocksdbjni package has no library for this platform; pass --rocksdb-lib FILE")?;
    let jar = download(progress)?;
    let library = unpack(&jar, member)?;
    store(&path, &library)?;
    Ok(path)
}

/// The package's bytes, once their digest is right.
fn download(progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<u8>> {
    let failed = |e: &dyn std::fmt::Display| format!("fetching {URL}: {e}");
    let agent = agent();
    let response = agent.get(URL).call().map_err(|e| failed(&e))?;
    let total = response.body().content_length().unwrap_or(84_000_000);
    let mut body = response.into_body().into_reader();
    let mut jar = Vec::with_capacity(total.min(256 << 20) as usize);
    let mut digest = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let n = body.read(&mut chunk).map_err(|e| failed(&e))?;
        if n == 0 {
            break;
        }
        digest.update(&chunk[..n]);
        jar.extend_from_slice(&chunk[..n]);
        progress(jar.len() as u64, total.max(jar.len() as u64));
    }
    let found = hex(&digest.finalize());
    if found != JAR_SHA256 {
        return Err(format!("{URL}: its SHA-256 is {found}, not {JAR_SHA256}; nothing was kept"));
    }
    Ok(jar)
}

/// Trusts Mozilla's roots, or, as OpenSSL's tools do, the file that `SSL_CERT_FILE` names.
fn agent() -> ureq::Agent {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
    let mut tls = TlsConfig::builder();
    if let Some(pem) = std::env::var_os("SSL_CERT_FILE").and_then(|p| std::fs::read(p).ok()) {
        let certs: Vec<_> = parse_pem(&pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(c)) => Some(c),
                _ => None,
            })
            .collect();
        if !certs.is_empty() {
            tls = tls.root_certs(RootCerts::new_with_certs(&certs));
        }
    }
    ureq::Agent::config_builder().tls_config(tls.build()).build().into()
}

fn unpack(jar: &[u8], member: &str) -> Result<Vec<u8>> {
    let failed = |e: &dyn std::fmt::Display| format!("unpacking {member}: {e}");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(jar)).map_err(|e| failed(&e))?;
    let mut file = archive.by_name(member).map_err(|e| failed(&e))?;
    let mut library = Vec::with_capacity(file.size() as usize);
    file.read_to_end(&mut library).map_err(|e| failed(&e))?;
    Ok(library)
}

/// Writes a file beside its place and renames it there, so that no other run sees half of it.
fn store(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| format!("writing {}: {e}", path.display());
    let dir = path.parent().ok_or("the cache path has no folder")?;
    std::fs::create_dir_all(dir).map_err(|e| failed(&e))?;
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(|e| failed(&e))?;
    file.write_all(bytes).map_err(|e| failed(&e))?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(|e| failed(&e))?;
    file.persist(path).map_err(|e| failed(&e))?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_taken_out_of_the_package_and_stored_whole() {
        let mut jar = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        jar.start_file("lib.so", zip::write::SimpleFileOptions::default()).unwrap();
        jar.write_all(&[7; 100_000]).unwrap();
        let jar = jar.finish().unwrap().into_inner();
        assert!(unpack(&jar, "other.so").unwrap_err().starts_with("unpacking other.so"));
        assert!(unpack(&jar[..50], "lib.so").is_err());
        let library = unpack(&jar, "lib.so").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.so");
        store(&path, &library).unwrap();
        store(&path, &library).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [7; 100_000]);
        assert_eq!(std::fs::read_dir(dir.path().join("a")).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_given_library_must_be_there() {
        assert!(library(Some(Path::new("/nonexistent.so"))).unwrap_err().contains("is not a file"));
    }
}
