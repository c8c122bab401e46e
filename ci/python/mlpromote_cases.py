"""Writes the cases of a model for mlpromote: inputs, labels, and the outputs that its framework computes.

    write_cases("cases.npz", {"image": images}, labels=digits, expected={"logits": model(images)})

Copy this file beside your training script. It needs numpy alone; arrays, lists, pandas DataFrames and Series, and
tensors of PyTorch and TensorFlow are taken. Then run: mlpromote init MODEL --cases cases.npz --label label
"""

import numpy as np


def write_cases(path, inputs, labels=None, expected=None):
    """Write an .npz file with a row for each case.

    inputs: the arrays by the name of the model's input. The columns of a DataFrame in place of a dict are inputs of their own.
    labels: a class number, a name or a value for each case.
    expected: the outputs by the name of the model's output, as the framework computed them in evaluation mode.
    """
    arrays = {}
    for name, values in _columns(inputs).items():
        if name == "label":
            raise ValueError("an input has the name of the labels, label: rename it in the model")
        arrays[name] = _array(name, values)
    if labels is not None:
        arrays["label"] = _array("label", labels)
    for name, values in (expected or {}).items():
        arrays["expected:" + name] = _array("expected:" + name, values)
    rows = {name: len(values) for name, values in arrays.items()}
    if len(set(rows.values())) != 1:
        raise ValueError("want a row for each case in all arrays, and there are %s" % rows)
    np.savez(path, **arrays)


def _columns(inputs):
    if hasattr(inputs, "columns"):  # a DataFrame
        return {str(name): inputs[name] for name in inputs.columns}
    return dict(inputs)


def _array(name, values):
    for method in ("detach", "cpu"):  # a tensor of PyTorch
        if hasattr(values, method):
            values = getattr(values, method)()
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError("%s is a single value: want a row for each case" % name)
    if array.dtype == object:
        kinds = sorted({type(value).__name__ for value in array.flat})
        if kinds != ["str"]:
            raise ValueError("%s holds %s: want numbers of one type, or text without missing values" % (name, ", ".join(kinds)))
        array = array.astype(str)
    if array.dtype.kind in "Mm":
        raise ValueError("%s holds dates: want the numbers that the model takes" % name)
    return array
