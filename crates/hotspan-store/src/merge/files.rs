//! Files as one trace without holding them: each is read chunk by chunk, and its rows move on at once.
//!
//! A first reading, the [`Survey`], finds out what must be known before the first row: clocks, devices, whether args are
//! near the events that refer to them. The second moves the rows.

use std::cmp::Reverse;
use std::io::Read;

use hashbrown::HashSet;

use crate::args::tables::ArgTables;
use crate::builder::{Rows, TraceBuilder};
use crate::content::Content;
use crate::events::EventRow;
use crate::file::{Chunks, FileError};
use crate::keys;
use crate::losses::{Loss, Losses};
use crate::merge::translate::Translation;
use crate::merge::{DeviceOwners, Member, Rename};
use crate::metadata::{Clock, Metadata, Source};
use crate::units::Timestamp;

/// So many rows wait before they move on.
const MANY_ROWS: usize = 1 << 16;

/// What is known of a file after a first reading that keeps no rows.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What the recording says about itself.
    pub metadata: Metadata,
    /// What is missing or was repaired; a file that is cut off or damaged says so here.
    pub losses: Losses,
    source: Source,
    /// How many events it has, samples included.
    pub events: u64,
    /// Whether any thread was recorded.
    pub has_tracks: bool,
    /// The clock of the trace, whose zero is the first event.
    clock: Clock,
    first: i64,
    members: Vec<Member>,
    /// Where the last chunk that could be read ends. A process that still runs may write more meanwhile.
    end: u64,
    /// Events refer to args far before them, so that all args must be kept.
    keeps_args: bool,
    parts: Vec<Part>,
}

/// A chunk of a file.
#[derive(Clone, Copy, Debug)]
struct Part {
    events: u64,
    /// When the last of them begins, in the file's own time.
    latest: i64,
}

impl Survey {
    /// Reads a file once.
    ///
    /// # Errors
    /// When nothing can be read, as [`crate::file::read`].
    pub fn of(input: impl Read) -> Result<Self, FileError> {
        let mut chunks = Chunks::open(input)?;
        let mut window = ArgWindow::default();
        let (mut first, mut events, mut end, mut keeps_args) = (None, 0, 0, false);
        let mut is_device: Vec<bool> = Vec::new();
        let mut parts = Vec::new();
        while chunks.next()? {
            let builder = chunks.builder();
            let rows = builder.take_events();
            window.move_on(builder, &rows);
            is_device.resize(builder.processes.len(), false);
            for event in rows.spans.events() {
                if builder.categories[event.category.index()].1.is_device() {
                    is_device[builder.tracks[event.track.index()].process.index()] = true;
                }
            }
            let is_gone = |event: EventRow| {
                let schema = &builder.args.arg_schemas[event.args.schema.index()];
                !schema.keys.is_empty() && event.args.row < schema.first
            };
            keeps_args |= all_events(&rows).any(is_gone);
            let samples = &rows.profile.samples;
            let times = || all_events(&rows).map(|event| event.time.0).chain(samples.time.iter().copied());
            first = first.into_iter().chain(times().min()).min();
            events += (event_count(&rows) + rows.verbatim.len()) as u64;
            let part = |latest| Part { events: event_count(&rows) as u64, latest };
            parts.extend(times().max().map(part));
            end = chunks.offset();
        }
        let builder = chunks.finish();
        let first = first.unwrap_or(0);
        let member = |(process, is_device): (&crate::trace::Process, bool)| Member {
            ident: process.ident.display(&builder.strings),
            number: process.ident.number(),
            is_device,
        };
        is_device.resize(builder.processes.len(), false);
        Ok(Self {
            members: builder.processes.iter().zip(is_device).map(member).collect(),
            has_tracks: !builder.tracks.is_empty(),
            clock: Clock { origin: builder.clock.origin.saturating_add(first), ..builder.clock },
            metadata: builder.metadata,
            losses: builder.losses,
            source: builder.source,
            events,
            first,
            end,
            keeps_args,
            parts,
        })
    }

