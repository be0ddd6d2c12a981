//! What one thread keeps while calls are traced: the functions it is in, and sums over those it has left.
//!
//! Entering costs a look at the function called last from the same place, or one probe of a table; leaving costs none. After
//! every pair of caller and callee has been seen once, nothing is allocated.

use hashbrown::HashMap;

use crate::clock::Ticks;

/// A function in the registry of the tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(crate) u32);

/// What tells a function from others: the address of its code object or C definition.
pub(crate) type Key = usize;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: u64,
    /// Ticks in functions called from it.
    inner: u64,
    /// What the event of its return will name.
    leaves_as: Key,
    edge: u32,
    span: u32,
    /// Python code, not a function of C.
    is_code: bool,
}

/// Calls from one function to another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    key: Key,
    caller: u32,
    callee: u32,
    depth: u32,
    calls: u64,
    recursive: u64,
    own: u64,
    total: u64,
}

/// A function this thread has been in. What edges add up to is not kept twice.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: FunctionId,
    /// How many of its calls have not returned.
    depth: u32,
    /// The edge that was taken last from here.
    last_edge: u32,
    recursive: u64,
    total: u64,
}

/// Sums in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) recursive: u64,
    pub(crate) own: u64,
    pub(crate) total: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.recursive += other.recursive;
        self.own = self.own.wrapping_add(other.own);
        self.total = self.total.wrapping_add(other.total);
    }
}

/// Where in its caller a call is made: a line, or where only that is known the complement of the instruction's offset in the
/// caller's code; 0: not known.
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
    pub(crate) os_thread: i64,
    /// An event is being handled that runs Python code; its events are not the program's.
    pub(crate) busy: bool,
    /// What the session wants of events beside the usual; any of it takes the long way in.
    pub(crate) has_timer: bool,
    pub(crate) by_type: bool,
    pub(crate) module_call: Key,
    /// Where the next call is made from.
    pub(crate) site: Site,
    /// The function this thread is in, a place in `known`.
    current: u32,
    stack: Vec<Open>,
    known: Vec<Known>,
    ids: HashMap<Key, u32>,
    edges: Vec<Edge>,
    slots: Vec<Slot>,
    pub(crate) spans: Vec<CallSpan>,
    /// How many spans may be kept; 0: none are wanted.
    room: usize,
    pub(crate) dropped: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: Key,
    caller: u32,
    /// Edge plus one; 0: free.
    edge: u32,
}

const NO_EDGE: u32 = u32::MAX;
const FIRST_SLOTS: usize = 64;

impl ThreadCalls {
    pub(crate) fn new(session: u64, os_thread: i64, room: usize) -> Self {
        // Whatever is called from outside is called from the first.
        let outside =
            Known { id: FunctionId(u32::MAX), depth: 0, last_edge: NO_EDGE, recursive: 0, total: 0 };
        Self {
            session,
            os_thread,
            busy: false,
            has_timer: false,
            by_type: false,
            module_call: 0,
            site: 0,
            current: 0,
            stack: Vec::with_capacity(64),
            known: vec![outside],
            ids: HashMap::new(),
            edges: Vec::new(),
            slots: vec![Slot::default(); FIRST_SLOTS],
            spans: Vec::new(),
            room,
            dropped: 0,
        }
    }

