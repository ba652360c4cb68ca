//! Compiles the lab's shim against the user's SplinterDB.

use super::super::Result;
use super::super::rocksdb::fetch::cache_dir;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

const SHIM: &str = include_str!("shim.c");

/// Names that only some commits of SplinterDB have, in the order in which sets of them are tried.
const TRIALS: [&[&str]; 4] =
    [&["-DHB_REGISTER", "-DHB_COMPARISON"], &["-DHB_REGISTER"], &["-DHB_COMPARISON"], &[]];

const MISSING: &str = "its library is not here, and there is no package: build github.com/vmware/splinterdb (it needs \
                       libaio, libconfig and libxxhash), and name it with SPLINTERDB_LIB=.../libsplinterdb.so";

/// The compiled shim.
pub fn library() -> Result<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let library = var("SPLINTERDB_LIB").ok_or(MISSING)?;
    let include = var("SPLINTERDB_INCLUDE").map_or_else(|| beside(&library), Ok)?;
    compiled(&library, &include, &cache_dir())
}

/// The folder of the headers, looked for in the folders above the library: `build/release/lib` or `lib` lies beside it.
pub fn beside(library: &Path) -> Result<PathBuf> {
    let path = library.canonicalize().map_err(|e| format!("SPLINTERDB_LIB={}: {e}", library.display()))?;
    path.ancestors()
        .skip(1)
        .map(|dir| dir.join("include"))
        .find(|dir| dir.join("splinterdb/splinterdb.h").is_file())
        .ok_or_else(|| {
            format!(
                "no include/splinterdb/splinterdb.h near {}: name the folder that holds splinterdb/splinterdb.h with \
                 SPLINTERDB_INCLUDE",
                path.display()
            )
        })
}

/// The shim for a library and its headers, from the cache folder or compiled into it.
pub fn compiled(library: &Path, include: &Path, cache: &Path) -> Result<PathBuf> {
    let library = library.canonicalize().map_err(|e| format!("SPLINTERDB_LIB={}: {e}", library.display()))?;
    let path = cache.join(format!("splinterdb-shim-{}.so", state(&library, include)?));
    if path.is_file() {
        return Ok(path);
    }
    let failed = |e: std::io::Error| format!("compiling SplinterDB's shim in {}: {e}", cache.display());
    std::fs::create_dir_all(cache).map_err(failed)?;
    let dir = tempfile::tempdir_in(cache).map_err(failed)?;
    let (source, out) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
    std::fs::write(&source, SHIM).map_err(failed)?;
    let compiler = std::env::var_os("CC").filter(|v| !v.is_empty()).unwrap_or_else(|| "cc".into());
    let folder = library.parent().unwrap_or(Path::new("/"));
    let mut words = String::new();
    for macros in TRIALS {
        let done = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-Werror=implicit-function-declaration"])
            .arg("-Werror=incompatible-pointer-types")
            .args(macros)
            .arg("-I")
            .arg(include)
            .arg(&source)
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", folder.display()))
            .arg("-o")
            .arg(&out)
            .output()
            .map_err(|e| format!("SplinterDB's shim needs a C compiler: {}: {e}", compiler.display()))?;
        if done.status.success() {
            // Whole or not at all, whoever else compiles it too.
            std::fs::rename(&out, &path).map_err(failed)?;
            return Ok(path);
        }
        words = String::from_utf8_lossy(&done.stderr).into_owned();
    }
    let line = words.lines().find(|l| l.contains("error")).unwrap_or("it did not say why").to_string();
    Err(format!("SplinterDB's shim does not compile against {}: {line}", include.display()))
}

/// Names the state of what is compiled.
fn state(library: &Path, include: &Path) -> Result<String> {
    let failed = |e: std::io::Error| format!("reading {}: {e}", library.display());
    let meta = library.metadata().map_err(failed)?;
    let mut digest = Sha256::new();
    digest.update(SHIM);
    digest.update(format!("{library:?} {include:?} {} {:?}", meta.len(), meta.modified().map_err(failed)?));
    Ok(digest.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect())
}
