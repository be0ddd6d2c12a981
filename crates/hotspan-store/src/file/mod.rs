//! The `.hotspan` file.
