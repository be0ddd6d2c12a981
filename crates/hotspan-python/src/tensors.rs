//! The memory behind tensors, asked for from Rust: a call tracer does not see what is called from here.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Device type, device index, address, bytes.
type Block = (i64, i64, u64, u64);

/// How deep a tensor may be within lists and dictionaries.
const DEEPEST: usize = 3;

/// The memory behind all tensors in a value, as far as lists and dictionaries go. `kinds` are the numbers of device types.
#[pyfunction]
pub(crate) fn tensor_blocks(
    value: &Bound<'_, PyAny>,
    tensor: &Bound<'_, PyAny>,
    kinds: &Bound<'_, PyDict>,
) -> PyResult<Vec<Block>> {
    let mut found = Vec::new();
    collect(value, tensor, kinds, DEEPEST, &mut found)?;
    Ok(found)
}

/// The memory behind the gradients that some parameters have now.
#[pyfunction]
pub(crate) fn gradient_blocks(
    parameters: &Bound<'_, PyList>,
    kinds: &Bound<'_, PyDict>,
) -> PyResult<Vec<Block>> {
    let py = parameters.py();
    let mut found = Vec::with_capacity(parameters.len());
    for parameter in parameters.iter() {
        // Asking a tensor that is no leaf for its gradient would warn.
        let gradient = parameter.getattr(intern!(py, "is_leaf")).and_then(|is_leaf| {
            if is_leaf.is_truthy()? { parameter.getattr(intern!(py, "grad")).map(Some) } else { Ok(None) }
        });
        if let Some(gradient) = forgive(py, gradient)?.flatten().filter(|gradient| !gradient.is_none()) {
            found.extend(forgive(py, block(&gradient, kinds))?.flatten());
        }
    }
    Ok(found)
}

fn collect(
    value: &Bound<'_, PyAny>,
    tensor: &Bound<'_, PyAny>,
    kinds: &Bound<'_, PyDict>,
    depth: usize,
    found: &mut Vec<Block>,
) -> PyResult<()> {
    let mut each = |value: Bound<'_, PyAny>| collect(&value, tensor, kinds, depth.saturating_sub(1), found);
    if value.is_instance(tensor)? {
        found.extend(forgive(value.py(), block(value, kinds))?.flatten());
    } else if depth == 0 {
        return Ok(());
    } else if let Ok(dictionary) = value.cast::<PyDict>() {
        dictionary.values().iter().try_for_each(each)?;
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().try_for_each(&mut each)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().try_for_each(&mut each)?;
    }
    Ok(())
}

/// `None`: there is no memory to speak of.
fn block(tensor: &Bound<'_, PyAny>, kinds: &Bound<'_, PyDict>) -> PyResult<Option<Block>> {
    let py = tensor.py();
    let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
    let address: u64 = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let device = tensor.getattr(intern!(py, "device"))?;
    let kind = kinds.get_item(device.getattr(intern!(py, "type"))?)?;
    let (Some(kind), false) = (kind, address == 0) else { return Ok(None) };
    let index: Option<i64> = device.getattr(intern!(py, "index"))?.extract()?;
    let bytes: u64 = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    Ok(Some((kind.extract()?, index.unwrap_or(-1), address, bytes)))
}

/// Sparse, fake and other tensors without memory of their own raise all sorts of things, which are not the program's fault.
fn forgive<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}