    #[inline]
    fn slot_of(caller: u32, key: Key) -> usize {
        // Addresses end in zeros; the upper bits of a product depend on all of the lower ones.
        let mixed = (key as u64 >> 4) ^ (u64::from(caller) << 40);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    /// The edge from the current function to `key`, when it was taken before.
    #[inline]
    pub(crate) fn edge_to(&self, key: Key) -> Option<u32> {
        // SAFETY: `current` is a place in `known`, and what `last_edge` names is a place in `edges` or the edge that is none.
        unsafe {
            let last = self.known.get_unchecked(self.current as usize).last_edge;
            if last != NO_EDGE && self.edges.get_unchecked(last as usize).key == key {
                return Some(last);
            }
        }
        self.search(key)
    }

    fn search(&self, key: Key) -> Option<u32> {
        let caller = self.current;
        let mask = self.slots.len() - 1;
        let mut at = Self::slot_of(caller, key) & mask;
        loop {
            let slot = self.slots[at];
            if slot.edge == 0 {
                return None;
            }
            if slot.key == key && slot.caller == caller {
                return Some(slot.edge - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// The edge from the current function to one that it never called before.
    #[cold]
    pub(crate) fn new_edge(&mut self, key: Key, id: FunctionId) -> u32 {
        let caller = self.current;
        let callee = match self.ids.get(&key) {
            Some(&callee) => callee,
            None => {
                let callee = self.known.len() as u32;
                self.known.push(Known { id, depth: 0, last_edge: NO_EDGE, recursive: 0, total: 0 });
                self.ids.insert(key, callee);
                callee
            }
        };
        let edge = self.edges.len() as u32;
        self.edges.push(Edge { key, caller, callee, depth: 0, calls: 0, recursive: 0, own: 0, total: 0 });
        if self.edges.len() * 2 > self.slots.len() {
            self.slots = vec![Slot::default(); self.slots.len() * 4];
            for (index, edge) in self.edges.iter().enumerate() {
                Self::put(
                    &mut self.slots,
                    Slot { key: edge.key, caller: edge.caller, edge: index as u32 + 1 },
                );
            }
        } else {
            Self::put(&mut self.slots, Slot { key, caller, edge: edge + 1 });
        }
        edge
    }

    fn put(slots: &mut [Slot], slot: Slot) {
        let mask = slots.len() - 1;
        let mut at = Self::slot_of(slot.caller, slot.key) & mask;
        while slots[at].edge != 0 {
            at = (at + 1) & mask;
        }
        slots[at] = slot;
    }

    /// Enters the function at the end of an edge of the current one.
    #[inline]
    pub(crate) fn enter(&mut self, edge: u32, leaves_as: Key, is_code: bool, now: impl FnOnce() -> Ticks) {
        debug_assert!((edge as usize) < self.edges.len());
        let caller = self.current;
        let mut span = 0;
        // SAFETY: an edge comes from `edge_to` or `new_edge`, so that it and the functions at its ends are known.
        unsafe {
            self.known.get_unchecked_mut(caller as usize).last_edge = edge;
            let taken = self.edges.get_unchecked_mut(edge as usize);
            taken.depth += 1;
            self.current = taken.callee;
            let callee = self.known.get_unchecked_mut(taken.callee as usize);
            callee.depth += 1;
            if self.room > 0 {
                let id = callee.id;
                span = self.new_span(id);
            }
        }
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
    #[inline]
    pub(crate) fn leave(&mut self, now: Ticks, leaves_as: Key) {
        match self.stack.last() {
            Some(open) if open.leaves_as == leaves_as => self.pop(now),
            Some(_) => self.unwind(now, leaves_as),
            None => {}
        }
    }

    /// Leaves the innermost Python function, and functions of C inside it whose returns were not seen.
    #[inline]
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
        if let Some(place) = self.stack.iter().rposition(|open| open.leaves_as == leaves_as) {
            while self.stack.len() > place {
                self.pop(now);
            }
        }
    }

    #[inline]
    fn pop(&mut self, now: Ticks) {
        let Some(open) = self.stack.pop() else { return };
        let total = now.0.wrapping_sub(open.start);
        // SAFETY: an open call names an edge that is there, and edges and functions are never taken out.
        unsafe {
            let edge = self.edges.get_unchecked_mut(open.edge as usize);
            self.current = edge.caller;
            edge.calls += 1;
            edge.own = edge.own.wrapping_add(total).wrapping_sub(open.inner);
            edge.depth -= 1;
            if edge.depth == 0 {
                edge.total = edge.total.wrapping_add(total);
            } else {
                edge.recursive += 1;
            }
            let callee = self.known.get_unchecked_mut(edge.callee as usize);
            callee.depth -= 1;
            if callee.depth == 0 {
                callee.total = callee.total.wrapping_add(total);
            } else {
                callee.recursive += 1;
            }
        }
        if let Some(outer) = self.stack.last_mut() {
            outer.inner = outer.inner.wrapping_add(total);
        }
        if open.span > 0 {
            self.spans[open.span as usize - 1].end = now;
        }
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
        for edge in &self.edges {
            let callee = &mut self.known[edge.callee as usize];
            let of_edge =
                Sums { calls: edge.calls, recursive: edge.recursive, own: edge.own, total: edge.total };
            // Calls and own time of a function are the sums of its edges; the rest is its own and handed over once.
            let recursive = std::mem::take(&mut callee.recursive);
            let total = std::mem::take(&mut callee.total);
            let of_callee = Sums { recursive, total, ..of_edge };
            let callee = callee.id;
            let caller = (edge.caller != 0).then(|| self.known[edge.caller as usize].id);
            add(caller, callee, of_edge, of_callee);
        }
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
