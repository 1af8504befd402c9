use super::message::{Answer, Kind, Question};
use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;

const PATIENCE: Duration = Duration::from_secs(20);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn question(kind: Kind) -> Question {
    Question { id: 7, name: name("db.example.com"), kind }
}

/// A record whose name is that of the question: the pointer leads to it.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let head = [0xc0, 12, 0, kind as u8, 0, 1, 0, 0, 0, 60, 0, data.len() as u8];
    [&head[..], data].concat()
}

/// The answer to a message, with these flags and records.
fn answer_to(message: &[u8], flags: [u8; 2], records: &[Vec<u8>]) -> Vec<u8> {
    let mut answer = message.to_vec();
    answer[2..4].copy_from_slice(&flags);
    answer[7] = records.len() as u8;
    answer.extend(records.concat());
    answer
}

const FINE: [u8; 2] = [0x81, 0x80];
const TRUNCATED: [u8; 2] = [0x83, 0x80];
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];
const REFUSED: [u8; 2] = [0x81, 0x85];

fn v4(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

#[test]
fn names_are_bounded_and_without_surprises() {
    for good in ["a", "A.b-c_d", "x.", &"a".repeat(63)] {
        assert!(Name::new(good).is_some(), "{good}");
    }
    let long = vec!["a".repeat(63); 4].join(".");
    for bad in ["", ".", "a..b", "a b", "é", "a\n", "a/b", &"a".repeat(64), &long] {
        assert!(Name::new(bad).is_none(), "{bad}");
    }
    assert_eq!(name("A.B.").text(), "a.b");
}

#[test]
fn the_file_of_hosts_is_read_with_aliases_and_comments() {
    let text = "# db\n10.0.0.1 other db.local # db.local\n::1 DB\n10.0.0.9 db\tdb2.\nx db\n";
    assert_eq!(hosts::addresses(text, &name("db")), [v4(9), Ipv6Addr::LOCALHOST.into()]);
    assert_eq!(hosts::addresses(text, &name("db2")), [v4(9)]);
    assert_eq!(hosts::addresses(text, &name("db.local")), [v4(1)]);
    assert!(hosts::addresses(text, &name("d")).is_empty());
}

#[test]
fn settings_are_those_of_the_file_within_bounds() {
    let settings = Settings::of(
        "# x\nnameserver 10.96.0.10\nnameserver fe80::1%eth0\nnameserver fd00::1\n\
         search a.svc b\nsearch default.svc.cluster.local svc.cluster.local\n\
         options ndots:5 timeout:0 attempts:99 edns0\n",
    );
    let servers: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.96.0.10:53", "[fd00::1]:53"]);
    assert_eq!((settings.timeout, settings.attempts), (Duration::from_secs(1), 5));
    let candidates = |text: &str| -> Vec<String> {
        settings.candidates(&name(text)).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        candidates("prometheus.monitoring"),
        [
            "prometheus.monitoring.default.svc.cluster.local",
            "prometheus.monitoring.svc.cluster.local",
            "prometheus.monitoring"
        ]
    );
    assert_eq!(candidates("prometheus."), ["prometheus"], "a whole name is not searched");
    assert_eq!(candidates("a.b.c.d.e.f")[0], "a.b.c.d.e.f");
    assert_eq!(Settings::of("").servers, ["127.0.0.1:53".parse().unwrap()]);
}

#[test]
fn an_answer_leads_from_alias_to_alias() {
    let question = question(Kind::A);
    let alias = record(5, b"\x03two\xc0\x0f"); // two.example.com
    let mut address = record(1, &[10, 0, 0, 1]);
    let at = 12 + 16 + 4 + 12; // header, question, head of the first record
    address[..2].copy_from_slice(&[0xc0, at]);
    let message = answer_to(&question.message(), FINE, &[alias.clone(), address]);
    assert_eq!(question.answer(&message), Some(Answer::Addresses(vec![v4(1)])));
    let circle = record(5, &[0xc0, 12]);
    let message = answer_to(&question.message(), FINE, &[circle]);
    assert_eq!(question.answer(&message), Some(Answer::Addresses(Vec::new())));
    let message = answer_to(&question.message(), FINE, &[alias]);
    assert_eq!(question.answer(&message), Some(Answer::Addresses(Vec::new())), "no address");
}

#[test]
fn what_is_no_answer_to_the_question_is_not_taken() {
    let question = question(Kind::A);
    let good = answer_to(&question.message(), FINE, &[record(1, &[10, 0, 0, 1])]);
    let with = |at: usize, byte: u8| {
        let mut message = good.clone();
        message[at] = byte;
        question.answer(&message)
    };
    assert_eq!(question.answer(&good), Some(Answer::Addresses(vec![v4(1)])));
    assert_eq!(with(1, 8), None, "another id");
    assert_eq!(with(2, 1), None, "a question");
    assert_eq!(with(13, b'x'), None, "another name");
    assert_eq!(with(13, b'D'), Some(Answer::Addresses(vec![v4(1)])), "the same in upper case");
    assert_eq!(with(29, 28), None, "another kind");
    assert_eq!(with(7, 2), None, "a record is missing");
    assert_eq!(with(43, 5), None, "an address of five bytes");
    // A pointer to itself, forwards, and of a kind that is not known.
    assert_eq!((with(33, 32), with(33, 40), with(32, 0x80)), (None, None, None));
    for (flags, answer) in [
        (TRUNCATED, Answer::Truncated),
        (NO_SUCH_NAME, Answer::NoSuchName),
        (REFUSED, Answer::Refusal(5)),
    ] {
        let message = answer_to(&question.message(), flags, &[]);
        assert_eq!(question.answer(&message), Some(answer));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600), text: String) {
        for kind in [Kind::A, Kind::Aaaa] {
            let _ = question(kind).answer(&bytes);
            // As one that passes the first looks: header and question are right.
            let message = [answer_to(&question(kind).message(), FINE, &[]), bytes.clone()].concat();
            let mut message = message;
            message[6..8].copy_from_slice(&[2, 255]);
            if let Some(Answer::Addresses(all)) = question(kind).answer(&message) {
                prop_assert!(all.len() <= 16);
            }
        }
        prop_assert!((1..=3).contains(&Settings::of(&text).servers.len()));
        let _ = (Name::new(&text), hosts::addresses(&text, &name("a")));
    }

    #[test]
    fn a_changed_answer_is_read_without_harm(at in 0_usize..72, byte: u8, cut in 0_usize..73) {
        let question = question(Kind::Aaaa);
        let records = [record(5, b"\x03two\xc0\x0f"), record(28, &[7; 16])];
        let mut message = answer_to(&question.message(), FINE, &records);
        message[at] = byte;
        let _ = question.answer(&message);
        message.truncate(cut);
        prop_assert_eq!(question.answer(&message).filter(|_| cut < 32), None);
    }
}

