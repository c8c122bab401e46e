"""Fitted estimators from files, of which nothing is loaded that is not allowed."""

import warnings

from protocol import Refused


def load(path, trusted):
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import InconsistentVersionWarning

    with warnings.catch_warnings():
        # Another version computes otherwise, or not at all: nothing that a release rests on.
        warnings.simplefilter("error", InconsistentVersionWarning)
        try:
            found = from_skops(path, trusted) if path.endswith(".skops") else from_pickle(path)
        except InconsistentVersionWarning as e:
            raise Refused("bad_input", f"the model was saved by scikit-learn {e.original_sklearn_version}, and this is {e.current_sklearn_version}: train it with this version, or save it from there") from None
    if not isinstance(found, BaseEstimator):
        raise Refused("bad_input", f"the file holds {named(type(found))}: want an estimator of scikit-learn")
    return found


def from_skops(path, trusted):
    import skops.io

    try:
        unknown = skops.io.get_untrusted_types(file=path)
    except Exception as e:  # whatever a damaged archive makes it raise
        raise Refused("bad_input", f"skops cannot read the file: {type(e).__name__}: {e}") from None
    missing = sorted(set(unknown) - HARMLESS - set(trusted))
    if missing:
        raise Refused("untrusted", f"the file has types that skops does not know as data: {', '.join(missing)}: if they may be loaded, name them in source.trust.types")
    from sklearn.exceptions import InconsistentVersionWarning

    try:
        return skops.io.load(path, trusted=unknown)
    except InconsistentVersionWarning:
        raise
    except Exception as e:
        raise Refused("bad_input", f"skops cannot load the file: {type(e).__name__}: {e}") from None


# Types that skops does not know, of pipelines over tables: names of types, and a selection of columns.
HARMLESS = {"numpy.dtype", "numpy.number", "sklearn.compose._column_transformer.make_column_selector"}

# What pickles of estimators are made of besides the classes of scikit-learn.
ALLOWED = {
    "builtins": {"object", "set", "frozenset", "slice", "complex", "bytearray", "range"},
    "__builtin__": {"object", "set", "frozenset", "slice", "complex", "bytearray"},
    "collections": {"OrderedDict", "defaultdict"},
    "copyreg": {"_reconstructor"},
    "copy_reg": {"_reconstructor"},
    "joblib.numpy_pickle": {"NumpyArrayWrapper"},
    "numpy": {"ndarray", "dtype"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.random._pickle": {"__randomstate_ctor", "__generator_ctor", "__bit_generator_ctor"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
    "numpy.random._mt19937": {"MT19937"},
    "numpy.random._pcg64": {"PCG64"},
    "scipy.sparse._csr": {"csr_matrix", "csr_array"},
    "scipy.sparse._csc": {"csc_matrix", "csc_array"},
}
# Opcodes that a pickle of an estimator has no use for: instances made by name in one
# step, extension codes, objects kept elsewhere, buffers out of band.
FORBIDDEN = ("INST", "OBJ", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER")


def from_pickle(path):
    """A pickle, or what joblib writes. Every opcode and every name is held against the
    lists before it is followed; what is not on them ends the loading there."""
    import pickle

    from joblib import numpy_pickle
    from joblib.numpy_pickle_utils import _validate_fileobject_and_memmap
    from sklearn.exceptions import InconsistentVersionWarning

    class Careful(numpy_pickle.NumpyUnpickler):
        dispatch = numpy_pickle.NumpyUnpickler.dispatch.copy()

        def find_class(self, module, name):
            return allowed(module, name, super().find_class)

        def forbidden(self):
            raise Refused("untrusted", "the pickle has an opcode that pickles of estimators do not have")

        for opcode in FORBIDDEN:
            dispatch[getattr(pickle, opcode)[0]] = forbidden

    with open(path, "rb") as f, _validate_fileobject_and_memmap(f, path, None) as (readable, _):
        try:
            return Careful(path, readable, ensure_native_byte_order=True).load()
        except (Refused, InconsistentVersionWarning):
            raise
        except Exception as e:
            raise Refused("bad_input", f"the pickle cannot be loaded: {type(e).__name__}: {e}") from None


def allowed(module, name, find):
    """The object of that name, if a pickle of an estimator may have it: of scikit-learn
    only classes, and what its compiled classes are remade by."""
    refusal = Refused("untrusted", f"the pickle asks for {module}.{name}, which no estimator needs: nothing was called")
    if name in ALLOWED.get(module, ()):
        return find(module, name)
    if module != "sklearn" and not module.startswith("sklearn.") or "." in name:
        raise refusal
    found = find(module, name)
    ours = getattr(found, "__module__", None) or ""
    if name.startswith("__pyx_unpickle_") or isinstance(found, type) and ours.startswith("sklearn."):
        return found
    raise refusal


def named(kind):
    return f"{kind.__module__}.{kind.__qualname__}"
