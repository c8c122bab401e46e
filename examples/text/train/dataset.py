"""Tickets as token numbers: the vocabulary, the training part and the cases."""

import pathlib
import string
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import corpus
import tokenizer

TRAIN_SEED, CASES_SEED = 11, 12
TRAIN_PER_CLASS = 1000
CASES_PER_CLASS = 25  # in each shard
SHARD_LENGTHS = [(1, 16), (17, 32)]  # tokens of a ticket, padded to the larger number


def vocabulary():
    """Return the tokens in order: the special ones, letters and digits, pieces of one
    and two letters for what no word covers, words."""
    words = corpus.clean_words()
    letters = list(string.ascii_lowercase + string.digits)
    pairs = sorted({word[i : i + 2] for word in words for i in range(1, len(word) - 1)})
    tokens = [tokenizer.PAD, tokenizer.UNKNOWN, *letters]
    tokens += [tokenizer.CONTINUES + piece for piece in letters + pairs]
    return tokens + [word for word in words if word not in letters]


def padded(rows, width):
    """Return (ids, mask), int64 [n, width], of rows of token numbers; 0 is padding."""
    ids = np.zeros((len(rows), width), np.int64)
    mask = np.zeros((len(rows), width), np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return ids, mask


def training(tokens):
    """Return (ids, mask, labels): TRAIN_PER_CLASS tickets of each class, shuffled."""
    rng = np.random.RandomState(TRAIN_SEED)
    index = {token: i for i, token in enumerate(tokens)}
    labels = np.repeat(np.arange(len(corpus.CLASSES)), TRAIN_PER_CLASS)
    rows = [tokenizer.encode(corpus.ticket(rng, label, unseen=False), index) for label in labels]
    ids, mask = padded(rows, tokenizer.MAX_TOKENS)
    order = rng.permutation(len(labels))
    return ids[order], mask[order], labels[order]


def cases(tokens):
    """Return one (ids, mask, labels) for each of SHARD_LENGTHS: different tickets about
    pairs of problem and product that training never sees, CASES_PER_CLASS of each class."""
    rng = np.random.RandomState(CASES_SEED)
    index = {token: i for i, token in enumerate(tokens)}
    shards, seen = [], set()
    for least, width in SHARD_LENGTHS:
        rows, labels = [], []
        for label in range(len(corpus.CLASSES)):
            count = 0
            while count < CASES_PER_CLASS:
                text = corpus.ticket(rng, label, unseen=True)
                row = tokenizer.encode(text, index)
                if text in seen or not least <= len(row) <= width:
                    continue
                seen.add(text)
                rows.append(row)
                labels.append(label)
                count += 1
        order = rng.permutation(len(labels))
        ids, mask = padded(rows, width)
        shards.append((ids[order], mask[order], np.array(labels, np.int64)[order]))
    return shards
