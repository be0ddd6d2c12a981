//! Threads that write, drain, stop, run out of room and come late.

use super::*;
use crate::torch::abi::{Block, Record};

/// Sessions are one at a time, tests are not.
static ONE_SESSION: Mutex<()> = Mutex::new(());

/// Writes an operator as the shim does; `false`: there was no room.
fn write(thread: *mut abi::Thread, start: u64, end: u64) -> bool {
    // SAFETY: the test's thread owns the buffer, and slots of `records` are free down to `blocks`.
    unsafe {
        if ((*thread).records as usize) < (*thread).blocks as usize + 64 && grow(thread, 0) == 0 {
            (*thread).dropped += 1;
            return false;
        }
        let slot = (*thread).records.sub(abi::SLOT_SHAPE.size);
        slot.cast::<[u64; 4]>().write([start, end, 1, 0]);
        AtomicPtr::from_ptr(&raw mut (*thread).records).store(slot, Ordering::Release);
    }
    true
}

fn write_name(thread: *mut abi::Thread, name: &[u8; 8]) {
    // SAFETY: the test's thread owns the buffer, and three words fit a fresh chunk.
    unsafe {
        let at = (*thread).blocks.cast::<u64>();
        at.write(3 | 1 << 32);
        at.add(1).write(8);
        at.add(2).write(u64::from_ne_bytes(*name));
        AtomicPtr::from_ptr(&raw mut (*thread).blocks).store(at.add(3).cast(), Ordering::Release);
    }
}

fn starts(recording: &ThreadRecording) -> Vec<u64> {
    let mut all = Vec::new();
    for part in &recording.parts {
        let mut slots = part.slots();
        // SAFETY: `slots` are those that `write` published.
        while let Some(Record::Operator(operator)) = unsafe { Record::read(&mut slots) } {
            all.push(operator.start);
        }
    }
    all
}

#[test]
fn records_of_all_threads_arrive_in_order() {
    let _one = lock(&ONE_SESSION);
    let session = start(u64::MAX);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let thread = attach(session, 9);
                write_name(thread, b"aten::ab");
                assert!((1..=100_000).all(|time| write(thread, time, time)));
                detach(thread);
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let recordings = stop(session);
    assert_eq!(recordings.len(), 4);
    for recording in &recordings {
        assert_eq!(starts(recording), (1..=100_000).collect::<Vec<_>>());
        let (block, rest) = Block::read(recording.parts[0].blocks()).unwrap();
        assert!(matches!(block, Block::Name(b"aten::ab", b"")) && rest.is_empty());
    }
    assert!(lock(&registry().threads).alive.is_empty(), "threads that ended are forgotten");
    assert!(lock(&registry().threads).ended.is_empty(), "and what they left is taken");
}

#[test]
fn what_is_drained_makes_room_and_comes_once() {
    let _one = lock(&ONE_SESSION);
    let session = start(4 * LARGEST_CHUNK as u64);
    std::thread::spawn(move || {
        let thread = attach(session, 1);
        let mut read: Vec<u64> = Vec::new();
        let mut seen = 0;
        for round in 0..50_u64 {
            // Fifty times half a chunk: more than there is room for at once.
            let count = LARGEST_CHUNK as u64 / 64;
            assert!((1..=count).all(|time| write(thread, round * count + time, 1)));
            let drained = drain(session).remove(0);
            let all = starts(&drained);
            // The chunk that was not full is shown again, from its beginning.
            read.truncate(read.len() - seen);
            read.extend(&all);
            let last =
                ThreadRecording { parts: drained.parts[drained.parts.len() - 1..].to_vec(), ..drained };
            seen = starts(&last).len();
        }
        assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>());
        assert_eq!(read.len(), 50 * LARGEST_CHUNK / 64);
        detach(thread);
        assert!(drain(session).remove(0).has_ended);
        assert!(drain(session).is_empty(), "a thread that ended is told of once");
        stop(session);
    })
    .join()
    .unwrap();
}

#[test]
fn what_has_no_room_is_counted() {
    let _one = lock(&ONE_SESSION);
    let session = start(FIRST_CHUNK as u64);
    let recording = std::thread::spawn(move || {
        let thread = attach(session, 1);
        let written = (1..=10_000).filter(|&time| write(thread, time, time)).count();
        let recording = stop(session).remove(0);
        detach(thread);
        assert_eq!(written as u64 + recording.dropped, 10_000);
        recording
    });
    let recording = recording.join().unwrap();
    assert!(recording.dropped > 9_000);
    assert_eq!(starts(&recording).len() as u64 + recording.dropped, 10_000);
}

