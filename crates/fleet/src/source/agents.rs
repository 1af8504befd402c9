//! Agents themselves, one after the other, without a store: rates since each was started.

use super::error::FleetError;
use crate::row::{Row, Rows};
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use untax_agent::{Bounds, Client};

/// An agent tells 2 MiB of 50 databases. 64 that answer without end at once take 256 MiB.
const BOUNDS: Bounds = Bounds::within(Duration::from_secs(10)).at_most_mib(4);

/// Agents that are asked at once.
const AT_ONCE: usize = 64;

/// Asks the agents at these addresses, each `HOST:PORT`, or `https://HOST:PORT` where it speaks TLS.
pub fn agents(addresses: &[String], client: &Client) -> Result<Rows, FleetError> {
    let mut rows = Rows { source: format!("{} agents", addresses.len()), ..Rows::default() };
    rows.now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    for some in addresses.chunks(AT_ONCE) {
        for (address, answer) in answers(some, client) {
            if let Err(why) = answer.and_then(|text| take(&mut rows, &text)) {
                rows.unreachable.push((address, why));
            }
        }
    }
    if rows.ended.is_empty() && rows.active.is_empty() && rows.nodes.is_empty() {
        let why = |(address, why): &(String, String)| format!("{address}: {why}");
        let first =
            rows.unreachable.first().map_or_else(|| "they tell nothing yet".to_owned(), why);
        return Err(FleetError::NoneAnswers(first));
    }
    Ok(rows)
}

fn answers(addresses: &[String], client: &Client) -> Vec<(String, Result<String, String>)> {
    let (sender, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for address in addresses {
            let sender = sender.clone();
            scope.spawn(move || {
                let answer = client.ask(&base(address), "/metrics", BOUNDS);
                let _ = sender.send((address.clone(), answer.map_err(|error| error.to_string())));
            });
        }
        drop(sender);
        let mut all: Vec<_> = answers.into_iter().collect();
        all.sort();
        all
    })
}

fn base(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

/// Takes the text of one agent in. Where all that it saw was beside a trial there is nothing to take.
pub(super) fn take(rows: &mut Rows, text: &str) -> Result<(), String> {
    let all: Vec<(&str, Row)> = text.lines().filter_map(series).collect();
    let of = |name: &'static str| {
        all.iter().filter(move |(known, _)| *known == name).map(|(_, row)| row)
    };
    let number = |name| of(name).next().map(|row| row.value);
    let checked = of("untax_agent_windows_total").find(|row| row.label("result") == "checked");
    let lasted_s = checked.map_or(0.0, |row| row.value)
        * number("untax_agent_window_seconds").unwrap_or_default();
    let beside = of("untax_agent_beside_trial").next();
    if let Some(row) = beside.filter(|_| lasted_s <= 0.0) {
        let command = row.label("command");
        return Err(format!("untax {command} runs there, so that taxes are not told; ask later"));
    }
    let rate = |row: &Row| Row { value: row.value / lasted_s, ..row.clone() };
    if lasted_s > 0.0 {
        rows.taxes.extend(of("untax_tax_seconds_total").map(rate));
        rows.active.extend(of("untax_database_active_seconds_total").map(rate));
    }
    rows.unmeasured.extend(of("untax_unmeasured").cloned());
    rows.ended.extend(of("untax_agent_last_window_timestamp_seconds").cloned());
    rows.nodes.extend(of("untax_node_info").cloned());
    Ok(())
}

/// A line of the text: the name and the row; `None` for comments and what is no series.
fn series(line: &str) -> Option<(&str, Row)> {
    if line.starts_with('#') {
        return None;
    }
    let open = line.find('{');
    let (name, labels, rest) = match open {
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, BTreeMap::new(), rest)
        }
        Some(open) => {
            let (labels, rest) = labels(&line[open + 1..])?;
            (&line[..open], labels, rest)
        }
    };
    let value = rest.split_whitespace().next()?.parse::<f64>().ok()?;
    value.is_finite().then_some((name, Row { labels, value }))
}

/// Labels up to the closing brace, and what follows it.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut all = BTreeMap::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((all, after));
        }
        rest = rest.strip_prefix(',').unwrap_or(rest);
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, letter) => value.push(letter),
            }
        };
        all.insert(name.to_owned(), value);
        rest = &quoted[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn labels_with_quotes_newlines_and_unicode_are_read() {
        let (name, row) = series(r#"a_b{x="1\"}\n\\é",y=""} 2.5"#).unwrap();
        assert_eq!((name, row.label("x"), row.label("y")), ("a_b", "1\"}\n\\é", ""));
        assert!((row.value - 2.5).abs() < 1e-9);
        assert_eq!(series("plain 1").unwrap().0, "plain");
        for other in ["# HELP a b", "", "a{x=\"", "a{x} 1", "a NaN", "a"] {
            assert_eq!(series(other), None, "{other}");
        }
    }

    #[test]
    fn rates_are_over_the_life_of_an_agent() {
        let mut rows = Rows::default();
        take(
            &mut rows,
            "untax_agent_windows_total{node=\"a\",result=\"checked\"} 10\n\
             untax_agent_window_seconds{node=\"a\"} 60\n\
             untax_database_active_seconds_total{node=\"a\",database=\"x\"} 1200\n",
        )
        .unwrap();
        assert!((rows.active[0].value - 2.0).abs() < 1e-9);
        let mut young = Rows::default();
        take(&mut young, "untax_database_active_seconds_total{node=\"a\",database=\"x\"} 1200\n")
            .unwrap();
        assert!(young.active.is_empty(), "no window, no rate");
    }

    #[test]
    fn an_agent_that_saw_nothing_but_a_trial_tells_no_rates() {
        let beside = "untax_agent_beside_trial{node=\"a\",command=\"bench\"} 1\n\
                      untax_agent_last_window_timestamp_seconds{node=\"a\"} 9\n";
        let mut rows = Rows::default();
        let why = take(&mut rows, beside).unwrap_err();
        assert!(why.contains("untax bench") && rows == Rows::default(), "{why}");
        let earlier = "untax_agent_windows_total{node=\"a\",result=\"checked\"} 10\n\
                       untax_agent_window_seconds{node=\"a\"} 60\n";
        assert_eq!(take(&mut rows, &format!("{earlier}{beside}")), Ok(()));
    }

    /// Serves every connection by `serve` in threads of its own.
    fn server(serve: impl Fn(TcpStream) + Send + Copy + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream));
            }
        });
        address
    }

    #[test]
    fn agents_that_answer_without_end_are_silent_and_others_are_told() {
        let endless = server(|mut stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'a'; 8 << 10]).is_ok() {}
        });
        let honest = server(|mut stream| {
            let _ = stream.read(&mut [0; 1024]);
            let text = "untax_agent_last_window_timestamp_seconds{node=\"a\"} 9\n";
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{text}").as_bytes());
        });
        let rows = agents(&[endless.clone(), honest], &Client::default()).unwrap();
        assert_eq!(rows.ended.len(), 1);
        let [(address, why)] = &rows.unreachable[..] else { panic!("{:?}", rows.unreachable) };
        assert!(*address == endless && why.contains("more than 4 MiB"), "{why}");
    }
}
