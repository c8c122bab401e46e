"""Checks of the trainer's own parts: python3 -m unittest, in this folder."""

import json
import struct
import unittest

import numpy as np

import dataset
import export
import network


class Network(unittest.TestCase):
    def test_gradients_equal_finite_differences(self):
        rng = np.random.RandomState(1)
        net = network.DigitNet(rng)
        for p in net.params:  # in double precision, biases off zero
            p.value = p.value.astype(np.float64) + 0.01 * rng.standard_normal(p.value.shape)
        images, labels = rng.random_sample((3, 1, 8, 8)), np.array([0, 4, 9])
        net.backward(network.cross_entropy(net.forward(images), labels)[1])

        step = 1e-6
        for p in net.params:
            gradient = p.grad.copy()
            for where in rng.choice(p.value.size, min(8, p.value.size), replace=False):
                at = np.unravel_index(where, p.value.shape)
                losses = []
                for sign in (1, -1):
                    p.value[at] += sign * step
                    losses.append(network.cross_entropy(net.forward(images), labels)[0])
                    p.value[at] -= sign * step
                self.assertAlmostEqual((losses[0] - losses[1]) / (2 * step), gradient[at], places=6)


class Dataset(unittest.TestCase):
    def test_split_is_balanced_and_disjoint(self):
        train, _, test, labels = dataset.load()
        self.assertEqual((len(train), len(test)), (1437, 360))
        self.assertEqual(np.bincount(labels).tolist(), [dataset.TEST_PER_DIGIT] * 10)
        seen = {image.tobytes() for image in train}
        self.assertFalse([i for i, image in enumerate(test) if image.tobytes() in seen])

    def test_shifts_lose_only_the_border(self):
        image = np.zeros((50, 1, 8, 8), np.float32)
        image[:, 0, 3, 4] = 1
        moved = dataset.shifted(image, np.random.RandomState(1))
        self.assertEqual(moved.sum(), 50)
        self.assertEqual(len({m.tobytes() for m in moved}), 9)


class Export(unittest.TestCase):
    def test_safetensors_layout(self):
        raw = export.safetensors_bytes({"b": np.arange(2), "a": np.float32([[1.5]])})
        (size,) = struct.unpack_from("<Q", raw)
        header = json.loads(raw[8 : 8 + size])
        self.assertEqual(size % 8, 0)
        self.assertEqual(header["a"], {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]})
        self.assertEqual(header["b"], {"dtype": "I64", "shape": [2], "data_offsets": [4, 20]})
        self.assertEqual(raw[8 + size :], struct.pack("<fqq", 1.5, 0, 1))


if __name__ == "__main__":
    unittest.main()