#[test]
fn a_late_thread_writes_to_memory_that_is_still_there() {
    let _one = lock(&ONE_SESSION);
    let session = start(u64::MAX);
    std::thread::spawn(move || {
        let thread = attach(session, 1);
        write(thread, 1, 1);
        let recordings = stop(session);
        assert_eq!(starts(&recordings[0]), [1]);
        drop(recordings);
        assert!(write(thread, 2, 2), "the chunk still has room");
        assert_eq!(grow(thread, 1 << 20), 0, "but there is no other one");
        assert!(attach(session, 1).is_null(), "and no coming back");
        let next = start(u64::MAX);
        assert_eq!(attach(next, 1), thread, "a thread keeps its buffer");
        write(thread, 3, 3);
        assert_eq!(starts(&stop(next)[0]), [3]);
        detach(thread);
    })
    .join()
    .unwrap();
}

#[test]
fn stopping_while_threads_write_loses_nothing_published() {
    let _one = lock(&ONE_SESSION);
    for _ in 0..200 {
        let session = start(u64::MAX);
        let writer = std::thread::spawn(move || {
            let thread = attach(session, 1);
            let mut time = 0;
            if !thread.is_null() {
                while registry().session.load(Ordering::Relaxed) == session && write(thread, time + 1, 1) {
                    time += 1;
                }
                detach(thread);
            }
            time
        });
        std::thread::sleep(std::time::Duration::from_micros(200));
        let recordings = stop(session);
        let written = writer.join().unwrap();
        let read = recordings.first().map(starts).unwrap_or_default();
        assert!(read.len() as u64 <= written + 1, "{} of {written}", read.len());
        assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>());
    }
}

/// Runs a thread that records a few operators and ends.
fn short_thread(session: u64) {
    let thread = std::thread::spawn(move || {
        let thread = attach(session, 1);
        let written = (1..=10).filter(|&time| !thread.is_null() && write(thread, time, time)).count();
        if !thread.is_null() {
            detach(thread);
        }
        written
    });
    assert_eq!(thread.join().unwrap(), 10);
}

#[test]
fn threads_without_number_fit_where_few_are_alive() {
    let _one = lock(&ONE_SESSION);
    let session = start(64 * FIRST_CHUNK as u64);
    // Nobody asks meanwhile: packed, all of them take less than the first chunks of a few.
    (0..1_000).for_each(|_| short_thread(session));
    assert_eq!(recorded(session), 10_000);
    // And where somebody asks now and then, there is room for ever.
    let mut drained = 0;
    for _ in 0..20 {
        (0..200).for_each(|_| short_thread(session));
        let recordings = drain(session);
        drained += recordings.iter().map(|recording| starts(recording).len()).sum::<usize>();
        assert!(recordings.iter().all(|recording| recording.has_ended && recording.dropped == 0));
    }
    assert_eq!(drained, 10_000 + 20 * 200 * 10);
    assert!(stop(session).is_empty());
}

#[test]
fn a_thread_that_ends_while_the_session_stops_loses_nothing() {
    let _one = lock(&ONE_SESSION);
    for round in 0..300 {
        let session = start(u64::MAX);
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (ready, is_ready) = std::sync::mpsc::channel();
                let worker = std::thread::spawn(move || {
                    let thread = attach(session, 1);
                    assert!((1..=100).all(|time| write(thread, time, time)));
                    ready.send(()).unwrap();
                    (0..round).for_each(|_| std::hint::spin_loop());
                    detach(thread);
                });
                is_ready.recv().unwrap();
                worker
            })
            .collect();
        if round % 3 == 0 {
            drain(session);
        }
        let recordings = stop(session);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let read: Vec<usize> = recordings.iter().map(|recording| starts(recording).len()).collect();
        if round % 3 == 0 {
            // A thread that ended before was told of by `drain` for the last time.
            assert!(read.iter().all(|&count| count == 100), "{read:?}");
        } else {
            assert_eq!(read, [100; 4]);
        }
    }
}
