//! Reading through gzip and zstd, whole and broken; writing by suffix.

use std::io::Write;
use std::ops::ControlFlow;

use hotspan_formats::export::chrome::Chrome;
use hotspan_formats::export::hotspan::Hotspan;
use hotspan_formats::{Exporter, ImportError, Input, Progress, save};
use hotspan_store::{Loss, first_difference};

use crate::read;

fn content() -> String {
    let event = |number: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "op {}", "pid": 1, "tid": 1, "ts": {number}, "dur": 1}}"#,
            number % 7
        )
    };
    format!("{{\"traceEvents\": [{}]}}", (0..20_000).map(event).collect::<Vec<_>>().join(",\n"))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files_are_known_by_content() {
    let plain = read(content()).unwrap();
    let zipped = read(gzip(content().as_bytes())).unwrap();
    assert_eq!(zipped.source().compression.as_deref(), Some("gzip"));
    assert_eq!(first_difference(&plain, &zipped), None);
    let zstd = read(zstd::encode_all(content().as_bytes(), 1).unwrap()).unwrap();
    assert_eq!(zstd.source().compression.as_deref(), Some("zstd"));
    assert_eq!(first_difference(&plain, &zstd), None);
}

#[test]
fn gzip_in_several_members_is_one_file() {
    let text = content();
    let (start, end) = text.as_bytes().split_at(text.len() / 3);
    let trace = read([gzip(start), gzip(end)].concat()).unwrap();
    assert_eq!(trace.spans().len(), 20_000);
    assert!(trace.losses().is_empty());
}

#[test]
fn a_broken_archive_gives_what_came_before() {
    let zipped = gzip(content().as_bytes());
    let cut = read(&zipped[..zipped.len() / 2]).unwrap();
    assert!((1_000..20_000).contains(&cut.spans().len()), "{}", cut.spans().len());
    assert_eq!(cut.losses().count(Loss::TruncatedFile), 1);

    let mut damaged = zipped.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    let damaged = read(damaged).unwrap();
    assert!(
        damaged.losses().serious().next().is_some(),
        "{} spans, {:?}",
        damaged.spans().len(),
        damaged.source()
    );

    let error = read(&zipped[..12]).unwrap_err().to_string();
    assert_eq!(error, "the JSON is not a trace: the file breaks off before its events (at byte 1)");
    let error = read(&zipped[..8]).unwrap_err().to_string();
    assert!(error.starts_with("the file is damaged from the start: the gzip data breaks off"), "{error}");
    assert!(read(b"\x28\xb5\x2f\xfd\xff\xff\xff\xff".as_slice()).is_err());
}

#[test]
fn the_suffix_chooses_the_compression() {
    let trace = read(content()).unwrap();
    let folder = std::env::temp_dir().join(format!("hotspan-formats-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let exporters: [(&str, &dyn Exporter); 2] = [("json", &Chrome), ("hotspan", &Hotspan)];
    for (extension, exporter) in exporters {
        for (suffix, compression) in [("", None), (".gz", Some("gzip")), (".zst", Some("zstd"))] {
            let path = folder.join(format!("trace.{extension}{suffix}"));
            save(&trace.clone().into(), exporter, &path).unwrap();
            let again = hotspan_formats::open(&path).unwrap();
            assert_eq!(again.source().compression.as_deref(), compression);
            assert_eq!(first_difference(&trace, &again), None, "{}", path.display());
        }
    }
    let error = save(&trace.clone().into(), &Chrome, &folder.join("missing/trace.json")).unwrap_err();
    assert!(error.to_string().contains("missing/trace.json"), "{error}");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 6, "no temporary file stays behind: {left:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn reading_can_be_stopped() {
    struct StopSoon(u32);
    impl Progress for StopSoon {
        fn advance(&mut self, _done: u64, _total: Option<u64>) -> ControlFlow<()> {
            self.0 += 1;
            if self.0 > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let mut stop = StopSoon(0);
    let input = Input::new(std::io::Cursor::new(content().into_bytes()), None, None, &mut stop).unwrap();
    assert!(matches!(hotspan_formats::read(input), Err(ImportError::Cancelled)));
}