/// A server on loopback, by UDP and by TCP, that answers what `reply` makes of a message.
fn server(reply: impl Fn(&[u8], bool) -> Vec<Vec<u8>> + Send + Clone + 'static) -> SocketAddr {
    // A port that is free for both.
    let (udp, tcp) = std::iter::repeat_with(|| {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = TcpListener::bind(udp.local_addr().unwrap());
        Some((udp, tcp.ok()?))
    })
    .flatten()
    .next()
    .unwrap();
    let address = udp.local_addr().unwrap();
    let over_tcp = reply.clone();
    thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, client)) = udp.recv_from(&mut packet) {
            for message in reply(&packet[..length], false) {
                let _ = udp.send_to(&message, client);
            }
        }
    });
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut message).unwrap();
            for message in over_tcp(&message, true) {
                stream.write_all(&(message.len() as u16).to_be_bytes()).unwrap();
                stream.write_all(&message).unwrap();
            }
        }
    });
    address
}

fn looked_up(text: &str, servers: &[SocketAddr]) -> Result<Vec<IpAddr>, LookupError> {
    let mut settings = Settings::of("search example.com\n");
    settings.servers = servers.to_vec();
    look_up(text, String::new, || settings, Instant::now() + PATIENCE)
}

/// Whether a message asks for IPv4: its type is followed by its class alone.
fn is_v4(message: &[u8]) -> bool {
    message[message.len() - 3] == 1
}

