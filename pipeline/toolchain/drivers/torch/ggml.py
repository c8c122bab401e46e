"""Models of llama.cpp, as transformers reads them: weights in full precision, of the numbers that the file has.

transformers computes with these what llama.cpp computes with the file, by other code.
"""

import os

import pretrained
from protocol import Refused

SUFFIX = ".gguf"


def opened(path):
    """The language model in a file."""
    import torch
    import transformers

    folder, name = os.path.split(path)
    try:
        config = transformers.AutoConfig.from_pretrained(folder, gguf_file=name, local_files_only=True)
        model, loaded = transformers.AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=name, config=config, local_files_only=True, dtype=torch.float32, attn_implementation="eager",
            ignore_mismatched_sizes=True, output_loading_info=True,
        )  # fmt: skip
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a file makes it raise
        said = " ".join(str(e).split())[:300]
        raise Refused("unsupported_format", f"transformers {transformers.__version__} cannot load the GGUF file, whose engines it would judge: {said}") from None
    pretrained.fit(type(model).__name__, loaded)
    return model.eval()


def inputs():
    """Tokens alone: llama.cpp computes no padding."""
    return {"input_ids": pretrained.tokens("input_ids")}


def program_of(path):
    return pretrained.traced(opened(path), inputs())


class Engine(pretrained.Engine):
    def __init__(self, path, threads):
        self.predict(opened(path), inputs(), threads)
