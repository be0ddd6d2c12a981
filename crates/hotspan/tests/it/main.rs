//! What the program shows: torch's own texts, character for character.

#[cfg(test)]
#[path = "../../../hotspan-analyze/tests/it/kineto.rs"]
mod kineto;
#[cfg(test)]
mod line_text;
#[cfg(test)]
#[path = "../../../hotspan-formats/tests/it/mutations.rs"]
mod mutations;
#[cfg(test)]
mod torch_table;
