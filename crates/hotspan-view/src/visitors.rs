//! Who is connected, and for how long: nobody who does not know the secret keeps out who does.
//!
//! All connections come from this machine, so their addresses do not tell users apart; the secret does. Until a connection has shown
//! it, it is a stranger's: it must send a request in time, and when too many strangers wait, the one who has waited longest makes
//! room for the next. Whoever has the secret shows it at once, and stays.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tower::ServiceExt;

/// How many, and for how long.
#[derive(Clone, Copy, Debug)]
struct Limits {
    strangers: usize,
    known: usize,
    /// How long a request may take to arrive, and how long a connection may do nothing.
    patience: Duration,
    /// How long a connection lasts that never shows the secret.
    strangers_life: Duration,
}

/// Together they stay below the 1,024 files that a process may have open on most systems, with some left for traces.
const LIMITS: Limits = Limits {
    strangers: 448,
    known: 512,
    patience: Duration::from_secs(15),
    strangers_life: Duration::from_secs(30),
};
/// Until the system has room for another connection.
const PAUSE: Duration = Duration::from_millis(20);

/// Those who are there.
#[derive(Debug, Default)]
struct Lists {
    next: u64,
    /// The one who came first is the first here.
    strangers: BTreeMap<u64, AbortHandle>,
    known: usize,
}

/// All connections, and what they are allowed.
#[derive(Clone, Debug)]
pub(crate) struct Visitors {
    lists: Arc<Mutex<Lists>>,
    limits: Limits,
}

impl Default for Visitors {
    fn default() -> Self {
        Self { lists: Arc::default(), limits: LIMITS }
    }
}

/// One connection; it leaves the lists when it ends.
#[derive(Debug)]
pub(crate) struct Visitor {
    visitors: Visitors,
    number: u64,
    is_known: Mutex<bool>,
}

impl Visitors {
    /// Serves whoever connects, until the listener breaks.
    pub(crate) async fn serve(self, listener: TcpListener, app: Router) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.welcome(stream, app.clone()),
                // The connection is gone again, or too many files are open: one stranger less makes room.
                Err(error) => {
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        self.send_away_longest();
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn welcome(&self, stream: TcpStream, app: Router) {
        if self.lists().strangers.len() >= self.limits.strangers {
            self.send_away_longest();
        }
        // Held until the task is in the list: it must not leave before it came.
        let mut lists = self.lists();
        let number = lists.next;
        lists.next += 1;
        let visitor = Arc::new(Visitor { visitors: self.clone(), number, is_known: Mutex::new(false) });
        let task = tokio::spawn(converse(stream, app, visitor));
        lists.strangers.insert(number, task.abort_handle());
    }

    fn send_away_longest(&self) {
        let longest = self.lists().strangers.pop_first();
        if let Some((_, task)) = longest {
            task.abort();
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor {
    /// The visitor has shown the secret. Beyond the most that may be known, it goes on as a stranger.
    pub(crate) fn is_admitted(&self) {
        let mut is_known = self.is_known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lists = self.visitors.lists();
        if !*is_known
            && lists.known < self.visitors.limits.known
            && lists.strangers.remove(&self.number).is_some()
        {
            lists.known += 1;
            *is_known = true;
        }
    }

    fn is_known(&self) -> bool {
        *self.is_known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let is_known = self.is_known();
        let mut lists = self.visitors.lists();
        if is_known {
            lists.known -= 1;
        } else {
            lists.strangers.remove(&self.number);
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, app: Router, visitor: Arc<Visitor>) {
    let limits = visitor.visitors.limits;
    let answer = |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&visitor));
        app.clone().oneshot(request.map(Body::new))
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.patience);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
    // How a connection ends is no concern of ours: the other side went away, or was too slow.
    if tokio::time::timeout(limits.strangers_life, connection.as_mut()).await.is_err() && visitor.is_known() {
        let _ = connection.await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use axum::routing::get;

    use super::*;

    const QUICK: Limits = Limits {
        strangers: 4,
        known: 2,
        patience: Duration::from_millis(200),
        strangers_life: Duration::from_millis(600),
    };
    /// Longer than anything takes here: nothing is asserted about it.
    const END: Duration = Duration::from_secs(60);

    /// A server that takes everybody as known who asks for `/known`.
    fn serve(limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let known = get(|request: axum::extract::Request| async move {
            request.extensions().get::<Arc<Visitor>>().unwrap().is_admitted();
            "welcome"
        });
        let app = Router::new().route("/known", known).fallback(|| async { "who?" });
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.unwrap().block_on(Visitors { lists: Arc::default(), limits }.serve(listener, app))
        });
        address
    }

    fn connect(address: SocketAddr, sent: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(END)).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        stream
    }

    fn ask(stream: &mut TcpStream, path: &str) -> Option<String> {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).ok().filter(|&length| length > 0)?;
        Some(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Reads until the server closes the connection.
    fn is_closed(stream: &mut TcpStream) -> bool {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    #[test]
    fn half_requests_and_silence_end() {
        let address = serve(QUICK);
        assert!(is_closed(&mut connect(address, "GET / HT")));
        assert!(is_closed(&mut connect(address, "")));
        // A request now and then does not help a stranger.
        let mut asking = connect(address, "");
        while ask(&mut asking, "/").is_some() {
            std::thread::sleep(Duration::from_millis(50));
        }
        // Whoever is known stays for as long as there are requests, and is not kept for ever without.
        let mut known = connect(address, "");
        for _ in 0..15 {
            assert!(ask(&mut known, "/known").unwrap().ends_with("welcome"));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(is_closed(&mut known));
    }

    #[test]
    fn strangers_make_room_and_the_known_stay() {
        let patient = Limits { patience: END, strangers_life: END, ..QUICK };
        let address = serve(patient);
        let mut known = connect(address, "");
        assert!(ask(&mut known, "/known").is_some());
        let mut strangers: Vec<TcpStream> = (0..6).map(|_| connect(address, "GET / HT")).collect();
        // Four may wait: the first two were sent away, in their order.
        assert!(is_closed(&mut strangers[0]) && is_closed(&mut strangers[1]));
        let mut owner = connect(address, "");
        assert!(ask(&mut owner, "/known").unwrap().ends_with("welcome"));
        assert!(is_closed(&mut strangers[2]));
        assert!(ask(&mut known, "/known").unwrap().ends_with("welcome"));
        // The last one is still there.
        write!(strangers[5], "TP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = [0; 1024];
        assert!(strangers[5].read(&mut answer).unwrap() > 0);
    }
}
