//! `getters!`: the attributes of a Python class as a list, one line for each.

/// Makes the one `#[pymethods]` block of a class: its attributes by name, type and value, then its other methods.
macro_rules! getters {
    ($class:ty {
        $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*
    } $($methods:tt)*) => {
        #[pymethods]
        impl $class {
            $($(#[$doc])* #[getter] fn $name(&self) -> $type {
                let value: fn(&$class) -> $type = $value;
                value(self)
            })*

            $($methods)*
        }
    };
}

pub(crate) use getters;
