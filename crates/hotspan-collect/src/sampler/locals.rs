//! The variables of a frame, as short texts.

use super::Frame;
use super::error::SamplerError;
use super::reader::ProcessReader;
use crate::cpython::{Address, Integer, Memory, Objects};

/// More variables, longer texts and longer lists than these are cut.
const MOST_VARIABLES: usize = 200;
const LONGEST_TEXT: usize = 120;
const MOST_ITEMS: usize = 5;
const DEEPEST: usize = 2;

/// Names and values of the local variables of a frame; those not assigned yet are left out. The frame may end while it is
/// read: then values are missing or wrong, but nothing else happens.
///
/// # Errors
/// When the frame cannot be read any more.
pub fn of_frame(reader: &ProcessReader, frame: &Frame) -> Result<Vec<(String, String)>, SamplerError> {
    let objects = reader.objects();
    let Objects { memory, offsets } = &objects;
    let code = Address(memory.word(frame.address.field(offsets.frame_code))? & !7);
    let names = memory.pointer(code.field(offsets.code_local_names))?;
    let names = objects.tuple(names, MOST_VARIABLES)?;
    let values = objects.pointers(frame.address.field(offsets.frame_locals), names.len())?;
    let mut shown = Vec::new();
    for (name, value) in names.into_iter().zip(values) {
        let value = Address(value.0 & !3);
        if !value.is_null() {
            let text = show(&objects, value, 0).unwrap_or_else(|_| "?".to_owned());
            shown.push((objects.text(name)?, text));
        }
    }
    Ok(shown)
}

fn show<M: Memory>(objects: &Objects<'_, M>, value: Address, depth: usize) -> Result<String, M::Error> {
    let listed = |shown: Vec<String>, length: usize, open: &str, close: &str| {
        let more = if length > MOST_ITEMS { format!(", … {length} in all") } else { String::new() };
        format!("{open}{}{more}{close}", shown.join(", "))
    };
    let inner = |item: Address| show(objects, item, depth + 1);
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
            if text.chars().count() > LONGEST_TEXT {
                format!("{:?}…", text.chars().take(LONGEST_TEXT).collect::<String>())
            } else {
                format!("{text:?}")
            }
        }
        "list" | "tuple" if depth < DEEPEST => {
            let (items, open, close) = match kind.as_str() {
                "list" => (objects.list(value, MOST_ITEMS)?, "[", "]"),
                _ => (objects.tuple(value, MOST_ITEMS)?, "(", ")"),
            };
            let shown = items.into_iter().map(inner).collect::<Result<_, _>>()?;
            listed(shown, objects.length(value)?, open, close)
        }
        "dict" if depth < DEEPEST => {
            let all = objects.dict(value)?;
            let pair = |&(key, item): &(Address, Address)| Ok(format!("{}: {}", inner(key)?, inner(item)?));
            let shown = all.iter().take(MOST_ITEMS).map(pair).collect::<Result<_, _>>()?;
            listed(shown, all.len(), "{", "}")
        }
        _ => format!("<{kind} at {:#x}>", value.0),
    })
}
