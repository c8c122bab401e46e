"""Text to token numbers and back, by vocab.txt. Standard library only."""

import re

PAD, UNKNOWN = "[PAD]", "[UNK]"  # the first two lines of vocab.txt
CONTINUES = "##"  # a piece that goes on with the word before it
MAX_TOKENS = 64  # the model has no more positions

WORD = re.compile(r"[a-z]+|[0-9]+|[^\W_]")  # the last for letters that no token has


def read_vocabulary(path):
    """Return {token: number} of a file with a token in each line, numbered from 0."""
    tokens = path.read_text(encoding="utf-8").splitlines()
    if tokens[:2] != [PAD, UNKNOWN] or len(set(tokens)) != len(tokens):
        raise ValueError(f"{path}: expected different tokens, {PAD} and {UNKNOWN} first")
    return {token: number for number, token in enumerate(tokens)}


def words(text):
    """Return the words and numbers of text in lower case, without its punctuation."""
    return WORD.findall(text.lower())


def pieces(word, vocabulary):
    """Cut a word into tokens: each time the longest that the vocabulary has, from the
    left. A word that cannot be cut is one unknown token."""
    found, at = [], 0
    while at < len(word):
        prefix = CONTINUES if at else ""
        for end in range(len(word), at, -1):
            if prefix + word[at:end] in vocabulary:
                found.append(vocabulary[prefix + word[at:end]])
                at = end
                break
        else:
            return [vocabulary[UNKNOWN]]
    return found


def encode(text, vocabulary):
    """Return the token numbers of text, at most MAX_TOKENS."""
    return [number for word in words(text) for number in pieces(word, vocabulary)][:MAX_TOKENS]
