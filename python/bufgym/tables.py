"""Arrow tables of NumPy columns."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow


def arrow() -> Any:
    """Returns the module ``pyarrow``, or raises an error that says how to get it."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "results are Arrow tables, and pyarrow is not installed: pip install 'bufgym[arrow]'"
        ) from error
    return pyarrow


def table(columns: dict[str, Any]) -> "pyarrow.Table":
    """Returns the table of these columns. Numbers are not copied.

    A column is an array, an array of numbers with one of bools that says where there is a number, or an
    array of indices with the strings they stand for. A floating-point number that is NaN becomes null.
    """
    pa = arrow()
    return pa.table({name: _column(pa, column) for name, column in columns.items()})


def _column(pa: Any, column: Any) -> Any:
    if not isinstance(column, tuple):
        valid = ~np.isnan(column) if column.dtype.kind == "f" else None
        return _numbers(pa, column, valid)
    values, meaning = column
    if isinstance(meaning, np.ndarray):
        return _numbers(pa, values, meaning)
    return pa.DictionaryArray.from_arrays(_numbers(pa, values, None), pa.array(meaning, pa.string()))


def _numbers(pa: Any, values: Any, valid: Any) -> Any:
    """Returns an Arrow array whose memory is that of ``values``."""
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)])
