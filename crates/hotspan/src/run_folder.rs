//! The folder that the processes of a run write to, a file each: reading them as one trace. `commands/run/spool.rs` makes it.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotspan_analyze::{PROCESSES_KEY, RUN_KEY};
use hotspan_formats::most_events;
use hotspan_store::file::FileError;
use hotspan_store::{FileMerge, Loss, Metadata, Survey, Trace, TraceBuilder, keys};
use serde_json::{Value, json};

use crate::progress::say;

/// The file with what is known of the program before it ends, for whoever finds the folder of a run that was killed.
pub(crate) const ABOUT: &str = "run.json";

/// The files of processes in the folder; what else is there says how it goes.
pub(crate) fn recordings(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hotspan"))
}

/// The process that wrote a recording: the file's name begins with its number.
pub(crate) fn process_of(recording: &Path) -> Option<u32> {
    recording.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// The recording that a file is a part of, by its name, and which part: `7-123.hotspan` is the first, `7-123.000002.hotspan` the
/// second.
pub(crate) fn segment_of(path: &Path) -> Option<(String, u32)> {
    let (recording, rest) = path.file_name()?.to_str()?.split_once('.')?;
    let number = rest.strip_suffix(".hotspan").map_or(Some(1), |number| number.parse().ok())?;
    Some((recording.to_owned(), number))
}

/// The recordings of a run, the program's own first, and what is known of each without its rows.
pub(crate) struct Recordings {
    process: u32,
    all: Vec<Recording>,
}

/// The files of one recording, the oldest first.
#[derive(Default)]
struct Recording {
    name: String,
    paths: Vec<PathBuf>,
    surveys: Vec<Survey>,
}

impl Recordings {
    /// Looks at all files in the folder. Those that cannot be read are passed over, and said to be.
    pub(crate) fn survey(folder: &Path, process: u32) -> Self {
        let mut files: Vec<PathBuf> = recordings(folder).collect();
        files.sort_by_cached_key(|path| (process_of(path) != Some(process), segment_of(path), path.clone()));
        let mut all: Vec<Recording> = Vec::new();
        for path in files {
            match opened(&path).and_then(Survey::of) {
                Ok(survey) => {
                    let name = segment_of(&path).map_or_else(String::new, |(name, _)| name);
                    if all.last().is_none_or(|last| last.name != name) {
                        all.push(Recording { name, ..Recording::default() });
                    }
                    if let Some(recording) = all.last_mut() {
                        recording.paths.push(path);
                        recording.surveys.push(survey);
                    }
                }
                Err(error) => say(&format!("note: {}: {error}", path.display())),
            }
        }
        Self { process, all }
    }

    /// How many events there are in all.
    fn events(&self) -> u64 {
        self.all.iter().flat_map(|recording| &recording.surveys).map(|survey| survey.events).sum()
    }

    /// Since when all processes are there, where the oldest files were dropped; in Unix nanoseconds.
    pub(crate) fn kept_since(&self) -> Option<i64> {
        let firsts = self.all.iter().filter_map(|recording| recording.surveys.first());
        let began = |survey: &Survey| survey.metadata.value(keys::SEGMENT)?["began_unix_ns"].as_i64();
        firsts.filter_map(began).max()
    }

    /// What each recording said last.
    fn last_words(&self) -> impl Iterator<Item = (&Path, &Survey)> {
        self.all
            .iter()
            .filter_map(|recording| Some((recording.paths.last()?.as_path(), recording.surveys.last()?)))
    }

    /// Whether any thread was recorded.
    #[cfg(feature = "collect")]
    pub(crate) fn has_tracks(&self) -> bool {
        self.all.iter().flat_map(|recording| &recording.surveys).any(|survey| survey.has_tracks)
    }

    /// Writes all processes as one recording. Memory does not grow with their size: each file is read chunk by chunk.
    #[cfg(feature = "collect")]
    pub(crate) fn write(&self, facts: &Value, output: &mut dyn std::io::Write) -> Result<(), FileError> {
        let mut writer = hotspan_store::file::Writer::create(output)?;
        let mut builder = self.merge(None, &mut |builder| writer.append(builder))?;
        builder.metadata.set(RUN_KEY, &facts.to_string());
        writer.finish(&mut builder).map(drop)
    }

    /// All processes as one trace, in memory: as much of the latest as it may take.
    pub(crate) fn in_memory(&self) -> Trace {
        match self.merge(Some(most_events()), &mut |_| Ok(())) {
            Ok(builder) => builder.finish(),
            Err(error) => {
                say(&format!("note: {error}"));
                TraceBuilder::new().finish()
            }
        }
    }

    fn merge(
        &self,
        most: Option<u64>,
        move_on: &mut dyn FnMut(&mut TraceBuilder) -> Result<(), FileError>,
    ) -> Result<TraceBuilder, FileError> {
        #[cfg(feature = "collect")]
        let mut names = hotspan_collect::native::FunctionNames::default();
        #[cfg(feature = "collect")]
        let mut name = |library: &str, frame: &str| names.find(library, frame);
        // The libraries of the program are on the machine that recorded it.
        #[cfg(not(feature = "collect"))]
        let mut name = |_: &str, _: &str| None;
        let surveys = || self.all.iter().flat_map(|recording| &recording.surveys);
        let mut merge = FileMerge::new(surveys());
        if let Some(most) = most.filter(|&most| self.events() > most) {
            merge.keep_latest(surveys(), most);
        }
        for Recording { paths, surveys, .. } in &self.all {
            merge.add_segments(surveys, |index| opened(&paths[index]), &mut name, move_on)?;
        }
        let mut builder = merge.into_builder();
        if let Some(life) = self.life() {
            builder.metadata.set(LIFE, &life.to_string());
        }
        let processes: Vec<Value> = self.last_words().map(|(path, survey)| about(path, survey)).collect();
        if !processes.is_empty() {
            builder.metadata.set(PROCESSES_KEY, &Value::from(processes).to_string());
        }
        Ok(builder)
    }

    /// The life of the program's own process, which may have become another program by `exec`, more than once: it begins with
    /// the first recording and ends with the last.
    fn life(&self) -> Option<Value> {
        let lives = self.last_words().filter_map(|(_, survey)| survey.metadata.value(LIFE));
        let lives: Vec<Value> = lives.filter(|life| life["process"] == self.process).collect();
        let (mut life, last) = (lives.first()?.clone(), lives.last()?);
        life["finished_unix_ns"] = last["finished_unix_ns"].clone();
        let is_whole = self.kept_since().is_none() && lives.iter().all(|life| life["is_whole"] == true);
        life["is_whole"] = is_whole.into();
        Some(life)
    }
}

fn opened(path: &Path) -> Result<BufReader<File>, FileError> {
    File::open(path).map(BufReader::new).map_err(|error| FileError::Read { offset: 0, error })
}

/// All processes as one trace, the program itself first.
#[cfg(feature = "collect")]
pub(crate) fn merged(folder: &Path, process: u32) -> Trace {
    Recordings::survey(folder, process).in_memory()
}

/// The metadata of a recording about the life of its process.
const LIFE: &str = "hotspan.process";

/// What is told about a process: what it was, how far its recording goes, and whether its operators are there.
fn about(path: &Path, survey: &Survey) -> Value {
    let metadata = |key: &str| survey.metadata.value(key).unwrap_or(Value::Null);
    let words = metadata("hotspan.environment");
    let words = words["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let process = process_of(path);
    json!({
        "process": process,
        "command": words.collect::<Vec<_>>().join(" "),
        "is_cut_off": survey.losses.count(Loss::TruncatedFile) > 0,
        "is_running": process.is_some_and(is_running),
        "signal": metadata("hotspan.signal"),
        "written_unix_ns": written(path),
        "operators": metadata("hotspan.operators"),
        "metadata": own_words(&survey.metadata),
    })
}

/// What a process says about itself: of several traces that are merged, only the first would be heard.
fn own_words(metadata: &Metadata) -> Value {
    let keys = metadata.iter().filter(|(key, _)| key.starts_with("hotspan."));
    let values = keys.filter_map(|(key, _)| Some((key.to_owned(), metadata.value(key)?)));
    values.collect::<serde_json::Map<_, _>>().into()
}

/// When a file was last written.
pub(crate) fn written(path: &Path) -> Option<i64> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    i64::try_from(modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

#[cfg(feature = "collect")]
fn is_running(process: u32) -> bool {
    hotspan_collect::process_tree::ProcessNumber(process).is_alive()
}

/// Who cannot record reads what others recorded, elsewhere.
#[cfg(not(feature = "collect"))]
fn is_running(_: u32) -> bool {
    false
}

/// Opens the folder of a run that did not come to its end; `None` when it is another folder.
pub(crate) fn open(folder: &Path) -> Option<Trace> {
    let about = fs::read(folder.join(ABOUT)).ok()?;
    let mut facts: Value = serde_json::from_slice(&about).ok()?;
    let process = facts.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok())?;
    let recordings = Recordings::survey(folder, process);
    facts["kept_since_unix_ns"] = recordings.kept_since().into();
    let mut trace = recordings.in_memory();
    trace.set_metadata(RUN_KEY, &facts.to_string());
    Some(trace)
}
