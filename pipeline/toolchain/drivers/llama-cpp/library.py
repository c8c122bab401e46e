"""The functions of llama.h that a model is run with. xllamacpp, which has llama.cpp's library in its extension, wraps its server
alone, which gives no logits.

Parameters are passed by value, and are larger than what is known of them here: a callee reads what it knows from their beginning.
"""

import ctypes
import functools
import os

from protocol import Refused

MOST_TOKENS = 1 << 15  # of a case: memory for its context, which may have more than its model was trained with
ERROR = 4  # enum ggml_log_level


class ModelParams(ctypes.Structure):
    _fields_ = [("all", ctypes.c_char * 512)]


class ContextParams(ctypes.Structure):
    _fields_ = [
        ("n_ctx", ctypes.c_uint32), ("n_batch", ctypes.c_uint32), ("n_ubatch", ctypes.c_uint32), ("n_seq_max", ctypes.c_uint32),
        ("more", ctypes.c_uint32 * 3), ("n_threads", ctypes.c_int32), ("n_threads_batch", ctypes.c_int32), ("rest", ctypes.c_char * 476),
    ]  # fmt: skip


# What llama.cpp says by itself, by which its fields are recognized.
EXPECTED = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_threads": 4, "n_threads_batch": 4}


class Batch(ctypes.Structure):
    """Tokens of one sequence from its beginning, where pos, n_seq_id and seq_id are null."""

    _fields_ = [
        ("n_tokens", ctypes.c_int32), ("token", ctypes.c_void_p), ("embd", ctypes.c_void_p), ("pos", ctypes.c_void_p),
        ("n_seq_id", ctypes.c_void_p), ("seq_id", ctypes.c_void_p), ("logits", ctypes.c_void_p),
    ]  # fmt: skip


Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
POINTER = ctypes.c_void_p
FUNCTIONS = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [Log, POINTER]),
    "llama_model_default_params": (ModelParams, []),
    "llama_context_default_params": (ContextParams, []),
    "llama_model_load_from_file": (POINTER, [ctypes.c_char_p, ModelParams]),
    "llama_model_free": (None, [POINTER]),
    "llama_model_n_ctx_train": (ctypes.c_int32, [POINTER]),
    "llama_model_has_decoder": (ctypes.c_bool, [POINTER]),
    "llama_model_get_vocab": (POINTER, [POINTER]),
    "llama_vocab_n_tokens": (ctypes.c_int32, [POINTER]),
    "llama_init_from_model": (POINTER, [POINTER, ContextParams]),
    "llama_free": (None, [POINTER]),
    "llama_get_memory": (POINTER, [POINTER]),
    "llama_memory_clear": (None, [POINTER, ctypes.c_bool]),
    "llama_decode": (ctypes.c_int32, [POINTER, Batch]),
    "llama_get_logits": (ctypes.POINTER(ctypes.c_float), [POINTER]),
}


def usual_threads():
    """How many threads programs of llama.cpp start by themselves where they do not know which processors share a core."""
    processors = len(os.sched_getaffinity(0))
    return processors if processors <= 4 else processors // 2


@functools.cache
def loaded():
    """The library, and the errors that it logged since somebody looked."""
    from xllamacpp import xllamacpp

    library, said = ctypes.CDLL(xllamacpp.__file__), []
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.said = said
    library.keep = Log(lambda level, text, _: said.append(text.decode(errors="replace").strip()) if level == ERROR else None)
    library.llama_log_set(library.keep, None)
    library.llama_backend_init()
    return library


class Library:
    def __init__(self):
        self.c = loaded()

    def why(self):
        """What llama.cpp said of what it could not do."""
        said = " ".join(" ".join(self.c.said).split())
        self.c.said.clear()
        return said[:300] or "it did not say why"

    def model(self, path):
        made = self.c.llama_model_load_from_file(path.encode(), self.c.llama_model_default_params())
        if not made:
            raise Refused("bad_input", f"llama.cpp cannot load the model: {self.why()}")
        if not self.c.llama_model_has_decoder(made):
            self.free_model(made)
            raise Refused("unsupported_format", "the model has no decoder, so it does not score next tokens")
        return made

    def trained(self, model):
        """The length of the context that it was trained with, in tokens; 0 or less where the file does not say."""
        return self.c.llama_model_n_ctx_train(model)

    def tokens(self, model):
        return self.c.llama_vocab_n_tokens(self.c.llama_model_get_vocab(model))

    def context(self, model, size, threads, ubatch):
        asked = self.c.llama_context_default_params()
        other = {name: getattr(asked, name) for name, value in EXPECTED.items() if getattr(asked, name) != value}
        if other:
            raise Refused("tool_failed", f"the parameters of this llama.cpp are not those that the driver knows: {other}, expected {EXPECTED}")
        asked.n_ctx = asked.n_batch = size
        asked.n_ubatch = ubatch or asked.n_ubatch
        asked.n_threads = asked.n_threads_batch = threads or usual_threads()
        made = self.c.llama_init_from_model(model, asked)
        if not made:
            raise Refused("tool_failed", f"llama.cpp cannot make a context of {size} tokens: {self.why()}")
        return made

    def decode(self, context, row, logits):
        """Writes the logits of all tokens of a sequence."""
        scored = (ctypes.c_int8 * len(row))(*[1] * len(row))
        self.c.llama_memory_clear(self.c.llama_get_memory(context), True)
        failed = self.c.llama_decode(context, Batch(len(row), row.ctypes.data, None, None, None, None, ctypes.addressof(scored)))
        if failed:
            raise Refused("tool_failed", f"llama.cpp cannot decode a case of {len(row)} tokens: {self.why()} ({failed})")
        found = self.c.llama_get_logits(context)
        if not found:
            raise Refused("tool_failed", "llama.cpp gave no logits")
        ctypes.memmove(logits.ctypes.data, found, logits.nbytes)

    def free(self, context):
        if context:
            self.c.llama_free(context)

    def free_model(self, model):
        self.c.llama_model_free(model)
