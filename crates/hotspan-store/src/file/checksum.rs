//! The checksum of a chunk: over names, types and values, not over Arrow's bytes, so that any Arrow library can compute
//! it and padding does not matter.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use crc32fast::Hasher;

use crate::file::schema::describe;

/// What a chunk hashes to, and how many bytes went in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    pub(super) crc: u32,
    pub(super) bytes: u64,
}

/// The checksum of these columns, in this order. `None`: a type that `.hotspan` files do not use.
pub(super) fn checksum<'a>(columns: impl Iterator<Item = (&'a Field, &'a ArrayRef)>) -> Option<Checksum> {
    let mut sum = Sum { hasher: Hasher::new(), bytes: 0 };
    for (field, values) in columns {
        sum.feed(field.name().as_bytes());
        sum.feed(b":");
        sum.feed(describe(field.data_type()).as_bytes());
        sum.feed(b"\n");
        sum.array(values.as_ref())?;
    }
    Some(Checksum { crc: sum.hasher.finalize(), bytes: sum.bytes })
}

struct Sum {
    hasher: Hasher,
    bytes: u64,
}

impl Sum {
    fn feed(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn array(&mut self, array: &dyn Array) -> Option<()> {
        self.feed(&(array.len() as u64).to_le_bytes());
        match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list_opt::<i32>()?;
                let offsets = list.value_offsets();
                self.lengths(offsets);
                let (first, last) = (*offsets.first()? as usize, *offsets.last()? as usize);
                self.array(list.values().slice(first, last - first).as_ref())?;
            }
            DataType::Utf8 => {
                let text = array.as_string_opt::<i32>()?;
                let offsets = text.value_offsets();
                self.lengths(offsets);
                let (first, last) = (*offsets.first()? as usize, *offsets.last()? as usize);
                self.feed(text.value_data().get(first..last)?);
            }
            DataType::Struct(_) => {
                for column in array.as_struct_opt()?.columns() {
                    self.array(column.as_ref())?;
                }
            }
            plain => {
                let width = plain.primitive_width()?;
                let data = array.to_data();
                let values = data.buffers().first()?.as_slice();
                let start = data.offset() * width;
                self.feed(values.get(start..start + data.len() * width)?);
            }
        }
        Some(())
    }

    fn lengths(&mut self, offsets: &[i32]) {
        let lengths: Vec<u8> =
            offsets.windows(2).flat_map(|pair| pair[1].wrapping_sub(pair[0]).to_le_bytes()).collect();
        self.feed(&lengths);
    }
}