    /// What is added to the times of the file, on the clock of all files or on its own.
    fn shift(&self, on_one_clock: bool) -> i64 {
        match self.clock.unix_origin().filter(|_| on_one_clock) {
            Some(unix) => unix.saturating_sub(self.first),
            None => self.first.saturating_neg(),
        }
    }
}

/// Several files on their way into one trace, as [`crate::merge`] does with traces.
#[derive(Debug)]
pub struct FileMerge {
    builder: TraceBuilder,
    owners: DeviceOwners,
    on_one_clock: bool,
    /// What ended before is left out.
    since: Option<Timestamp>,
}

impl FileMerge {
    /// Begins a merge of the files that were surveyed.
    #[must_use]
    pub fn new<'a>(surveys: impl IntoIterator<Item = &'a Survey, IntoIter: Clone>) -> Self {
        let mut builder = TraceBuilder::new();
        let mut surveys = surveys.into_iter();
        let on_one_clock = surveys.clone().all(|survey| survey.clock.unix_origin().is_some());
        if on_one_clock {
            builder.clock.base_unix = Some(0);
        } else if let Some(first) = surveys.next() {
            builder.clock = first.clock;
        }
        Self { builder, owners: DeviceOwners::default(), on_one_clock, since: None }
    }

    /// Leaves out the oldest stretch of all files together, so that about `most` events stay; sums over the whole time stay as they
    /// are. From when on all is there is noted in the metadata.
    pub fn keep_latest<'a>(&mut self, surveys: impl IntoIterator<Item = &'a Survey>, most: u64) {
        let mut parts: Vec<(i64, u64)> = Vec::new();
        for survey in surveys {
            let shift = survey.shift(self.on_one_clock);
            parts.extend(survey.parts.iter().map(|part| (part.latest.saturating_add(shift), part.events)));
        }
        parts.sort_unstable_by_key(|&part| Reverse(part));
        let mut events = 0_u64;
        let too_many = parts.iter().find(|&&(_, more)| {
            events = events.saturating_add(more);
            events > most
        });
        self.since = too_many.map(|&(latest, _)| Timestamp(latest));
        if let (Some(since), true) = (self.since, self.on_one_clock) {
            self.builder.metadata.set(keys::READ_SINCE, &since.0.to_string());
        }
    }

    /// Adds a file. Whenever there are many rows, `move_on` may take them out of the builder, as
    /// [`crate::file::Writer::append`] does.
    ///
    /// # Errors
    /// When the file cannot be read, or with what `move_on` says.
    pub fn add(
        &mut self,
        input: impl Read,
        survey: &Survey,
        name: &mut Rename<'_>,
        move_on: &mut dyn FnMut(&mut TraceBuilder) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut input = Some(input);
        let open = |_| input.take().ok_or(FileError::GivenUp);
        self.add_segments(std::slice::from_ref(survey), open, name, move_on)
    }

    /// The same with a recording in several files, the oldest first, which `open` opens by their place. Numbers by which
    /// events find each other go on from file to file.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_segments<R: Read>(
        &mut self,
        surveys: &[Survey],
        mut open: impl FnMut(usize) -> Result<R, FileError>,
        name: &mut Rename<'_>,
        move_on: &mut dyn FnMut(&mut TraceBuilder) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let all = || surveys.iter().flat_map(|survey| &survey.members);
        // What was seen to be a device in one file is one in all.
        let devices: HashSet<&str> =
            all().filter(|member| member.is_device).map(|member| member.ident.as_str()).collect();
        let builder = &mut self.builder;
        let id_base = builder.last_appended_id;
        for (index, survey) in surveys.iter().enumerate() {
            let member = |member: &Member| Member {
                is_device: devices.contains(member.ident.as_str()),
                ..member.clone()
            };
            let members: Vec<Member> = survey.members.iter().map(member).collect();
            let shift = survey.shift(self.on_one_clock);
            let devices = self.owners.keep_apart(builder, &members);
            let mut translation = Translation::new(shift, id_base, devices);
            translation.since = self.since;
            move_rows(open(index)?, survey, builder, &mut translation, name, move_on)?;
            if translation.left_out > 0 {
                builder.losses.add_many(Loss::OlderEvents, translation.left_out, None);
            }
            builder.reserve_ids(translation.last_id());
        }
        // The last knows most. Losses go on from file to file, but for what happened to a file itself.
        let mut later: Option<&Survey> = None;
        for survey in surveys.iter().rev() {
            builder.add_words(&survey.metadata, &survey.source);
            let counts = survey.losses.counts().iter();
            builder.add_losses(counts.filter(|known| later.is_none() || is_of_the_file(known.loss)));
            later = Some(survey);
        }
        let first = later.and_then(|first| first.metadata.value(keys::SEGMENT));
        let dropped = first.and_then(|about| about["events_before"].as_u64());
        if let Some(dropped) = dropped.filter(|&dropped| dropped > 0) {
            builder.losses.add_many(Loss::DroppedEvents, dropped, None);
        }
        Ok(())
    }

    /// What was added and not taken out.
    pub fn builder(&mut self) -> &mut TraceBuilder {
        &mut self.builder
    }

    /// The same, once all was added.
    #[must_use]
    pub fn into_builder(self) -> TraceBuilder {
        self.builder
    }
}

