//! Columns of tables, as NumPy arrays that `bufgym.tables` gives to Arrow without a copy.

use std::collections::BTreeMap;

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

/// A table under construction: a dictionary of columns by name, in order.
///
/// A column is an array, or a pair. A pair is either an array of values and a `bool` array that marks the
/// present ones, or an array of indices and the strings they refer to.
pub struct Columns<'py>(pub Bound<'py, PyDict>);

impl<'py> Columns<'py> {
    /// Builds a table without columns.
    pub fn new(py: Python<'py>) -> Columns<'py> {
        Columns(PyDict::new(py))
    }

    /// Adds numbers; a floating-point NaN means no value.
    pub fn numbers<T: Element>(
        &self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> PyResult<()> {
        let values: Vec<T> = values.into_iter().collect();
        self.0
            .set_item(name, PyArray1::from_vec(self.0.py(), values))
    }

    /// Adds numbers, some of which are missing.
    pub fn optional<T: Element + Default>(
        &self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> PyResult<()> {
        let (mut numbers, mut valid) = (Vec::new(), Vec::new());
        for value in values {
            valid.push(value.is_some());
            numbers.push(value.unwrap_or_default());
        }
        let py = self.0.py();
        let pair = (
            PyArray1::from_vec(py, numbers),
            PyArray1::from_vec(py, valid),
        );
        self.0.set_item(name, pair)
    }

    /// Adds texts with few distinct values.
    pub fn texts<'a>(&self, name: &str, values: impl IntoIterator<Item = &'a str>) -> PyResult<()> {
        let mut known: Vec<&str> = Vec::new();
        let mut numbers: BTreeMap<&str, i32> = BTreeMap::new();
        let mut indices = Vec::new();
        for value in values {
            let next = i32::try_from(known.len()).unwrap_or(i32::MAX);
            indices.push(*numbers.entry(value).or_insert_with(|| {
                known.push(value);
                next
            }));
        }
        let pair = (PyArray1::from_vec(self.0.py(), indices), known);
        self.0.set_item(name, pair)
    }

    /// Adds the fields of rows, in the order of their names. A field within a field is called `outer.inner`;
    /// lists are left out.
    pub fn rows(&self, rows: &[Value]) -> PyResult<()> {
        let mut columns: BTreeMap<String, Vec<(usize, &Value)>> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            let mut put =
                |name: String, value| columns.entry(name).or_default().push((number, value));
            flatten("", row, &mut put);
        }
        for (name, values) in &columns {
            self.field(name, rows.len(), values)?;
        }
        Ok(())
    }

    fn field(&self, name: &str, rows: usize, values: &[(usize, &Value)]) -> PyResult<()> {
        let present = |value: &&(usize, &Value)| !value.1.is_null();
        let all =
            |is: fn(&Value) -> bool| values.iter().filter(present).all(|(_, value)| is(value));
        if all(Value::is_null) {
            // The type is unknown; most fields are numbers.
            return self.numbers(name, vec![f64::NAN; rows]);
        }
        if all(Value::is_u64) {
            return self.optional(name, spread(rows, values, Value::as_u64));
        }
        if all(Value::is_number) {
            let numbers = spread(rows, values, Value::as_f64);
            let numbers = numbers.into_iter().map(|number| number.unwrap_or(f64::NAN));
            return self.numbers(name, numbers);
        }
        let texts = spread(rows, values, |value| value.as_str().map(str::to_owned));
        let texts: Vec<String> = texts.into_iter().map(Option::unwrap_or_default).collect();
        self.texts(name, texts.iter().map(String::as_str))
    }
}

fn spread<T>(
    rows: usize,
    values: &[(usize, &Value)],
    read: impl Fn(&Value) -> Option<T>,
) -> Vec<Option<T>> {
    let mut column: Vec<Option<T>> = (0..rows).map(|_| None).collect();
    for (row, value) in values {
        column[*row] = read(value);
    }
    column
}

fn flatten<'a>(outer: &str, value: &'a Value, put: &mut impl FnMut(String, &'a Value)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = match outer {
                    "" => name.clone(),
                    outer => format!("{outer}.{name}"),
                };
                flatten(&name, value, put);
            }
        }
        Value::Array(_) => {}
        value => put(outer.to_owned(), value),
    }
}
