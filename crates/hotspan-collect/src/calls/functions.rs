//! The functions that were called: kept alive while their addresses tell them apart, and named when someone asks.

use hashbrown::HashMap;

use crate::calls::thread::{FunctionId, Key};
use crate::interpreter::{Interpreter, Owned, Ptr, text_attribute};

/// What kind of function it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Python code; the object is the code.
    Code,
    /// A function of C.
    Builtin {
        /// As cProfile names it: `<built-in method builtins.len>`.
        label: String,
        /// As torch.profiler names it, less the address: `<built-in function len>`.
        span_name: String,
    },
    /// Python code that was running already, at a line.
    Running { line: u32 },
    /// A call of an `nn.Module`, by class and number.
    Module { class: String, number: u32 },
}

/// A function in the registry.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) kind: Kind,
    /// What must not go away while the key is in use; our own reference.
    object: Ptr,
}

/// All functions that were called.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    rows: Vec<Function>,
    by_key: HashMap<Key, FunctionId>,
    /// How many modules of a class have been met.
    modules: HashMap<String, u32>,
}

// SAFETY: a registry is moved with its tracer. Its objects are used by methods that demand the GIL, on whichever thread.
unsafe impl Send for Functions {}

/// Name, file and line of a function, as pstats shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label {
    pub(crate) file: String,
    pub(crate) first_line: u32,
    pub(crate) name: String,
    pub(crate) is_builtin: bool,
}

impl Functions {
    pub(crate) fn find(&self, key: Key) -> Option<FunctionId> {
        self.by_key.get(&key).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&self, id: FunctionId) -> Option<&Function> {
        self.rows.get(id.0 as usize)
    }

    /// Adds a function; the reference to `object` passes to the registry.
    pub(crate) fn add(&mut self, key: Key, mut kind: Kind, object: Ptr) -> FunctionId {
        if let Kind::Module { class, number } = &mut kind {
            let next = self.modules.entry(class.clone()).or_insert(0);
            *number = *next;
            *next += 1;
        }
        let id = FunctionId(self.rows.len() as u32);
        self.rows.push(Function { kind, object });
        self.by_key.insert(key, id);
        id
    }

    /// Lets a second key stand for a function.
    pub(crate) fn alias(&mut self, key: Key, id: FunctionId) {
        self.by_key.entry(key).or_insert(id);
    }

    /// Forgets all; the caller gives the references back, which may run Python code.
    #[must_use]
    pub(crate) fn take_objects(&mut self) -> Vec<Ptr> {
        self.by_key.clear();
        self.modules.clear();
        self.rows.drain(..).map(|function| function.object).collect()
    }
}

impl Function {
    /// The code object, for Python code.
    pub(crate) fn code(&self) -> Option<Ptr> {
        matches!(self.kind, Kind::Code | Kind::Running { .. }).then_some(self.object)
    }

    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn label(&self, python: &'static Interpreter) -> Label {
        match &self.kind {
            Kind::Code | Kind::Running { .. } => {
                // SAFETY: the caller holds the GIL; the object of this kind is a code object, and the row's reference
                // keeps it alive.
                let (file, line, name) = unsafe { describe_code(python, self.object, c"co_name") };
                Label { file, first_line: line, name, is_builtin: false }
            }
            Kind::Builtin { label, .. } => {
                Label { file: "~".to_owned(), first_line: 0, name: label.clone(), is_builtin: true }
            }
            Kind::Module { .. } => {
                let name = self.module_name().unwrap_or_default();
                Label { file: String::new(), first_line: 0, name, is_builtin: false }
            }
        }
    }

    fn module_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Module { class, number } => Some(format!("nn.Module: {class}_{number}")),
            _ => None,
        }
    }

    /// The number of a module among those of its class.
    pub(crate) fn module_number(&self) -> Option<u32> {
        match self.kind {
            Kind::Module { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The file of its code without one of the prefixes; `None` for functions of C.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn short_file(
        &self,
        python: &'static Interpreter,
        prefixes: &[String],
    ) -> Option<String> {
        // SAFETY: the caller holds the GIL; what `code` returns is a code object that the row keeps alive.
        let (file, ..) = unsafe { describe_code(python, self.code()?, c"co_name") };
        Some(without_prefix(&file, prefixes).to_owned())
    }

    /// The line of an instruction of its code, by its offset.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn line_at(&self, python: &'static Interpreter, offset: i32) -> Option<i32> {
        let (code, line_of) = (self.code()?, python.code_line);
        // SAFETY: the caller holds the GIL, and the row's reference keeps the code object alive; offsets beyond its end
        // have no line.
        Some(unsafe { line_of(code, offset) }).filter(|&line| line > 0)
    }

    /// The name of its spans, as torch.profiler writes them.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn span_name(&self, python: &'static Interpreter, prefixes: &[String]) -> String {
        match &self.kind {
            Kind::Builtin { span_name, .. } => span_name.clone(),
            Kind::Module { .. } => self.module_name().unwrap_or_default(),
            Kind::Code | Kind::Running { .. } => {
                // SAFETY: the caller holds the GIL; the object of this kind is a code object, and the row's reference
                // keeps it alive.
                let (file, first_line, name) = unsafe { describe_code(python, self.object, c"co_name") };
                let line = if let Kind::Running { line } = self.kind { line } else { first_line };
                let short = without_prefix(&file, prefixes);
                format!("{short}({line}): {name}")
            }
        }
    }
}

