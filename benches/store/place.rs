//! Where the databases of a measurement lie, and how one is opened.

use std::path::{Path, PathBuf};

use vocative_contract::identity::Platform;
use vocative_core::ids::AccountId;
use vocative_store::contract::AccountBinding;
use vocative_store::{Store, StoreOptions};

use crate::Fail;

/// The default of the configuration.
pub(crate) const PAGE_CACHE_KIB: u32 = 8_192;

/// A folder for databases, on the disk of the build; gone at the end.
pub(crate) struct BenchFolder(PathBuf);

impl BenchFolder {
    pub(crate) fn make(name: &str) -> Result<Self, Fail> {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens a durable store as the daemon does, with an account in it.
pub(crate) async fn open(path: &Path) -> Result<(Store, AccountId), Fail> {
    let options = StoreOptions {
        path: Some(path.to_owned()),
        readers: 2,
        page_cache_kib: PAGE_CACHE_KIB,
    };
    let (store, _) = Store::open(&options, 0)?;
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, 0).await?;
    Ok((store, account))
}

/// Bytes of a database with its write-ahead log.
pub(crate) fn bytes_of(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    size(path) + size(Path::new(&log))
}
