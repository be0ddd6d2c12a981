//! Which functions called which, on one thread: a row per pair of caller and callee, found again by a look at the pair that
//! was taken last from the same caller, or by a probe of a table.

use hashbrown::HashMap;

/// A function in the registry of the tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(crate) u32);

/// What tells a function from others: the address of its code object or C definition.
pub(crate) type Key = usize;

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

/// Calls from one function to another. One line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Edge {
    pub(crate) key: Key,
    pub(crate) caller: u32,
    pub(crate) callee: u32,
    pub(crate) sums: Sums,
    /// How many calls have not returned.
    pub(crate) depth: u32,
}

/// A function this thread has been in. What edges add up to is not kept twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visited {
    pub(crate) id: FunctionId,
    /// How many of its calls have not returned.
    pub(crate) depth: u32,
    /// The edge that was taken last from here.
    pub(crate) last_edge: u32,
    pub(crate) recursive: u64,
    pub(crate) total: u64,
}

impl Visited {
    fn new(id: FunctionId) -> Self {
        Self { id, depth: 0, last_edge: 0, recursive: 0, total: 0 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: Key,
    caller: u32,
    /// 0: free.
    edge: u32,
}

/// The functions of a thread and the calls between them.
#[derive(Debug)]
pub(crate) struct Edges {
    visited: Vec<Visited>,
    ids: HashMap<Key, u32>,
    /// The first is none: its key is nobody's.
    edges: Vec<Edge>,
    slots: Vec<Slot>,
}

const FIRST_SLOTS: usize = 64;

impl Edges {
    pub(crate) fn new() -> Self {
        // Whatever is called from outside is called from the first.
        let none = Edge { key: 0, caller: 0, callee: 0, sums: Sums::default(), depth: 0 };
        Self {
            visited: vec![Visited::new(FunctionId(u32::MAX))],
            ids: HashMap::new(),
            edges: vec![none],
            slots: vec![Slot::default(); FIRST_SLOTS],
        }
    }

    #[inline]
    fn slot_of(caller: u32, key: Key) -> usize {
        // Addresses end in zeros; the upper bits of a product depend on all of the lower ones.
        let mixed = (key as u64 >> 4) ^ (u64::from(caller) << 40);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    /// The edge from `caller` to `key`, when it was taken before.
    #[inline(always)]
    pub(crate) fn find(&self, caller: u32, key: Key) -> Option<u32> {
        // SAFETY: `caller` is 0 or came from `take` or `give_back`, so it is an index into `visited`; its last edge was set by
        // `take` to an index into `edges`, or is 0, which is one. Neither list ever shrinks.
        unsafe {
            let last = self.visited.get_unchecked(caller as usize).last_edge;
            if self.edges.get_unchecked(last as usize).key == key {
                return Some(last);
            }
        }
        self.search(caller, key)
    }

    #[inline(never)]
    fn search(&self, caller: u32, key: Key) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = Self::slot_of(caller, key) & mask;
        loop {
            let slot = self.slots[at];
            if slot.edge == 0 {
                return None;
            }
            if slot.key == key && slot.caller == caller {
                return Some(slot.edge);
            }
            at = (at + 1) & mask;
        }
    }

    /// A new edge.
    #[cold]
    pub(crate) fn add(&mut self, caller: u32, key: Key, id: FunctionId) -> u32 {
        let callee = *self.ids.entry(key).or_insert_with(|| {
            self.visited.push(Visited::new(id));
            self.visited.len() as u32 - 1
        });
        let edge = self.edges.len() as u32;
        self.edges.push(Edge { key, caller, callee, ..self.edges[0] });
        if self.edges.len() * 2 > self.slots.len() {
            self.slots = vec![Slot::default(); self.slots.len() * 4];
            for (index, edge) in self.edges.iter().enumerate().skip(1) {
                Self::put(&mut self.slots, Slot { key: edge.key, caller: edge.caller, edge: index as u32 });
            }
        } else {
            Self::put(&mut self.slots, Slot { key, caller, edge });
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

    /// Takes an edge: a call begins. The function that is called.
    #[inline(always)]
    pub(crate) fn take(&mut self, edge: u32) -> u32 {
        debug_assert!((edge as usize) < self.edges.len());
        // SAFETY: `edge` comes from `find` or `add`, so it is an index into `edges`; `add` made its caller and callee indices
        // into `visited`. Neither list ever shrinks.
        unsafe {
            let taken = self.edges.get_unchecked_mut(edge as usize);
            taken.depth += 1;
            self.visited.get_unchecked_mut(taken.caller as usize).last_edge = edge;
            self.visited.get_unchecked_mut(taken.callee as usize).depth += 1;
            taken.callee
        }
    }

    /// The call ends that took an edge. The function that made it.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, edge: u32, total: u64, inner: u64) -> u32 {
        debug_assert!((edge as usize) < self.edges.len());
        // SAFETY: as in `take`, to which this edge was given before.
        unsafe {
            let taken = self.edges.get_unchecked_mut(edge as usize);
            taken.sums.calls += 1;
            taken.sums.own = taken.sums.own.wrapping_add(total).wrapping_sub(inner);
            taken.depth -= 1;
            if taken.depth == 0 {
                taken.sums.total = taken.sums.total.wrapping_add(total);
            } else {
                taken.sums.recursive += 1;
            }
            let callee = self.visited.get_unchecked_mut(taken.callee as usize);
            callee.depth -= 1;
            if callee.depth == 0 {
                callee.total = callee.total.wrapping_add(total);
            } else {
                callee.recursive += 1;
            }
            taken.caller
        }
    }

    /// The function at an index; the first is none.
    #[inline]
    pub(crate) fn function(&self, index: u32) -> Option<FunctionId> {
        (index != 0).then(|| self.visited[index as usize].id)
    }

    /// Every edge with the sums that only its callee has, which are handed out once and then forgotten.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Option<FunctionId>, FunctionId, Sums, u64, u64)) {
        for edge in &self.edges[1..] {
            let caller = self.function(edge.caller);
            let callee = &mut self.visited[edge.callee as usize];
            let recursive = std::mem::take(&mut callee.recursive);
            let total = std::mem::take(&mut callee.total);
            each(caller, callee.id, edge.sums, recursive, total);
        }
    }
}
