//! The variables of a frame, as short texts.

use super::Frame;
use super::error::SamplerError;
use super::reader::ProcessReader;
use crate::cpython::{Address, Integer, Memory, Objects, half_at};

/// More variables, longer texts and longer lists than these are cut; texts and lists may be longer the more is asked for.
const MOST_VARIABLES: usize = 200;
const LONGEST_TEXT: usize = 120;
const MOST_ITEMS: usize = 5;
const DEEPEST: usize = 2;

/// A local variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, shortened.
    pub value: String,
    /// Where the value is.
    pub address: Address,
    /// Whether it is an argument that has a position.
    pub is_argument: bool,
}

/// The local variables of a frame; those not assigned yet are left out. `detail` is 1 or more: how many times longer than
/// usual values may be. The frame may end while it is read: then values are missing or wrong, but nothing else happens.
///
/// # Errors
/// When the frame cannot be read any more.
pub fn of_frame(reader: &ProcessReader, frame: &Frame, detail: u8) -> Result<Vec<Variable>, SamplerError> {
    of_frame_in(&reader.objects(), frame, detail)
}

pub(super) fn of_frame_in<M: Memory>(
    objects: &Objects<'_, M>,
    frame: &Frame,
    detail: u8,
) -> Result<Vec<Variable>, M::Error> {
    let Objects { memory, offsets } = objects;
    let code = Address(memory.word(frame.address.field(offsets.frame_code))? & !7);
    let names = memory.pointer(code.field(offsets.code_local_names))?;
    let names = objects.tuple(names, MOST_VARIABLES)?;
    let arguments = half_at(&memory.bytes(code.field(offsets.code_argument_count), 4)?, 0) as usize;
    let values = objects.pointers(frame.address.field(offsets.frame_locals), names.len())?;
    let shown = Shown { objects, detail: usize::from(detail.max(1)) };
    let mut found = Vec::new();
    for (index, (name, value)) in names.into_iter().zip(values).enumerate() {
        let address = Address(value.0 & !3);
        if !address.is_null() {
            let value = shown.text(address, 0).unwrap_or_else(|_| "?".to_owned());
            found.push(Variable {
                name: objects.text(name)?,
                value,
                address,
                is_argument: index < arguments,
            });
        }
    }
    Ok(found)
}

struct Shown<'a, M> {
    objects: &'a Objects<'a, M>,
    detail: usize,
}

impl<M: Memory> Shown<'_, M> {
    fn text(&self, value: Address, depth: usize) -> Result<String, M::Error> {
        let objects = self.objects;
        let most_items = MOST_ITEMS * self.detail;
        let listed = |shown: Vec<String>, length: usize, open: &str, close: &str| {
            let more = if length > most_items { format!(", … {length} in all") } else { String::new() };
            format!("{open}{}{more}{close}", shown.join(", "))
        };
        let inner = |item: Address| self.text(item, depth + 1);
        let kind = objects.type_name(value)?;
        Ok(match kind.as_str() {
            "NoneType" => "None".to_owned(),
            "bool" if objects.integer(value)?.magnitude == Some(0) => "False".to_owned(),
            "bool" => "True".to_owned(),
            "int" => {
                let Integer { is_negative, bits, magnitude } = objects.integer(value)?;
                let sign = if is_negative { "-" } else { "" };
                match magnitude {
                    Some(magnitude) => format!("{sign}{magnitude}"),
                    None => format!("{sign}<an integer of {bits} bits>"),
                }
            }
            "float" => {
                let bits = objects.memory.word(value.field(objects.offsets.float_value))?;
                format!("{:?}", f64::from_bits(bits))
            }
            "str" => {
                let text = objects.text(value)?;
                let longest = LONGEST_TEXT * self.detail;
                if text.chars().count() > longest {
                    format!("{:?}…", text.chars().take(longest).collect::<String>())
                } else {
                    format!("{text:?}")
                }
            }
            "list" | "tuple" if depth < DEEPEST => {
                let (items, open, close) = match kind.as_str() {
                    "list" => (objects.list(value, most_items)?, "[", "]"),
                    _ => (objects.tuple(value, most_items)?, "(", ")"),
                };
                let shown = items.into_iter().map(inner).collect::<Result<_, _>>()?;
                listed(shown, objects.length(value)?, open, close)
            }
            "dict" if depth < DEEPEST => {
                let all = objects.dict(value)?;
                let pair =
                    |&(key, item): &(Address, Address)| Ok(format!("{}: {}", inner(key)?, inner(item)?));
                let shown = all.iter().take(most_items).map(pair).collect::<Result<_, _>>()?;
                listed(shown, all.len(), "{", "}")
            }
            _ => match kind.strip_prefix("numpy.").map(|scalar| self.scalar(scalar, value)).transpose()? {
                Some(Some(text)) => text,
                _ => format!("<{kind} at {:#x}>", value.0),
            },
        })
    }

    /// A number of NumPy. Its bytes come right after what every object begins with, as those of a `float` do.
    fn scalar(&self, kind: &str, value: Address) -> Result<Option<String>, M::Error> {
        let bytes = self.objects.memory.bytes(value.field(self.objects.offsets.float_value), 8)?;
        let Ok(word) = <[u8; 8]>::try_from(bytes.as_slice()) else { return Ok(None) };
        let word = u64::from_le_bytes(word);
        Ok(Some(match kind {
            // `bool_` to NumPy 1.
            "bool" | "bool_" if word as u8 == 0 => "False".to_owned(),
            "bool" | "bool_" => "True".to_owned(),
            "uint8" => (word as u8).to_string(),
            "uint16" => (word as u16).to_string(),
            "uint32" => (word as u32).to_string(),
            "uint64" | "ulonglong" => word.to_string(),
            "int8" => (word as u8).cast_signed().to_string(),
            "int16" => (word as u16).cast_signed().to_string(),
            "int32" => (word as u32).cast_signed().to_string(),
            "int64" | "longlong" => word.cast_signed().to_string(),
            "float32" => format!("{:?}", f32::from_bits(word as u32)),
            "float64" => format!("{:?}", f64::from_bits(word)),
            _ => return Ok(None),
        }))
    }
}
