"""Makes the files beside it. See README.md for how to run it."""

import collections
import pathlib
import pickle

import numpy as np

HERE = pathlib.Path(__file__).parent


def pickles():
    """One value that needs a call to be rebuilt, in every protocol; harmless."""
    value = collections.OrderedDict(weights=[1.5, -2, None, True], name="x", raw=b"\x00\xff")
    for protocol in range(6):
        (HERE / f"protocol{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))
    np.save(HERE / "objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(HERE / "floats.npy", np.zeros((2, 2), np.float32))


pickles()
