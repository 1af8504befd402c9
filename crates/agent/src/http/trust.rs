//! Whose certificates are trusted, and what a person is told where one is not.

use super::certificate::certificates;
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where distributions keep the certificates of the CAs that they trust.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How to speak TLS with servers: trusting the CAs in this file alone, or those that this host trusts.
pub(super) fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = match ca {
        Some(file) => roots(file)?,
        None => of_host()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Bundles hold some in forms that nobody reads any more.
    let (taken, _) = roots.add_parsable_certificates(certificates(file)?);
    if taken == 0 {
        return Err(format!("{} holds no certificate that can be read", file.display()));
    }
    Ok(roots)
}

fn of_host() -> Result<RootCertStore, String> {
    let bundles = BUNDLES.map(PathBuf::from);
    let found = bundles.iter().find(|file| file.exists());
    let file = found.ok_or("this host has no file of trusted CAs; name one with --ca")?;
    roots(file)
}

/// The next action after an error of TLS; `host` is the name that was asked for.
pub(super) fn words(error: &Error, host: &str) -> String {
    match error {
        Error::InvalidMessage(_) => "it does not speak TLS there; http:// asks without".to_owned(),
        Error::AlertReceived(alert) => format!("it refuses: {alert:?}"),
        Error::InvalidCertificate(error) => of_certificate(error, host),
        other => format!("TLS: {other}"),
    }
}

fn of_certificate(error: &CertificateError, host: &str) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer | E::BadSignature => {
            "its certificate is of no CA that is trusted; name the file of its CA with --ca".into()
        }
        E::NotValidForName => {
            format!("its certificate is not for {host}; --server-name says for which name it is")
        }
        E::NotValidForNameContext { presented, .. } => format!(
            "its certificate is for {} and not for {host}; --server-name says for which name it is",
            if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") }
        ),
        E::Expired | E::ExpiredContext { .. } => {
            "its certificate has expired; renew it, or set this host's clock".to_owned()
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "its certificate is not valid yet; see its dates and this host's clock".to_owned()
        }
        // The word of the library that checks chains, which has no type here.
        E::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of a CA itself; make one with basicConstraints=CA:FALSE".into()
        }
        other => format!("its certificate is not accepted: {other:?}"),
    }
}
