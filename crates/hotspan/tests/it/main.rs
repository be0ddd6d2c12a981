//! What the program shows: torch's own texts, character for character.

#[cfg(test)]
#[path = "../../../hotspan-analyze/tests/it/kineto.rs"]
mod kineto;
#[cfg(test)]
mod torch_table;
