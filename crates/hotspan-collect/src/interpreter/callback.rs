//! Objects that the interpreter calls for events, without the steps around a function of C.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::interpreter::{Interpreter, Owned, Ptr};

/// A `vectorcallfunc`.
pub(crate) type VectorFunction = unsafe extern "C" fn(Ptr, *const Ptr, usize, Ptr) -> Ptr;

/// `PyMemberDef`, `PyType_Slot` and `PyType_Spec`, parts of the stable ABI.
#[repr(C)]
struct MemberDefinition {
    name: *const c_char,
    kind: c_int,
    offset: isize,
    flags: c_int,
    doc: *const c_char,
}

#[repr(C)]
struct TypeSlot {
    slot: c_int,
    function: *mut c_void,
}

#[repr(C)]
pub(crate) struct TypeSpecification {
    name: *const c_char,
    size: c_int,
    item_size: c_int,
    flags: std::ffi::c_uint,
    slots: *mut TypeSlot,
}

const TYPE_DEFAULT: std::ffi::c_uint = 1 << 18;
const TYPE_HAS_VECTORCALL: std::ffi::c_uint = 1 << 11;
const SLOT_MEMBERS: c_int = 72;
const SLOT_CALL: c_int = 50;
const MEMBER_SIZE: c_int = 19;
const READ_ONLY: c_int = 1;

impl Interpreter {
    /// An object that calls `function` through a pointer of its own, which follows its header. Python 3.12 or newer, where types outside of the interpreter may do so.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn callback(&'static self, function: VectorFunction) -> Option<Owned> {
        let mut members = [
            MemberDefinition {
                name: c"__vectorcalloffset__".as_ptr(),
                kind: MEMBER_SIZE,
                offset: self.header as isize,
                flags: READ_ONLY,
                doc: std::ptr::null(),
            },
            MemberDefinition { name: std::ptr::null(), kind: 0, offset: 0, flags: 0, doc: std::ptr::null() },
        ];
        let mut slots = [
            TypeSlot { slot: SLOT_MEMBERS, function: members.as_mut_ptr().cast() },
            TypeSlot { slot: SLOT_CALL, function: self.vectorcall as *mut c_void },
            TypeSlot { slot: 0, function: null_mut() },
        ];
        let mut specification = TypeSpecification {
            name: c"hotspan.Callback".as_ptr(),
            size: (self.header + size_of::<VectorFunction>()) as c_int,
            item_size: 0,
            flags: TYPE_DEFAULT | TYPE_HAS_VECTORCALL,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the interpreter copies what the specification says; the new object has room for the pointer.
        unsafe {
            let kind = Owned::new(self, (self.type_from)(&raw mut specification))?;
            let object = Owned::new(self, (self.allocate)(kind.0, 0))?;
            object.0.byte_add(self.header).cast::<VectorFunction>().write(function);
            Some(object)
        }
    }
}
