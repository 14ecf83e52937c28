//! NumPy arrays as slices.

use bufgym::env::gym::Space;
use numpy::ndarray::{ArrayView, IxDyn};
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::failure::invalid;

/// Returns a new array with these values.
pub fn copied<'py, T: Element + Copy>(
    py: Python<'py>,
    shape: &[usize],
    values: &[T],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let view = ArrayView::from_shape(IxDyn(shape), values).map_err(invalid)?;
    Ok(PyArrayDyn::from_array(py, &view))
}

/// Returns a new array of zeros, in memory that Rust allocates.
pub fn zeros<'py, T: Element + Default + Clone>(
    py: Python<'py>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    use numpy::PyArray1;
    let values = vec![T::default(); shape.iter().product()];
    PyArray1::from_vec(py, values).reshape(IxDyn(shape))
}

/// Real numbers from Python whose type and shape have been checked.
pub struct Reals<'py> {
    array: PyReadonlyArrayDyn<'py, f32>,
    /// A copy, if the array is not contiguous.
    copy: Option<Vec<f32>>,
}

impl<'py> Reals<'py> {
    /// Takes `value`, which has to be a float32 array of this shape.
    ///
    /// # Errors
    /// Returns a `ValueError` with the expected and the actual type.
    pub fn take(value: &Bound<'py, PyAny>, what: &str, shape: &[usize]) -> PyResult<Reals<'py>> {
        let array: PyReadonlyArrayDyn<'py, f32> = value
            .extract()
            .ok()
            .filter(|array: &PyReadonlyArrayDyn<'py, f32>| array.shape() == shape)
            .ok_or_else(|| {
                invalid(format!(
                    "{what}: {} given where an array float32{shape:?} is expected",
                    described(value)
                ))
            })?;
        let whole = array.as_slice().is_ok();
        let copy = (!whole).then(|| array.as_array().iter().copied().collect());
        Ok(Reals { array, copy })
    }

    /// Returns the numbers, row by row.
    pub fn values(&self) -> &[f32] {
        let copy = self.copy.as_deref();
        copy.or_else(|| self.array.as_slice().ok()).unwrap_or(&[])
    }
}

/// Describes a value, such as `an array float64[16]`.
fn described(value: &Bound<'_, PyAny>) -> String {
    match value.cast::<numpy::PyUntypedArray>() {
        Ok(array) => {
            let dtype = array.dtype();
            let name = dtype.typeobj().name();
            let name = name.map_or_else(|_| "of another type".to_owned(), |name| name.to_string());
            format!("an array {name}{:?}", array.shape())
        }
        Err(_) => {
            let name = value.get_type().name();
            name.map_or_else(|_| "something else".to_owned(), |name| name.to_string())
        }
    }
}

/// Returns `(shape, low, high)` of a space. All spaces of environments are boxes with the same bounds
/// everywhere.
pub fn bounds<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyTuple>> {
    let (low, high) = match space {
        Space::Box(space) => {
            let first = |values: &[f32]| values.first().copied().unwrap_or(0.0);
            (first(&space.low), first(&space.high))
        }
        Space::MultiDiscrete(_) => return Err(invalid("the space is not a box")),
    };
    (space.shape().to_vec(), low, high).into_pyobject(py)
}
