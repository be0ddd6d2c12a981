//! The variables of a frame, as short texts.

use super::error::SamplerError;
use super::memory::{Address, half_at, word_at};
use super::objects::Objects;
use super::reader::Reader;
use super::{Frame, names};

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
pub fn of_frame(reader: &Reader, frame: &Frame) -> Result<Vec<(String, String)>, SamplerError> {
    let interpreter = reader.interpreter();
    let layout = &interpreter.layout;
    let objects = Objects { memory: reader.memory(), layout };
    let code = Address(reader.memory().word(frame.address.plus(layout.frame_code as u64))? & !7);
    let names = reader.memory().pointer(code.plus(layout.code_local_names as u64))?;
    let names = objects.tuple(names, MOST_VARIABLES)?;
    let values = objects.pointers(frame.address.plus(layout.frame_locals as u64), names.len())?;
    let minor = interpreter.version.minor;
    let mut shown = Vec::new();
    for (name, value) in names.into_iter().zip(values) {
        let value = Address(value.0 & !3);
        if !value.is_null() {
            let text = show(&objects, value, minor, 0).unwrap_or_else(|_| "?".to_owned());
            shown.push((objects.text(name)?, text));
        }
    }
    Ok(shown)
}

fn show(objects: &Objects<'_>, value: Address, minor: u8, depth: usize) -> Result<String, SamplerError> {
    let (kind, _) = objects.type_of(value)?;
    let items =
        |items: Vec<Address>, length: usize, open: &str, close: &str| -> Result<String, SamplerError> {
            let shown: Result<Vec<_>, _> =
                items.into_iter().map(|item| show(objects, item, minor, depth + 1)).collect();
            let more = if length > MOST_ITEMS { format!(", … {length} in all") } else { String::new() };
            Ok(format!("{open}{}{more}{close}", shown?.join(", ")))
        };
    Ok(match kind.as_str() {
        "NoneType" => "None".to_owned(),
        "bool" => match names::integer(objects, value, minor)? {
            Some(0) => "False".to_owned(),
            _ => "True".to_owned(),
        },
        "int" => integer(objects, value, minor)?,
        "float" => {
            let bits = objects.memory.word(value.plus(objects.layout.float_value as u64))?;
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
        "list" if depth < DEEPEST => {
            items(objects.list(value, MOST_ITEMS)?, objects.length(value)?, "[", "]")?
        }
        "tuple" if depth < DEEPEST => {
            items(objects.tuple(value, MOST_ITEMS)?, objects.length(value)?, "(", ")")?
        }
        "dict" if depth < DEEPEST => {
            let all = objects.dict(value, minor, 10_000)?;
            let mut shown = Vec::new();
            for &(key, item) in all.iter().take(MOST_ITEMS) {
                let (key, item) =
                    (show(objects, key, minor, depth + 1)?, show(objects, item, minor, depth + 1)?);
                shown.push(format!("{key}: {item}"));
            }
            let more =
                if all.len() > MOST_ITEMS { format!(", … {} in all", all.len()) } else { String::new() };
            format!("{{{}{more}}}", shown.join(", "))
        }
        _ => format!("<{kind} at {:#x}>", value.0),
    })
}

fn integer(objects: &Objects<'_>, value: Address, minor: u8) -> Result<String, SamplerError> {
    let layout = objects.layout;
    let header = objects.memory.bytes(value, layout.integer_digits)?;
    let tag = word_at(&header, layout.integer_tag);
    let (count, negative) =
        if minor >= 12 { (tag >> 3, tag & 3 == 2) } else { ((tag as i64).unsigned_abs(), (tag as i64) < 0) };
    let sign = if negative { "-" } else { "" };
    if count > 4 {
        return Ok(format!("{sign}<an integer of {} bits>", count.saturating_mul(30)));
    }
    let digits = objects.memory.bytes(value.plus(layout.integer_digits as u64), count as usize * 4)?;
    let number =
        digits.chunks_exact(4).rev().fold(0_u128, |sum, digit| (sum << 30) | u128::from(half_at(digit, 0)));
    Ok(format!("{sign}{number}"))
}
