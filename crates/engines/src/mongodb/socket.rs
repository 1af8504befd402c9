//! What a MongoDB server tells everyone who connects: which version it is of.

use super::{version, wire};
use crate::answer::{Answer, converse};
use crate::endpoint::{Endpoint, Stream};
use std::io::{Error, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use untax_core::Reading::{self, Denied, Failed, Present};

/// `hello` is new in 4.4; servers before it know the other name alone.
const GREETINGS: [&str; 2] = ["hello", "isMaster"];

pub(super) fn ask(endpoint: &Endpoint) -> Reading<Answer> {
    converse(async {
        let answer = match endpoint.entry.connect().await {
            Ok(stream) => talk(stream).await,
            Err(error) => Err(error),
        };
        answer.map_or_else(|error| words(&error), Present)
    })
}

/// Which version it is of, as it says itself, or as its protocol tells where it says so after a login
/// alone.
async fn talk(mut server: Box<dyn Stream>) -> Result<Answer, Error> {
    let mut highest = None;
    for greeting in GREETINGS {
        if highest.is_none() {
            let reply = command(&mut server, greeting).await?;
            highest = wire::number(&reply, "maxWireVersion");
        }
    }
    let Some(highest) = highest else {
        return Err(Error::new(ErrorKind::InvalidData, "it does not answer as MongoDB does"));
    };
    let build = command(&mut server, "buildInfo").await;
    let told = build.ok().and_then(|reply| wire::text(&reply, "version").map(str::to_owned));
    Ok(Answer {
        version: Some(told.unwrap_or_else(|| version::by_wire(highest))),
        ..Answer::default()
    })
}

async fn command(server: &mut Box<dyn Stream>, name: &str) -> Result<Vec<u8>, Error> {
    server.write_all(&wire::command(name)).await?;
    let mut header = [0; wire::HEADER];
    server.read_exact(&mut header).await?;
    let Some(length) = wire::body_length(&header) else {
        return Err(Error::new(ErrorKind::InvalidData, "its answer has an unexpected form"));
    };
    let mut body = vec![0; length];
    server.read_exact(&mut body).await?;
    Ok(body.split_off(wire::BEFORE_DOCUMENT.min(length)))
}

fn words(error: &Error) -> Reading<Answer> {
    let words = format!("asking the server: {error}");
    match error.kind() {
        ErrorKind::PermissionDenied => Denied(words),
        _ => Failed(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Entry, Hints};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Asks a server that answers each command with the document for its name; one that is missing ends
    /// the connection.
    fn asked(replies: &'static [(&'static str, Vec<u8>)]) -> Reading<Answer> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            loop {
                let mut header = [0; wire::HEADER];
                if client.read_exact(&mut header).is_err() {
                    return;
                }
                let mut body = vec![0; wire::body_length(&header).unwrap()];
                client.read_exact(&mut body).unwrap();
                let is_for = |name: &str| {
                    let document = &body[wire::BEFORE_DOCUMENT..];
                    wire::number(document, name) == Some(1)
                };
                let Some((_, document)) = replies.iter().find(|(name, _)| is_for(name)) else {
                    return;
                };
                client.write_all(&wire::message(document)).unwrap();
            }
        });
        let (user, hints) = (String::new(), Hints::default());
        let answer = ask(&Endpoint { user, entry: Entry::Tcp(address), timing: false, hints });
        server.join().unwrap();
        answer
    }

    fn version(replies: Vec<(&'static str, Vec<u8>)>) -> Option<String> {
        asked(Vec::leak(replies)).into_value()?.version
    }

    fn document(elements: &[Vec<u8>]) -> Vec<u8> {
        wire::document(&elements.concat())
    }

    #[test]
    fn a_server_tells_its_version_without_a_password() {
        let hello = document(&[
            wire::text_element("setName", "rs0"),
            wire::number_element("maxWireVersion", 25),
        ]);
        let build = document(&[wire::text_element("version", "8.0.4")]);
        let refused = document(&[wire::number_element("ok", 0)]);
        assert_eq!(
            version(vec![("hello", hello.clone()), ("buildInfo", build)]).as_deref(),
            Some("8.0.4")
        );
        assert_eq!(
            version(vec![("hello", hello.clone()), ("buildInfo", refused.clone())]).as_deref(),
            Some("8.0")
        );
        assert_eq!(version(vec![("hello", hello)]).as_deref(), Some("8.0"), "it ends it there");
        let old = document(&[wire::number_element("maxWireVersion", 8)]);
        assert_eq!(version(vec![("hello", refused), ("isMaster", old)]).as_deref(), Some("4.2"));
    }

    #[test]
    fn another_program_is_no_mongodb() {
        let other = || document(&[wire::text_element("msg", "what?")]);
        let said = asked(Vec::leak(vec![("hello", other()), ("isMaster", other())]));
        assert!(matches!(&said, Failed(why) if why.contains("as MongoDB does")), "{said:?}");
    }
}