fn is_of_the_file(loss: Loss) -> bool {
    matches!(loss, Loss::TruncatedFile | Loss::DamagedChunk | Loss::TrailingData)
}

/// Moves the rows of a file, as far as it was surveyed.
fn move_rows(
    input: impl Read,
    survey: &Survey,
    builder: &mut TraceBuilder,
    translation: &mut Translation,
    name: &mut Rename<'_>,
    move_on: &mut dyn FnMut(&mut TraceBuilder) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut chunks = Chunks::open(input)?;
    let mut window = ArgWindow { keeps_all: survey.keeps_args, ..ArgWindow::default() };
    while chunks.offset() < survey.end && chunks.next()? {
        let part = chunks.builder();
        let rows = part.take_events();
        window.move_on(part, &rows);
        let args = ArgTables::Growing(&part.args.arg_schemas);
        translation.add(builder, &Content::of_rows(part, &rows), args, name);
        if builder.event_count() >= MANY_ROWS {
            move_on(builder)?;
        }
    }
    let part = chunks.builder();
    let rows = part.take_events();
    translation.describe(builder, &Content::of_rows(part, &rows));
    Ok(())
}

/// Which args are kept while a file is read. A writer puts args before the events that refer to them; once events were read
/// and more args come, those before are not needed any more.
#[derive(Debug, Default)]
struct ArgWindow {
    keeps_all: bool,
    /// How many rows of each schema there were before the last chunk.
    known: Vec<u32>,
    /// Events came since the last args.
    had_events: bool,
}

impl ArgWindow {
    /// After a chunk was read: drops the args that are not needed any more.
    fn move_on(&mut self, builder: &mut TraceBuilder, rows: &Rows) {
        let schemas = &mut builder.args.arg_schemas;
        self.known.resize(schemas.len(), 0);
        let has_args = schemas.iter().zip(&self.known).any(|(schema, &known)| schema.next != known);
        if has_args && self.had_events && !self.keeps_all {
            schemas.iter_mut().zip(&self.known).for_each(|(schema, &known)| schema.forget_before(known));
        }
        self.had_events = (self.had_events && !has_args) || event_count(rows) > 0;
        self.known.clear();
        self.known.extend(schemas.iter().map(|schema| schema.next));
    }
}

fn all_events(rows: &Rows) -> impl Iterator<Item = EventRow> + '_ {
    rows.spans.events().chain(rows.instants.events()).chain(rows.counters.events()).chain(rows.flows.events())
}

fn event_count(rows: &Rows) -> usize {
    let Rows { spans, instants, counters, flows, profile, .. } = rows;
    spans.len() + instants.len() + counters.len() + flows.len() + profile.samples.len()
}
