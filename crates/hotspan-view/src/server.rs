//! The listener, and who may ask at all.
//!
//! The server listens on the loopback interface only. Other users of the machine and pages in the same browser can
//! reach that too, so the address holds a secret, the Host must be ours (a name that was made to point at 127.0.0.1 is not), and a
//! page of another origin is refused. The page itself may load nothing from anywhere else.

use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::api::ProgressData;
use crate::catalogue::Catalogue;
use crate::error::{Refusal, ViewError};
use crate::opened::{Opened, Shelf};
use crate::routes::router;
use crate::visitors::{Visitor, Visitors};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Most of them wait for a trace that one of them opens; the rest must go on meanwhile.
const WORKERS: usize = 16;

const FIXED_HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // The page may keep hold of a window that the user lets it open, to hand a trace over; nobody may hold the page.
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin-allow-popups"),
];
/// The number of the trace that was named first.
const FIRST: u32 = 0;
/// Of what axum says about an address that it cannot read.
const LONGEST_MESSAGE: usize = 1 << 16;

/// The one address that takes something: a file that was dropped onto the page.
const DROPPED: &str = "api/dropped";

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The files and folders whose traces can be looked at.
    pub paths: Vec<PathBuf>,
    /// The port; 0 takes a free one.
    pub port: u16,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) catalogue: Catalogue,
    shelf: Shelf,
    token: String,
    port: u16,
}

impl Shared {
    /// The trace of a number in the catalogue.
    pub(crate) fn open(&self, id: u32) -> Result<Arc<Opened>, Refusal> {
        self.shelf.get(&self.catalogue, id)
    }

    /// How far that is, for those who wait.
    pub(crate) fn progress(&self, id: u32) -> ProgressData {
        self.shelf.progress(id)
    }
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    address: String,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// When a path is not there or the port is taken.
    pub fn start(options: &Options) -> Result<Self, ViewError> {
        let catalogue = Catalogue::of(&options.paths)?;
        let in_listening = |error| ViewError::Listen { port: options.port, error };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(in_listening)?;
        listener.set_nonblocking(true).map_err(in_listening)?;
        let port = listener.local_addr().map_err(in_listening)?.port();
        let token = token()?;
        let address = format!("http://127.0.0.1:{port}/{token}/");
        // Numbers are given while listing; a page that was reloaded asks with numbers of before.
        catalogue.list();
        let shared = Arc::new(Shared { catalogue, shelf: Shelf::default(), token, port });
        Ok(Self { listener, shared, address })
    }

    /// The address to open, with its secret.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Answers until the program ends.
    ///
    /// # Errors
    /// When the system gives no threads or the listener breaks.
    pub fn run(self) -> Result<(), ViewError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(WORKERS)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            // The page shows the first trace first: it is read while the browser starts. Who asks for it hears what is wrong with it.
            if self.shared.catalogue.begins_with_a_file() {
                let shared = Arc::clone(&self.shared);
                tokio::task::spawn_blocking(move || drop(shared.open(FIRST)));
            }
            let guard = from_fn_with_state(Arc::clone(&self.shared), guard);
            let app = router().layer(guard).with_state(self.shared);
            Ok(Visitors::default().serve(self.listener, app).await?)
        })
    }
}

fn token() -> Result<String, ViewError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| ViewError::Random(error.to_string()))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Lets through what may be answered; every response gets the same headers.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let response = match admit(&shared, &request) {
        Ok(()) => {
            if let Some(visitor) = request.extensions().get::<Arc<Visitor>>() {
                visitor.is_admitted();
            }
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let mut response =
        if response.status().is_client_error() { as_problem(response).await } else { response };
    for (name, value) in FIXED_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Axum refuses addresses that it cannot read in plain text; the page expects a [`Problem`](crate::api::Problem).
async fn as_problem(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind == "application/json") {
        return response;
    }
    let status = response.status();
    let text = to_bytes(response.into_body(), LONGEST_MESSAGE).await.unwrap_or_default();
    Refusal::new(status, String::from_utf8_lossy(&text)).into_response()
}

/// Whether a request may be answered.
fn admit(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    let refuse = |message: &str| Refusal::new(StatusCode::FORBIDDEN, message);
    let headers = request.headers();
    let text = |name: HeaderName| header_text(headers, &name);
    let names = [format!("127.0.0.1:{}", shared.port), format!("localhost:{}", shared.port)];
    if !text(header::HOST).is_some_and(|host| names.iter().any(|name| name == host)) {
        return Err(refuse("This server answers to 127.0.0.1 and localhost only."));
    }
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    let (given, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_drop = *request.method() == Method::POST && rest == DROPPED;
    // Browsers say which page a file comes from; what does not say so is not the page.
    if is_drop || headers.contains_key(header::ORIGIN) {
        let origin = text(header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        if !origin.is_some_and(|origin| names.iter().any(|name| name == origin)) {
            return Err(refuse("Pages of other origins may not ask here."));
        }
    }
    if !is_drop && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Nothing can be changed here."));
    }
    if !same(given.as_bytes(), shared.token.as_bytes()) {
        return Err(refuse("The address lacks its secret. Open the one that `hotspan view` printed."));
    }
    Ok(())
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

/// Compares in a time that does not tell how much was right.
fn same(given: &[u8], wanted: &[u8]) -> bool {
    given.len() == wanted.len()
        && given.iter().zip(wanted).fold(0, |sum, (left, right)| sum | (left ^ right)) == 0
}
