//! What one thread keeps while calls are traced: the functions it is in, and sums over those it has left.
//!
//! Entering costs a look at the function called last by the same caller, or one probe of a table; leaving costs none. After
//! every pair of caller and callee has been seen once, nothing is allocated.

use crate::calls::edges::Edges;
pub(crate) use crate::calls::edges::{FunctionId, Key, Sums};
use crate::clock::{self, Ticks};

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    start: u64,
    /// Ticks in functions called from it.
    inner: u64,
    /// What the event of its return will name.
    pub(crate) leaves_as: Key,
    edge: u32,
    span: u32,
    /// Python code, not a function of C.
    pub(crate) is_code: bool,
}

/// Where in its caller a call is made: a line, or where only that is told the complement of the instruction's offset in the
/// caller's code; 0: not told.
pub(crate) type Site = i32;

/// One call as a span; spans are in order of their starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSpan {
    pub(crate) start: Ticks,
    /// 0 while it runs.
    pub(crate) end: Ticks,
    pub(crate) function: FunctionId,
    /// The span it was called from, counted from 1 on this thread; 0: none.
    pub(crate) parent: u32,
    pub(crate) site: Site,
}

/// What a thread has done; its own thread writes it, with the GIL.
#[derive(Debug)]
pub(crate) struct ThreadCalls {
    /// Which session the rest belongs to; 0: none.
    pub(crate) session: u64,
    /// Events need their key and the time, and nothing else: none of what follows is wanted.
    plain: bool,
    /// An event is being handled that runs Python code; its events are not the program's.
    busy: bool,
    pub(crate) has_timer: bool,
    pub(crate) by_type: bool,
    pub(crate) module_call: Key,
    /// Where the next call is made from.
    pub(crate) site: Site,
    pub(crate) os_thread: i64,
    /// The function this thread is in.
    current: u32,
    stack: Vec<Open>,
    edges: Edges,
    pub(crate) spans: Vec<CallSpan>,
    /// How many spans may be kept; 0: none are wanted.
    room: usize,
    pub(crate) dropped: u64,
}

impl ThreadCalls {
    pub(crate) fn new(session: u64, os_thread: i64, room: usize) -> Self {
        Self {
            session,
            plain: room == 0,
            busy: false,
            has_timer: false,
            by_type: false,
            module_call: 0,
            site: 0,
            os_thread,
            current: 0,
            stack: Vec::with_capacity(64),
            edges: Edges::new(),
            spans: Vec::new(),
            room,
            dropped: 0,
        }
    }

    /// Says what the session wants of events beside the usual.
    pub(crate) fn wants(&mut self, has_timer: bool, by_type: bool, module_call: Key) {
        (self.has_timer, self.by_type, self.module_call) = (has_timer, by_type, module_call);
        self.set_busy(false);
    }

    /// Whether events need their key and the time, and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Says whether events are not the program's; what was said before.
    pub(crate) fn set_busy(&mut self, busy: bool) -> bool {
        let special = busy || self.has_timer || self.by_type || self.module_call != 0 || self.room > 0;
        self.plain = !special;
        std::mem::replace(&mut self.busy, busy)
    }

    /// The short way in, for a call that was made before, while [`Self::is_plain`]. False: nothing was done.
    #[inline(always)]
    pub(crate) fn enter_plainly(&mut self, key: impl FnOnce() -> Key, is_code: bool) -> bool {
        debug_assert!(self.plain);
        let key = key();
        let Some(edge) = self.edges.find(self.current, key) else { return false };
        self.current = self.edges.take(edge);
        let start = clock::now().0;
        self.stack.push(Open { start, inner: 0, leaves_as: key, edge, span: 0, is_code });
        true
    }

    /// The short way out, when the innermost call is what returned, while [`Self::is_plain`]. False: nothing was done.
    #[inline(always)]
    pub(crate) fn leave_plainly(&mut self, now: Ticks, is_it: impl FnOnce(&Open) -> bool) -> bool {
        match self.stack.last() {
            Some(open) if is_it(open) => {
                self.close(now);
                true
            }
            _ => false,
        }
    }

    /// The edge from the current function to `key`, when it was taken before.
    #[inline]
    pub(crate) fn edge_to(&self, key: Key) -> Option<u32> {
        self.edges.find(self.current, key)
    }

    /// The edge from the current function to one that it never called before.
    pub(crate) fn new_edge(&mut self, key: Key, id: FunctionId) -> u32 {
        self.edges.add(self.current, key, id)
    }

    /// Enters the function at the end of an edge of the current one.
    pub(crate) fn enter(&mut self, edge: u32, leaves_as: Key, is_code: bool, now: impl FnOnce() -> Ticks) {
        self.current = self.edges.take(edge);
        let span = match self.edges.function(self.current) {
            Some(function) if self.room > 0 => self.new_span(function),
            _ => 0,
        };
        // What was done so far is the caller's time, not the callee's; little is left to do.
        let start = now();
        self.stack.push(Open { start: start.0, inner: 0, leaves_as, edge, span, is_code });
        if span > 0 {
            self.spans[span as usize - 1].start = start;
        }
    }

    /// Whether calls are kept as spans, and want to know where they were made.
    #[inline]
    pub(crate) fn wants_sites(&self) -> bool {
        self.room > 0
    }

    fn new_span(&mut self, function: FunctionId) -> u32 {
        if self.spans.len() >= self.room {
            self.dropped += 1;
            return 0;
        }
        let parent = self.stack.last().map_or(0, |open| open.span);
        let site = std::mem::take(&mut self.site);
        self.spans.push(CallSpan { start: Ticks(0), end: Ticks(0), function, parent, site });
        self.spans.len() as u32
    }