/// Knows one name: an address of IPv4 and nothing else.
fn knows(message: &[u8], known: &str) -> Vec<Vec<u8>> {
    let asked = Question { id: 0, name: name(known), kind: Kind::A }.message();
    if message[12..message.len() - 4] != asked[12..asked.len() - 4] {
        return vec![answer_to(message, NO_SUCH_NAME, &[])];
    }
    let records = if is_v4(message) { vec![record(1, &[10, 0, 0, 1])] } else { Vec::new() };
    vec![answer_to(message, FINE, &records)]
}

#[test]
fn a_short_name_is_searched_and_forgeries_are_not_taken() {
    let server = server(|message, _| {
        let mut forged = answer_to(message, FINE, &[record(1, &[6, 6, 6, 6])]);
        forged[0] ^= 1;
        [vec![forged, vec![0; 5], Vec::new()], knows(message, "db.example.com")].concat()
    });
    assert_eq!(looked_up("DB", &[server]).unwrap(), [v4(1)]);
    let unknown = looked_up("none", &[server]).unwrap_err();
    assert_eq!(unknown, LookupError::Unknown { name: "none".to_owned(), server });
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_over_tcp() {
    let server = server(|message, over_tcp| {
        if over_tcp {
            knows(message, "db.example.com")
        } else {
            vec![answer_to(message, TRUNCATED, &[])]
        }
    });
    assert_eq!(looked_up("db.example.com", &[server]).unwrap(), [v4(1)]);
}

#[test]
fn the_next_server_is_asked_where_one_refuses_or_is_not_there() {
    let refuses = server(|message, _| vec![answer_to(message, REFUSED, &[])]);
    let answers = server(|message, _| knows(message, "db.example.com"));
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(looked_up("db", &[refuses, closed, answers]).unwrap(), [v4(1)]);
    let error = looked_up("db", &[refuses]).unwrap_err().to_string();
    assert!(
        error.contains("refuses to answer this host") && error.contains("/etc/resolv.conf"),
        "{error}"
    );
    let error = looked_up("db", &[closed]).unwrap_err().to_string();
    assert!(error.contains(&closed.to_string()) && error.contains("IP address"), "{error}");
}

#[test]
fn a_server_that_says_nothing_ends_the_look_up_at_its_deadline() {
    let silent = server(|_, _| Vec::new());
    let settings = || {
        let mut settings = Settings::of("search a b c\n");
        settings.servers = vec![silent];
        settings
    };
    let until = Instant::now() + Duration::from_millis(300);
    let error = look_up("db", String::new, settings, until).unwrap_err();
    assert!(matches!(error, LookupError::NoAnswer { why, .. } if why == "does not answer"));
}

#[test]
fn addresses_and_this_host_need_no_server() {
    let nobody = || panic!("a server is asked");
    let addresses = |text: &str| look_up(text, String::new, nobody, Instant::now()).unwrap();
    assert_eq!(addresses("10.0.0.1"), [v4(1)]);
    assert_eq!(addresses("[fd00::1]"), ["fd00::1".parse::<IpAddr>().unwrap()]);
    assert!(addresses("localhost")[0].is_loopback() && addresses("x.localhost.")[0].is_loopback());
    let listed = look_up("db", || "10.0.0.1 db".to_owned(), nobody, Instant::now());
    assert_eq!(listed.unwrap(), [v4(1)]);
    assert!(matches!(super::addresses("a b", PATIENCE), Err(LookupError::NotAName(_))));
}
