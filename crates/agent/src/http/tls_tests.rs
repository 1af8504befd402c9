//! The server and the client of this crate, speaking TLS with each other.

use super::answer::{Access, Answer};
use super::certificate::Tls;
use super::client::{Bounds, Client};
use super::server::{self, Server};
use crate::published::Published;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const PATIENT: Bounds = Bounds::within(Duration::from_secs(30));

/// A CA and the files of a server.
struct Files {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    /// The files of a server with these names.
    fn of(names: &[&str]) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap(), authority: authority() };
        files.issue(&params(names));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the server's files, as managers of certificates do, by ones of this CA.
    fn issue(&self, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        self.replace("ca.crt", &self.authority.pem());
        self.replace("tls.crt", &certificate.pem());
        self.replace("tls.key", &key.serialize_pem());
    }

    fn replace(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.path(name)).unwrap();
    }

    fn tls(&self) -> Tls {
        Tls::read(&self.path("tls.crt"), &self.path("tls.key")).unwrap()
    }

    fn client(&self) -> Client {
        Client::default().trusting(&self.path("ca.crt")).unwrap()
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = params(&[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap()
}

fn start(tls: Tls, access: Access) -> SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap().with_tls(tls);
    let address = server.address();
    let published = Arc::new(Published::new("metrics\n".to_owned()));
    server.start(published, access, Duration::from_secs(60)).unwrap();
    address
}

/// The metrics, or why there are none.
fn asked(client: &Client, address: SocketAddr) -> String {
    let told = client.ask(&format!("https://{address}"), "/metrics", PATIENT);
    told.unwrap_or_else(|error| error.to_string())
}

#[test]
fn metrics_come_by_tls_with_a_token() {
    let files = Files::of(&["127.0.0.1"]);
    let access = Access { token: Some("secret".to_owned()) };
    let address = start(files.tls(), access);
    assert!(asked(&files.client(), address).contains("answers 401"));
    let known = Client::new(Some("secret".to_owned())).trusting(&files.path("ca.crt")).unwrap();
    assert_eq!(asked(&known, address), "metrics\n");
}

#[test]
fn a_certificate_that_is_not_trusted_says_which_file_or_name_is_missing() {
    let files = Files::of(&["db.example"]);
    let address = start(files.tls(), Access::default());
    let error = asked(&files.client(), address);
    assert!(error.contains("db.example") && error.contains("--server-name"), "{error}");
    let named = files.client().expecting("db.example").unwrap();
    assert_eq!(asked(&named, address), "metrics\n");
    let other = Files::of(&["db.example"]);
    let error = asked(&other.client().expecting("db.example").unwrap(), address);
    assert!(error.contains("of no CA that is trusted") && error.contains("--ca"), "{error}");
    let mut old = params(&["db.example"]);
    (old.not_before, old.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    files.issue(&old);
    let error = asked(&named, address);
    assert!(error.contains("has expired"), "{error}");
    let mut itself = params(&["db.example"]);
    itself.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    files.issue(&itself);
    let error = asked(&named, address);
    assert!(error.contains("CA:FALSE"), "{error}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
fn files_that_are_replaced_are_read_again_and_wrong_ones_are_not_used() {
    let mut files = Files::of(&["127.0.0.1"]);
    let tls = files.tls();
    let address = start(tls.clone(), Access::default());
    let before = files.client();
    assert_eq!(asked(&before, address), "metrics\n");
    files.authority = authority();
    files.issue(&params(&["127.0.0.1"]));
    let after = files.client();
    assert_eq!(asked(&after, address), "metrics\n");
    assert!(asked(&before, address).contains("--ca"), "it is another certificate");
    let key = fs::read_to_string(files.path("tls.key")).unwrap();
    files.replace("tls.key", &KeyPair::generate().unwrap().serialize_pem());
    assert_eq!(asked(&after, address), "metrics\n", "the one before is still used");
    assert!(tls.trouble().unwrap().contains("is no key of"), "{:?}", tls.trouble());
    files.replace("tls.key", &key);
    assert_eq!((asked(&after, address).as_str(), tls.trouble()), ("metrics\n", None));
}

#[test]
fn files_that_are_none_are_named() {
    let files = Files::of(&["db"]);
    let refused = |certificate: &str, key: &str| {
        Tls::read(&files.path(certificate), &files.path(key)).unwrap_err()
    };
    assert!(refused("none.crt", "tls.key").contains("none.crt"));
    assert!(refused("tls.key", "tls.key").contains("holds no certificate"));
    assert!(refused("tls.crt", "tls.crt").contains("holds no private key"));
    assert!(refused("ca.crt", "tls.key").contains("is no key of"));
    files.replace("ca.crt", "no PEM");
    let error = Client::default().trusting(&files.path("ca.crt")).err().unwrap();
    assert!(error.contains("holds no certificate"), "{error}");
    assert!(Client::default().expecting("a b").is_err());
}

#[test]
fn without_tls_it_answers_its_own_host_and_tells_others_how_to_ask() {
    let files = Files::of(&["127.0.0.1"]);
    let tls = files.tls();
    let of = |peer: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let (stream, _) = listener.accept().unwrap();
        let to = |_: super::answer::Request| Answer::text(200, "told");
        server::serve(&stream, peer.parse().unwrap(), Some(&tls), &to);
        drop(stream);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    };
    assert!(of("127.0.0.1").ends_with("\r\n\r\ntold\n"));
    let other = of("192.0.2.1");
    assert!(other.starts_with("HTTP/1.1 400 ") && other.contains("ask https://"), "{other}");
}

#[test]
fn handshakes_that_never_end_keep_nobody_out() {
    let files = Files::of(&["127.0.0.1"]);
    let address = start(files.tls(), Access::default());
    let slow: Vec<TcpStream> = (0..48)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"\x16\x03\x01").unwrap();
            stream
        })
        .collect();
    assert_eq!(asked(&files.client(), address), "metrics\n");
    drop(slow);
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(&[0x16; 3000]).unwrap();
    let mut answer = Vec::new();
    let _ = garbage.read_to_end(&mut answer);
    assert!(answer.len() < 100, "an alert at most");
    assert_eq!(asked(&files.client(), address), "metrics\n");
}
