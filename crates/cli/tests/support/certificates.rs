//! Certificates that are made when a test runs.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// CAs, and the files of an agent on loopback.
pub struct Certificates {
    folder: tempfile::TempDir,
    authorities: Vec<CertifiedIssuer<'static, KeyPair>>,
}

impl Certificates {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), authorities: Vec::new() }
    }

    /// A file's path.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Replaces the agent's files by ones of another CA. `all.crt` has each CA so far, `last.crt` this one.
    pub fn renew(&mut self) {
        let mut of_authority = CertificateParams::new(Vec::new()).unwrap();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = || KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(of_authority, key()).unwrap();
        let own = key();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&own, &authority).unwrap();
        let last = authority.pem();
        self.authorities.push(authority);
        let all: String = self.authorities.iter().map(CertifiedIssuer::pem).collect();
        for (name, text) in [
            ("all.crt", all),
            ("last.crt", last),
            ("tls.crt", certificate.pem()),
            ("tls.key", own.serialize_pem()),
        ] {
            let draft = self.path("draft");
            std::fs::write(&draft, text).unwrap();
            std::fs::rename(draft, self.path(name)).unwrap();
        }
    }
}
