"""Checks of the trainer's own parts: python3 -m unittest, in this folder."""

import json
import pathlib
import struct
import tempfile
import unittest

import numpy as np
from onnx.reference import ReferenceEvaluator

import corpus
import dataset
import export
import network
import tokenizer


def small_net():
    """A TicketNet, and two texts of different lengths for it."""
    net = network.TicketNet(np.random.RandomState(1), 9, 4, 8)
    ids = np.array([[1, 2, 3, 4, 8], [5, 6, 7, 0, 0]])
    return net, ids, (ids > 0).astype(np.int64)


class Network(unittest.TestCase):
    def test_gradients_equal_finite_differences(self):
        rng = np.random.RandomState(1)
        net, ids, mask = small_net()
        for p in net.params:  # in double precision, biases off zero
            p.value = p.value.astype(np.float64) + 0.01 * rng.standard_normal(p.value.shape)
        labels = np.array([3, 1])
        net.backward(network.cross_entropy(net.forward(ids, mask), labels)[1])

        step = 1e-6
        for p in net.params:
            gradient = p.grad.copy()
            for where in rng.choice(p.value.size, min(6, p.value.size), replace=False):
                at = np.unravel_index(where, p.value.shape)
                losses = []
                for sign in (1, -1):
                    p.value[at] += sign * step
                    losses.append(network.cross_entropy(net.forward(ids, mask), labels)[0])
                    p.value[at] -= sign * step
                self.assertAlmostEqual((losses[0] - losses[1]) / (2 * step), gradient[at], places=6)

    def test_padding_changes_nothing(self):
        net, ids, mask = small_net()
        wide = net.forward(ids, mask)[1]
        narrow = net.forward(ids[1:, :3], mask[1:, :3])[0]
        np.testing.assert_allclose(wide, narrow, atol=1e-5)


class Corpus(unittest.TestCase):
    def test_cases_are_balanced_and_never_seen(self):
        tokens = dataset.vocabulary()
        ids, _, _ = dataset.training(tokens)
        trained = {row[row > 0].tobytes() for row in ids}
        for (least, width), (ids, mask, labels) in zip(dataset.SHARD_LENGTHS, dataset.cases(tokens)):
            self.assertEqual(ids.shape, (100, width))
            self.assertEqual(np.bincount(labels).tolist(), [dataset.CASES_PER_CLASS] * len(corpus.CLASSES))
            self.assertTrue(((least <= mask.sum(axis=1)) & (mask.sum(axis=1) <= width)).all())
            self.assertFalse([i for i, row in enumerate(ids) if row[row > 0].tobytes() in trained])

    def test_a_fifth_of_the_pairs_is_held_back(self):
        for problems in corpus.PROBLEMS.values():
            held = [corpus.held_back(i, j) for i in range(len(problems)) for j in range(len(corpus.PRODUCTS))]
            self.assertEqual(sum(held) * 5, len(held))

    def test_typing_errors_are_cut_into_pieces(self):
        tokens = dataset.vocabulary()
        index = {token: i for i, token in enumerate(tokens)}
        cut = [tokens[i] for i in tokenizer.encode("The PASWORD, 3 é", index)]
        self.assertEqual(cut[0], "the")
        self.assertEqual("".join(cut[1:-2]).replace("##", ""), "pasword")
        self.assertEqual(cut[-2:], ["3", "[UNK]"])

    def test_vocabulary_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vocab.txt"
            path.write_text("[PAD]\n[UNK]\na\n", encoding="utf-8")
            self.assertEqual(tokenizer.read_vocabulary(path), {"[PAD]": 0, "[UNK]": 1, "a": 2})
            path.write_text("[UNK]\n[PAD]\n", encoding="utf-8")
            self.assertRaises(ValueError, tokenizer.read_vocabulary, path)


class Export(unittest.TestCase):
    def test_the_graph_computes_what_the_network_does(self):
        net, ids, mask = small_net()
        model = ReferenceEvaluator(export.onnx_bytes(net))
        logits, tokens = model.run(["logits", "tokens"], {"input_ids": ids, "attention_mask": mask})
        np.testing.assert_allclose(logits, net.forward(ids, mask), atol=1e-4)
        np.testing.assert_allclose(tokens, net.tokens, atol=1e-4)

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
