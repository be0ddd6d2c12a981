//! One stack of Python and native frames.
//!
//! Each native frame of the interpreter's evaluation loop stands for the Python frames that it runs: one on Python 3.10;
//! since 3.11 all from the frame that C called to the innermost one, as calls between Python functions stay in one loop.
//! Frames say where C called the interpreter (see `EntryRule`), so a chain falls into groups, and groups take the
//! places of loops. The interpreter's own functions between Python frames only pass calls on and are left out; those
//! above the last Python frame, such as a sort, are kept.

/// What a native frame is for the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Anything worth showing.
    Plain,
    /// The interpreter's evaluation loop.
    Evaluation,
    /// Another function of the interpreter.
    Interpreter,
    /// A function of the interpreter that only passes a call on.
    Passage,
    /// A function without a name.
    Nameless,
    /// The beginning of a thread.
    Root,
}

impl Role {
    /// The role of a function by its name and whether it is in the interpreter's library.
    pub(crate) fn of(function: &str, is_interpreter: bool) -> Self {
        const ROOTS: &[&str] = &[
            "_start",
            "__libc_start_main",
            "__libc_start_main_impl",
            "__libc_start_call_main",
            "start_thread",
            "clone",
            "clone3",
            "__clone",
            "__clone3",
            "main",
            "thread_start",
        ];
        const PASSAGES: &[&str] = &[
            "PyObject_Call",
            "_PyObject_Call",
            "_PyObject_MakeTpCall",
            "_PyEval_",
            "PyEval_",
            "cfunction_",
            "call_function",
            "do_call_core",
            "method_call",
            "object_vacall",
            "slot_tp_call",
            "type_call",
        ];
        if ROOTS.contains(&function) {
            Self::Root
        } else if function.starts_with('[') {
            Self::Nameless
        } else if !is_interpreter {
            Self::Plain
        } else if function.starts_with("_PyEval_EvalFrameDefault") {
            Self::Evaluation
        } else if function.contains("ectorcall") || PASSAGES.iter().any(|start| function.starts_with(start)) {
            Self::Passage
        } else {
            Self::Interpreter
        }
    }
}

/// Merges native frames and groups of Python frames, all innermost first.
///
/// A thread may be interrupted while it enters or leaves the loop, so both counts may differ. When the native stack
/// reaches its beginning, what is left over is innermost; when it broke off, what is left over is outermost.
pub(crate) fn merge<F: Copy + PartialEq>(native: &[(F, Role)], is_whole: bool, groups: &[Vec<F>]) -> Vec<F> {
    let loops = native.iter().filter(|(_, role)| *role == Role::Evaluation).count();
    let mut merged = Vec::new();
    let mut groups_left = groups.iter();
    // How many loops have no group yet, and how many groups lost their loop.
    let mut early = if is_whole { loops.saturating_sub(groups.len()) } else { 0 };
    let late = if is_whole && loops > 0 { groups.len().saturating_sub(loops) } else { 0 };
    let mut loops_seen = 0;
    // A thread begins in nameless functions of a C library without symbols; like the named ones they say nothing.
    let is_beginning = |(_, role): &(F, Role)| matches!(role, Role::Nameless | Role::Root);
    let inside = native.iter().rposition(|frame| !is_beginning(frame)).map_or(0, |last| last + 1);
    for &(frame, role) in native.iter().take(inside) {
        match role {
            // Of several in a row one is enough.
            Role::Nameless if merged.last() == Some(&frame) => {}
            Role::Plain | Role::Nameless => merged.push(frame),
            Role::Interpreter if loops_seen == 0 => merged.push(frame),
            Role::Interpreter | Role::Passage => {}
            Role::Root => {}
            Role::Evaluation => {
                loops_seen += 1;
                if early > 0 {
                    early -= 1;
                    continue;
                }
                let take = if loops_seen == 1 { 1 + late } else { 1 };
                for group in groups_left.by_ref().take(take) {
                    merged.extend(group);
                }
            }
        }
    }
    merged.extend(groups_left.flatten());
    if merged.is_empty() {
        merged.extend(native.first().map(|(frame, _)| *frame));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Evaluation, Interpreter, Nameless, Passage, Plain, Root};

    #[test]
    fn loops_become_python_frames() {
        let native = [
            ("sort", Plain),
            ("vectorcall", Passage),
            ("loop", Evaluation),
            ("call", Interpreter),
            ("apply", Plain),
            ("loop", Evaluation),
            ("run", Interpreter),
            ("_start", Root),
        ];
        let groups = [vec!["inner", "middle"], vec!["outer"]];
        assert_eq!(merge(&native, true, &groups), ["sort", "inner", "middle", "apply", "outer"]);
    }

    #[test]
    fn what_is_left_over_goes_where_it_belongs() {
        let entering = [("new", Evaluation), ("call", Passage), ("loop", Evaluation), ("_start", Root)];
        assert_eq!(merge(&entering, true, &[vec!["f"]]), ["f"]);
        let broken = [("sort", Plain), ("loop", Evaluation)];
        assert_eq!(merge(&broken, false, &[vec!["f"], vec!["g"]]), ["sort", "f", "g"]);
        let lost = [("sort", Plain)];
        assert_eq!(merge(&lost, false, &[vec!["f"]]), ["sort", "f"]);
        assert_eq!(merge(&[("_start", Root)], true, &[]), ["_start"]);
        assert_eq!(merge::<&str>(&[], false, &[]), [""; 0]);
    }

    #[test]
    fn nameless_functions_are_shown_once_and_not_at_the_beginning() {
        let native = [("?", Nameless), ("?", Nameless), ("work", Plain), ("?", Nameless), ("clone", Root)];
        assert_eq!(merge(&native, true, &[]), ["?", "work"]);
        assert_eq!(Role::of("[libc.so.6]", false), Nameless);
    }

    #[test]
    fn roles_by_name() {
        assert_eq!(Role::of("_PyEval_EvalFrameDefault", true), Evaluation);
        assert_eq!(Role::of("_PyEval_EvalFrameDefault", false), Plain);
        assert_eq!(Role::of("_PyFunction_Vectorcall", true), Passage);
        assert_eq!(Role::of("list_sort", true), Interpreter);
        assert_eq!(Role::of("dgemm_", false), Plain);
        assert_eq!(Role::of("clone3", false), Root);
    }
}
