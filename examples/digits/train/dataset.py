"""The images: scikit-learn's copy of the UCI handwritten digits, split once and for all.

Everything here is exact integer arithmetic and numpy's legacy generator, whose
stream is frozen, so the split and the two data files that train.py writes are
the same bytes on every machine.
"""

import numpy as np
from sklearn.datasets import load_digits

SPLIT_SEED = 20
TEST_PER_DIGIT = 36  # 360 cases in all
CALIBRATION_COUNT = 128
PIXEL_MAX = 16  # the data set counts ink in 4x4 blocks of bits: 0 to 16


def load():
    """Return (train_images, train_labels, test_images, test_labels).

    Images are float32 [n, 1, 8, 8] with values 0 to 1, labels int64 [n].
    The test part holds TEST_PER_DIGIT images of each digit; the rest is training.
    """
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / PIXEL_MAX).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = labels.astype(np.int64)

    rng = np.random.RandomState(SPLIT_SEED)
    train, test = [], []
    for digit in range(10):
        members = rng.permutation(np.flatnonzero(labels == digit))
        test.append(members[:TEST_PER_DIGIT])
        train.append(members[TEST_PER_DIGIT:])
    train = rng.permutation(np.concatenate(train))
    test = rng.permutation(np.concatenate(test))
    return images[train], labels[train], images[test], labels[test]


def calibration(train_images):
    """Return the images that calibrate the int8 engine: a part of the training
    images, because what is calibrated on cases is not tested by them."""
    return train_images[:CALIBRATION_COUNT]


def shifted(images, rng):
    """Return the images, each moved by -1, 0 or 1 pixel along both axes, filled with 0."""
    n = len(images)
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(2, 3))
    down, right = rng.randint(0, 3, size=(2, n))
    return windows[np.arange(n), :, down, right]