    /// Leaves the innermost function, if that is what returned. A return that was not entered is passed over; when
    /// the returns of inner functions were not seen, they end now too.
    pub(crate) fn leave(&mut self, now: Ticks, leaves_as: Key) {
        match self.stack.last() {
            Some(open) if open.leaves_as == leaves_as => self.pop(now),
            Some(_) => self.unwind(now, leaves_as),
            None => {}
        }
    }

    /// Leaves the innermost Python function, and functions of C inside it whose returns were not seen.
    pub(crate) fn leave_code(&mut self, now: Ticks) {
        while let Some(open) = self.stack.last() {
            let is_code = open.is_code;
            self.pop(now);
            if is_code {
                return;
            }
        }
    }

    #[cold]
    fn unwind(&mut self, now: Ticks, leaves_as: Key) {
        if let Some(index) = self.stack.iter().rposition(|open| open.leaves_as == leaves_as) {
            while self.stack.len() > index {
                self.pop(now);
            }
        }
    }

    fn pop(&mut self, now: Ticks) {
        if let Some(span) = self.close(now).filter(|&span| span > 0) {
            self.spans[span as usize - 1].end = now;
        }
    }

    /// Ends the innermost call; its span.
    #[inline(always)]
    fn close(&mut self, now: Ticks) -> Option<u32> {
        let open = self.stack.pop()?;
        let total = now.0.wrapping_sub(open.start);
        self.current = self.edges.give_back(open.edge, total, open.inner);
        if let Some(outer) = self.stack.last_mut() {
            outer.inner = outer.inner.wrapping_add(total);
        }
        Some(open.span)
    }

    /// How many calls have not returned.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Ends everything that still runs, and hands over the sums: of each function, and of each caller and callee.
    pub(crate) fn finish(
        &mut self,
        now: Ticks,
        mut add: impl FnMut(Option<FunctionId>, FunctionId, Sums, Sums),
    ) {
        while self.depth() > 0 {
            self.pop(now);
        }
        // Calls and own time of a function are the sums of its edges; the rest is its own and handed over once.
        self.edges.drain(|caller, callee, edge, recursive, total| {
            add(caller, callee, edge, Sums { recursive, total, ..edge });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: Key = 0x100;
    const FIB: Key = 0x200;

    fn call(thread: &mut ThreadCalls, key: Key, at: u64) {
        let edge = thread.edge_to(key).unwrap_or_else(|| thread.new_edge(key, FunctionId(key as u32)));
        thread.enter(edge, key, true, || Ticks(at));
    }

    fn sums(thread: &mut ThreadCalls, now: u64) -> Vec<(Option<u32>, u32, Sums, Sums)> {
        let mut found = Vec::new();
        thread.finish(Ticks(now), |caller, callee, edge, function| {
            found.push((caller.map(|id| id.0), callee.0, edge, function));
        });
        found
    }

    #[test]
    fn recursion_counts_its_time_once() {
        let mut thread = ThreadCalls::new(1, 1, 0);
        call(&mut thread, MAIN, 0);
        call(&mut thread, FIB, 10);
        call(&mut thread, FIB, 20);
        thread.leave(Ticks(30), FIB);
        call(&mut thread, FIB, 30);
        thread.leave(Ticks(45), FIB);
        thread.leave(Ticks(50), FIB);
        thread.leave(Ticks(60), MAIN);
        let found = sums(&mut thread, 60);
        let of = |calls, recursive, own, total| Sums { calls, recursive, own, total };
        assert_eq!(found[0], (None, 0x100, of(1, 0, 20, 60), of(1, 0, 20, 60)));
        assert_eq!(found[1], (Some(0x100), 0x200, of(1, 0, 15, 40), of(1, 2, 15, 40)));
        assert_eq!(found[2], (Some(0x200), 0x200, of(2, 0, 25, 25), of(2, 0, 25, 0)));
    }

    #[test]
    fn returns_that_do_not_fit_do_no_harm() {
        let mut thread = ThreadCalls::new(1, 1, 0);
        thread.leave(Ticks(1), MAIN);
        call(&mut thread, MAIN, 2);
        thread.leave(Ticks(3), FIB);
        assert_eq!(thread.depth(), 1);
        call(&mut thread, FIB, 4);
        call(&mut thread, FIB, 5);
        thread.leave(Ticks(6), MAIN);
        assert_eq!(thread.depth(), 0, "what was inside has ended too");
    }

    #[test]
    fn many_callees_are_all_found_again() {
        let mut thread = ThreadCalls::new(1, 1, 10_000);
        call(&mut thread, MAIN, 0);
        for round in 0..3 {
            for key in 1..=1_000 {
                assert_eq!(thread.edge_to(key * 16).is_some(), round > 0 || key == 0);
                call(&mut thread, key * 16, 1);
                thread.leave(Ticks(2), key * 16);
            }
        }
        assert_eq!(thread.spans.len(), 3_001);
        assert!(thread.spans[1..].iter().all(|span| span.parent == 1));
        assert_eq!(sums(&mut thread, 9).len(), 1_001);
    }

    #[test]
    fn calls_beyond_the_room_are_counted() {
        let mut thread = ThreadCalls::new(1, 1, 2);
        for _ in 0..5 {
            call(&mut thread, MAIN, 0);
            thread.leave(Ticks(1), MAIN);
        }
        assert_eq!((thread.spans.len(), thread.dropped), (2, 3));
    }
}
