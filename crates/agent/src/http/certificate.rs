//! The agent's certificate and key: read from files, and again when these change.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest file of certificates that is read, bytes: a bundle of all public CAs has some 250 KiB.
const LARGEST: u64 = 4 << 20;

/// How a server speaks TLS.
#[derive(Debug, Clone)]
pub struct Tls {
    certificate: Arc<Certificate>,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads a certificate, with those of intermediate CAs after it, and its key; both are PEM files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, String> {
        let files = [certificate.to_owned(), key.to_owned()];
        let stamps = stamps(&files)?;
        let known = Known { key: Arc::new(load(&files)?), stamps, trouble: None };
        let certificate = Arc::new(Certificate { files, known: Mutex::new(known) });
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::clone(&certificate) as _);
        // Scrapers come once a minute: nothing is kept between their connections.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { certificate, config: Arc::new(config) })
    }

    /// Why files that changed are not used, where that is so: those before them still are.
    pub fn trouble(&self) -> Option<String> {
        self.certificate.known().trouble.clone()
    }

    /// A connection that the other end has to begin.
    pub(super) fn connection(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config))
    }
}

/// The files, and what was read of them.
#[derive(Debug)]
struct Certificate {
    /// The certificate's and the key's.
    files: [PathBuf; 2],
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    key: Arc<CertifiedKey>,
    stamps: [Stamp; 2],
    trouble: Option<String>,
}

impl Certificate {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of the files as they are now. Where they are not whole yet, or wrong, it is the one before.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut known = self.known();
        let now = stamps(&self.files);
        if now.as_ref() != Ok(&known.stamps) {
            match now.and_then(|stamps| Ok((stamps, load(&self.files)?))) {
                Ok((stamps, key)) => *known = Known { key: Arc::new(key), stamps, trouble: None },
                Err(why) => known.trouble = Some(why),
            }
        }
        Arc::clone(&known.key)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// The identity of a file's content: device, inode, length and time of the last write. A file that replaces it has
/// another.
type Stamp = (u64, u64, u64, i64, i64);

fn stamps(files: &[PathBuf; 2]) -> Result<[Stamp; 2], String> {
    let stamp = |file: &PathBuf| -> Result<Stamp, String> {
        let meta = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok((meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
    };
    let [certificate, key] = files;
    Ok([stamp(certificate)?, stamp(key)?])
}

fn load([certificate, key]: &[PathBuf; 2]) -> Result<CertifiedKey, String> {
    let chain = certificates(certificate)?;
    let der = PrivateKeyDer::from_pem_slice(&bytes(key)?).map_err(|_| {
        format!("{} holds no private key in PEM form; an encrypted one is not read", key.display())
    })?;
    CertifiedKey::from_der(chain, der, &ring::default_provider()).map_err(|error| {
        format!("{} is no key of {}: {error}", key.display(), certificate.display())
    })
}

/// The certificates in a PEM file, one at least.
pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = bytes(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if all.is_empty() => {
            Err(format!("{} holds no certificate in PEM form", file.display()))
        }
        Ok(all) => Ok(all),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut bytes = Vec::new();
    let open = File::open(file).map_err(failed)?;
    open.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("{} is larger than {} MiB", file.display(), LARGEST >> 20));
    }
    Ok(bytes)
}
