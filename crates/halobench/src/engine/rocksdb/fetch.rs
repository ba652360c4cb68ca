//! Where RocksDB's library comes from: the `rocksdbjni` package on Maven Central, whose Linux library exports the
//! whole C API. One download a version, pinned by its digest, kept in a cache folder.
//!
//! The cache folder is `$HALOBENCH_CACHE`, else `$XDG_CACHE_HOME/halobench`, else `~/.cache/halobench`.

use super::super::Result;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A version that the lab knows.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number, such as `11.8.1`.
    pub name: &'static str,
    /// Bytes to download.
    pub bytes: u64,
    /// The package's SHA-256.
    sha256: &'static str,
}

/// The versions, oldest first. Published benchmarks of other engines used 10.7.5, which was never put on Maven Central
/// (10.6.2 is the last one before it), 10.10.1 and 11.1.1.
pub const VERSIONS: [Version; 4] = [
    Version {
        name: "10.6.2",
        bytes: 62_841_141,
        sha256: "b8cd69e581964e46e8dbc75d287352d2be81c3339822ae18d82f1d13fecf1cd2",
    },
    Version {
        name: "10.10.1",
        bytes: 83_615_428,
        sha256: "3e3c9e439b89c2ac4aaa7512bc73052d44b3a6397daed6cb88168cefa6e431a9",
    },
    Version {
        name: "11.1.1",
        bytes: 87_230_849,
        sha256: "71353febb7196261d6204d0f606e365e78009aaf014580a2f91d3a9a2d7d982e",
    },
    Version {
        name: "11.8.1",
        bytes: 91_919_284,
        sha256: "628ed387887f4a431df480857954df2a28b4389bfe24858ccdec611cabf65dbf",
    },
];

/// The version meant where none is named: the newest.
pub const DEFAULT: &Version = &VERSIONS[VERSIONS.len() - 1];

/// The version of that number.
pub fn known(name: &str) -> Result<&'static Version> {
    VERSIONS.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<&str> = VERSIONS.iter().map(|v| v.name).collect();
        format!("the lab knows no RocksDB {name}, only {}; --rocksdb-lib FILE takes any", names.join(", "))
    })
}

/// The versions that a run of these engines needs; `given` stands in for the default one.
pub fn wanted<'a>(engines: impl IntoIterator<Item = &'a str>, given: bool) -> Vec<&'static Version> {
    let mut found: Vec<&Version> = Vec::new();
    for name in engines {
        let version = match name.split_once('@') {
            Some((way, version)) if way.starts_with("rocksdb") => known(version).ok(),
            None if name.starts_with("rocksdb") && !given => Some(DEFAULT),
            _ => None,
        };
        found.extend(version.filter(|v| !found.contains(v)));
    }
    found
}

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

impl Version {
    /// Where the fetched library is, or would be.
    pub fn path(&self) -> PathBuf {
        cache_dir().join(format!("librocksdb-{}-{}.so", self.name, std::env::consts::ARCH))
    }

    fn url(&self) -> String {
        let v = self.name;
        format!("https://repo1.maven.org/maven2/org/rocksdb/rocksdbjni/{v}/rocksdbjni-{v}.jar")
    }
}

/// The library to load, if it is here: that of a version or, without one, the given or the default one.
pub fn library(version: Option<&str>, given: Option<&Path>) -> Result<PathBuf> {
    let version = match (version, given) {
        (Some(version), _) => known(version)?,
        (None, None) => DEFAULT,
        (None, Some(path)) if path.is_file() => return Ok(path.into()),
        (None, Some(path)) => return Err(format!("{} is not a file", path.display())),
    };
    let path = version.path();
    if path.is_file() {
        return Ok(path);
    }
    let mb = version.bytes / 1_000_000;
    Err(format!(
        "the library of version {} is not here: run `halobench setup` (a download of {mb} MB), or pass \
         --rocksdb-lib FILE",
        version.name
    ))
}

/// Fetches a version's library unless it is here; `progress` is told bytes done and bytes in all.
pub fn fetch(version: &Version, progress: &mut dyn FnMut(u64, u64)) -> Result<PathBuf> {
    let path = version.path();
    if path.is_file() {
        return Ok(path);
    }
    let member =
        member().ok_or("the rocksdbjni package has no library for this platform; pass --rocksdb-lib FILE")?;
    let jar = download(version, progress)?;
    let library = unpack(&jar, member)?;
    store(&path, &library)?;
    Ok(path)
}

/// The package's bytes, once their digest is right.
fn download(version: &Version, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<u8>> {
    let url = version.url();
    let failed = |e: &dyn std::fmt::Display| format!("fetching {url}: {e}");
    let response = agent().get(&url).call().map_err(|e| failed(&e))?;
    let total = response.body().content_length().unwrap_or(version.bytes);
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
    if found != version.sha256 {
        return Err(format!("{url}: its SHA-256 is {found}, not {}; nothing was kept", version.sha256));
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
        assert!(library(None, Some(Path::new("/nonexistent.so"))).unwrap_err().contains("is not a file"));
    }

    #[test]
    fn an_unknown_version_is_told_with_the_known_ones() {
        let words = library(Some("10.7.5"), None).unwrap_err();
        assert!(words.contains("10.7.5") && words.contains(DEFAULT.name), "{words}");
    }

    #[test]
    fn only_what_is_named_is_fetched() {
        let names = |engines: &[&str], given| -> Vec<&str> {
            wanted(engines.iter().copied(), given).iter().map(|v| v.name).collect()
        };
        assert_eq!(names(&["halocline", "lmdb"], false), [""; 0]);
        assert_eq!(names(&["rocksdb", "rocksdb-blob"], false), [DEFAULT.name]);
        assert_eq!(names(&["rocksdb", "rocksdb-default@10.6.2"], false), [DEFAULT.name, "10.6.2"]);
        assert_eq!(names(&["rocksdb", "rocksdb@10.6.2"], true), ["10.6.2"], "the given library is there");
        assert_eq!(names(&["rocksdb@1.2.3", "other@10.6.2"], false), [""; 0]);
    }

    #[test]
    fn every_version_is_pinned() {
        for v in &VERSIONS {
            assert!(v.sha256.len() == 64 && v.sha256.bytes().all(|b| b.is_ascii_hexdigit()), "{}", v.name);
            assert!(v.bytes > 10_000_000, "{}", v.name);
        }
    }
}
