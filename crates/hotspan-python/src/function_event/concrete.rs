//! Values of inputs: traces have them as torch prints them, Python wants what they were.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyList, PyString};

/// What was printed. What is not understood stays text.
pub(super) fn value<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match text.cast::<PyString>() {
        Ok(text) => of_text(text.py(), &text.to_string_lossy()),
        Err(_) => Ok(text.clone()),
    }
}

/// The value of one input as a trace has it.
#[pyfunction]
pub(crate) fn concrete_value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    of_text(py, text)
}

fn of_text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    if text.is_empty() {
        return Ok(py.None().into_bound(py));
    }
    if let Some(items) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items = items.split(", ").filter(|item| !item.is_empty());
        let items = items.map(|item| of_text(py, item)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let "True" | "False" = text {
        return Ok(PyBool::new(py, text == "True").to_owned().into_any());
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(whole.into_pyobject(py)?.into_any());
    }
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number.into_pyobject(py)?.into_any());
    }
    if let Some(number) = complex(text) {
        return Ok(PyComplex::from_doubles(py, number.0, number.1).into_any());
    }
    Ok(PyString::new(py, text).into_any())
}

/// The parts of `3.-4.5j`.
fn complex(text: &str) -> Option<(f64, f64)> {
    let parts = text.strip_suffix('j')?;
    // The sign between them; one at the start or of an exponent is another.
    let signs = parts
        .char_indices()
        .skip(1)
        .filter(|&(at, sign)| matches!(sign, '+' | '-') && !parts[..at].ends_with('e'));
    let (at, _) = signs.last()?;
    Some((parts[..at].parse().ok()?, parts[at..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::complex;

    #[test]
    fn complex_numbers_read_as_torch_prints_them() {
        assert_eq!(complex("3.-4.5j"), Some((3.0, -4.5)));
        assert_eq!(complex("-1.0000000000000001e-05+0.j"), Some((-1e-5, 0.0)));
        assert_eq!(complex("symbolic"), None);
    }
}
