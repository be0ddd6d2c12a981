//! JSON to Python and back, without Python's own module: it would cost each process that is recorded a dozen imports.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use serde_json::Value;

/// What a JSON text says, as `json.loads` gives it.
#[pyfunction]
pub(crate) fn read_json(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_python(py, &value)
}

/// A JSON value as `json.loads` gives it.
pub(crate) fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Null => py.None(),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any().unbind(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into_pyobject(py)?.into_any().unbind(),
            None if number.is_u64() => number.as_u64().into_pyobject(py)?.into_any().unbind(),
            None => number.as_f64().into_pyobject(py)?.into_any().unbind(),
        },
        Value::String(text) => PyString::new(py, text).into_any().unbind(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any().unbind()
        }
        Value::Object(fields) => {
            let object = PyDict::new(py);
            for (key, field) in fields {
                object.set_item(key, to_python(py, field)?)?;
            }
            object.into_any().unbind()
        }
    })
}

/// Texts, numbers, lists and dictionaries of them, as JSON.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned().into());
    }
    if let Ok(whole) = value.extract::<i64>() {
        return Ok(whole.into());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number.into());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value
            .try_iter()?
            .map(|item| from_python(&item?))
            .collect::<PyResult<Vec<_>>>()
            .map(Value::Array);
    }
    let fields = value.cast::<PyDict>().map_err(|_| PyTypeError::new_err("not JSON"))?;
    let field =
        |(key, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((key.extract()?, from_python(&field)?));
    fields.iter().map(field).collect::<PyResult<_>>().map(Value::Object)
}
