//! The dashboard: a server on this machine only, the web app it serves and the data the app asks for.
//!
//! | module | is |
//! |---|---|
//! | `server` | the listener, and who may ask at all |
//! | `visitors` | who is connected, and for how long |
//! | `routes` | which address answers with what |
//! | `catalogue` | the traces that were opened, and those that appear in opened folders |
//! | `dropped` | files that were dropped onto the page |
//! | `contents` | which views have something to show |
//! | `opened` | a trace in memory, with what was computed of it |
//! | `waiting` | how far reading and computing have come |
//! | `reports` | the tables of views, by name: one line adds one |
//! | `timeline` | spans as they are drawn: as many as there are pixels |
//! | `flows` | which spans flows lead from and to |
//! | `flame`, `findings`, `curves`, `details`, `memory`, `source`, `verdicts` | the views that are no plain tables |
//! | `things` | one row of a table with all that is known about it |
//! | `several` | views of several traces: compared, ranks |
//! | `exports` | downloads in the formats of other viewers |
//! | `api` | the shapes of the answers; `web/src/data/api.ts` is made from it |
//! | `assets` | the files of the web app |
//! | `page` | a trace and the web app in one file, to share |
//! | `held` | the single spans that such a page has |
//!
//! Numbers come from hotspan-analyze; nothing is computed in the page.

#![forbid(unsafe_code)]

pub mod api;
mod assets;
mod catalogue;
mod contents;
mod curves;
mod details;
mod dropped;
mod error;
mod exports;
mod findings;
mod flame;
mod flows;
mod held;
mod memory;
mod opened;
mod page;
mod reports;
mod routes;
mod server;
mod several;
mod source;
mod things;
mod timeline;
mod verdicts;
mod visitors;
mod waiting;

pub use error::ViewError;
pub use page::static_page;
pub use server::{Options, Server};
