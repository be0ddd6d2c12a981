//! `Spans`: the span table for Arrow, through the PyCapsule interface.
//!
//! `pyarrow.table(spans)`, `polars.DataFrame(spans)` and DuckDB read the trace's own memory; it stays alive as long as
//! they hold it.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table of spans.
#[pyclass(frozen, name = "Spans", module = "hotspan._core")]
pub(crate) struct PySpans {
    pub(crate) batch: RecordBatch,
}

#[pymethods]
impl PySpans {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The table as an Arrow C stream; a requested schema is a wish that Arrow lets us ignore.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(reader);
        // The capsule owns the stream; consumers move it out, and what is left is released with the capsule.
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    /// The schema alone.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("<Spans {} rows, columns {}>", self.batch.num_rows(), self.column_names().join(", "))
    }
}
