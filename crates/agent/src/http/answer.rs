//! The answer to a request, from the published texts.

use crate::exposition::CONTENT_TYPE;
use crate::published::Published;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The token that readers need.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What `Authorization: Bearer …` must hold for everything but health; `None` asks for nothing.
    pub token: Option<String>,
}

/// A token is no longer than this, bytes.
const LONGEST_TOKEN: usize = 4096;

/// Reads a token from the first line of a file.
pub fn read_token(path: &Path) -> Result<String, String> {
    // A file that a person names on the command line, and no part of the host that is looked at.
    #[expect(clippy::disallowed_methods, reason = "a file of the user's, not of the host")]
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: {error}; name a file with a token in it", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() || token.len() > LONGEST_TOKEN {
        return Err(format!("{} holds no token in its first line", path.display()));
    }
    Ok(token.to_owned())
}

/// A request, as far as it matters.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub authorization: Option<&'a [u8]>,
    /// Whether it comes from this machine's, or this pod's, own network.
    pub is_local: bool,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Arc<str>,
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Answer {
    /// A line of text.
    pub fn text(status: u16, line: &str) -> Self {
        Self { status, content_type: TEXT, body: format!("{line}\n").into() }
    }

    /// The words of a status.
    pub fn reason(&self) -> &'static str {
        match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        }
    }
}

/// Answers a request. `patience` is how long a window may take to end.
pub(super) fn answer(
    request: &Request,
    published: &Published,
    access: &Access,
    patience: Duration,
) -> Answer {
    if !["GET", "HEAD"].contains(&request.method) {
        return Answer::text(405, "only GET and HEAD are known here");
    }
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/healthz" => health(published, patience),
        "/readyz" if published.is_ready() => Answer::text(200, "ready"),
        "/readyz" => Answer::text(503, "no window is open yet"),
        "/metrics" | "/last" if !is_allowed(request, access) => {
            Answer::text(401, "Authorization: Bearer with this agent's token is needed")
        }
        "/metrics" => {
            let body = published.texts().metrics;
            Answer { status: 200, content_type: CONTENT_TYPE, body }
        }
        "/last" => last(request, published, access),
        "/" => Answer::text(200, "untax agent: /metrics /healthz /readyz /last"),
        _ => Answer::text(404, "unknown here: /metrics /healthz /readyz /last"),
    }
}

fn health(published: &Published, patience: Duration) -> Answer {
    let silent_for = published.silent_for();
    if silent_for > patience {
        let seconds = silent_for.as_secs();
        return Answer::text(503, &format!("no window ended for {seconds} s; restart the agent"));
    }
    Answer::text(200, "ok")
}

/// Whole checks say more of a host than metrics do: without a token they stay on it.
fn last(request: &Request, published: &Published, access: &Access) -> Answer {
    if access.token.is_none() && !request.is_local {
        return Answer::text(
            403,
            "without a token, only from this host; use untax agent last there",
        );
    }
    let body = published.texts().last;
    if body.is_empty() {
        return Answer::text(503, "no window has ended yet; ask again in a minute");
    }
    Answer { status: 200, content_type: "application/json", body }
}

fn is_allowed(request: &Request, access: &Access) -> bool {
    let Some(token) = &access.token else { return true };
    let given = request.authorization.and_then(|value| value.strip_prefix(b"Bearer "));
    given.is_some_and(|given| is_same(given, token.as_bytes()))
}

/// Compares all of it, so that the time does not tell how much of a guess was right.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn get(path: &str) -> Request<'_> {
        Request { method: "GET", path, authorization: None, is_local: false }
    }

    fn told() -> Published {
        let published = Published::new(String::new());
        published.set("metrics".to_owned(), Some("{}".to_owned()), true);
        published
    }

    fn status(request: &Request, published: &Published, access: &Access) -> u16 {
        answer(request, published, access, HOUR).status
    }

    #[test]
    fn metrics_want_the_token_and_health_does_not() {
        let access = Access { token: Some("secret".to_owned()) };
        let with = |value: &'static str| Request {
            authorization: Some(value.as_bytes()),
            ..get("/metrics")
        };
        assert_eq!(status(&get("/metrics"), &told(), &access), 401);
        assert_eq!(status(&with("Bearer secre"), &told(), &access), 401);
        assert_eq!(status(&with("Bearer secret2"), &told(), &access), 401);
        assert_eq!(status(&with("Bearer secret"), &told(), &access), 200);
        assert_eq!(status(&get("/healthz"), &told(), &access), 200);
        assert_eq!(status(&get("/metrics"), &told(), &Access::default()), 200);
    }

    #[test]
    fn whole_checks_stay_on_the_host_without_a_token() {
        let open = Access::default();
        assert_eq!(status(&get("/last"), &told(), &open), 403);
        let local = Request { is_local: true, ..get("/last") };
        assert_eq!(status(&local, &told(), &open), 200);
        assert_eq!(status(&local, &Published::new(String::new()), &open), 503, "no window yet");
    }

    #[test]
    fn an_agent_whose_windows_stopped_is_not_healthy() {
        let published = told();
        assert_eq!(status(&get("/readyz"), &published, &Access::default()), 200);
        std::thread::sleep(Duration::from_millis(2));
        let answer =
            answer(&get("/healthz"), &published, &Access::default(), Duration::from_millis(1));
        assert_eq!(answer.status, 503);
        let unready = Published::new(String::new());
        assert_eq!(status(&get("/readyz"), &unready, &Access::default()), 503);
    }

    #[test]
    fn other_requests_are_refused() {
        let post = Request { method: "POST", ..get("/metrics") };
        assert_eq!(status(&post, &told(), &Access::default()), 405);
        assert_eq!(status(&get("/etc/passwd"), &told(), &Access::default()), 404);
        assert_eq!(status(&get("/metrics?x=1"), &told(), &Access::default()), 200);
    }
}