/// A file without the longest prefix that it has.
fn without_prefix<'a>(file: &'a str, prefixes: &[String]) -> &'a str {
    let rests = prefixes.iter().filter_map(|prefix| file.strip_prefix(prefix.as_str()));
    rests.min_by_key(|rest| rest.len()).unwrap_or(file)
}

unsafe fn describe_code(
    python: &'static Interpreter,
    code: Ptr,
    name: &std::ffi::CStr,
) -> (String, u32, String) {
    // SAFETY: the methods that call this hold the GIL and keep the code object alive; the new references are owned.
    unsafe {
        let file = text_attribute(python, code, c"co_filename").unwrap_or_default();
        let line = Owned::new(python, (python.get_attribute)(code, c"co_firstlineno".as_ptr()))
            .map_or(0, |line| (python.as_long)(line.0));
        (python.clear_error)();
        let name = text_attribute(python, code, name).unwrap_or_default();
        (file, u32::try_from(line).unwrap_or(0), name)
    }
}

/// Our profiler has the name of cProfile's in tables: `disable` is in all of them, and columns are as wide as the widest name.
const OWN_TYPE: &str = "'hotspan._core.CallProfiler'";
const LSPROF_TYPE: &str = "'_lsprof.Profiler'";

/// Names a function of C and says what keeps its definition alive (a new reference). May run Python code.
///
/// # Safety
/// The GIL is held and `function` is a live C function.
pub(crate) unsafe fn describe_builtin(python: &'static Interpreter, function: Ptr) -> (Kind, Ptr) {
    // SAFETY: all objects used are live: borrowed from `function` or owned here.
    unsafe {
        let name = text_attribute(python, function, c"__name__").unwrap_or_else(|| "?".to_owned());
        let module = text_attribute(python, function, c"__module__");
        let shown = Owned::new(python, (python.repr)(function)).and_then(|shown| python.text(shown.0));
        let span_name = without_address(shown.unwrap_or_else(|| format!("<built-in function {name}>")));
        if !python.is_c_function(function) {
            let kind = Kind::Builtin { label: span_name.clone(), span_name };
            return (kind, python.new_reference(function));
        }
        let in_module = |shape: &str| match &module {
            Some(module) if !shape.is_empty() || module != "builtins" => format!("<{shape}{module}.{name}>"),
            _ => format!("<{shape}{name}>"),
        };
        let object = (python.c_self)(function);
        (python.clear_error)();
        if object.is_null() {
            // Static methods do not tell their class, but they show that they have one.
            let shape = if span_name.starts_with("<built-in method") { "built-in method " } else { "" };
            return (Kind::Builtin { label: in_module(shape), span_name }, python.new_reference(function));
        }
        let owner = python.type_of(object);
        let is_of_module = owner == python.module_type;
        // A method of a type is shown as the type shows it. The definition then belongs to the type, and the object it
        // is bound to may go away.
        let attribute = crate::interpreter::c_text(&name);
        let in_type = match is_of_module {
            true => None,
            false => Owned::new(python, (python.get_attribute)(owner, attribute.as_ptr())),
        };
        if let Some(method) = in_type
            && let Some(shown) = Owned::new(python, (python.repr)(method.0))
            && let Some(label) = python.text(shown.0)
        {
            let label = label.replace(OWN_TYPE, LSPROF_TYPE);
            return (Kind::Builtin { label, span_name }, python.new_reference(owner));
        }
        let kind = Kind::Builtin { label: in_module("built-in method "), span_name };
        (kind, python.new_reference(function))
    }
}

/// `<built-in method sum of Tensor object at 0x7f…>` without where the object is, which differs from run to run.
fn without_address(shown: String) -> String {
    match shown.find(" at 0x") {
        Some(at) => format!("{}>", &shown[..at]),
        None => shown,
    }
}
