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
            output_loading_info=True,  # and sizes that do not match raise before there is memory for them
        )  # fmt: skip
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a file makes it raise
        said = " ".join(str(e).split())[:300]
        if "ignore_mismatched_sizes" in said:
            raise Refused("bad_input", "the tensors of the file do not have the sizes that its keys say") from None
        raise Refused("unsupported_format", f"transformers {transformers.__version__} cannot load the GGUF file, whose engines it would judge: {said}") from None
    pretrained.fit(type(model).__name__, loaded)
    whole(path, model)
    return model.eval()


def whole(path, model):
    """Refuses a file with more than transformers reads: llama.cpp computes with that, and the reference would not."""
    import gguf
    from transformers import modeling_gguf_pytorch_utils as reading

    file = gguf.GGUFReader(path)
    architecture = file.fields["general.architecture"].contents()
    known = reading.get_gguf_hf_weights_map(model, reading.TENSOR_PROCESSORS.get(architecture, reading.TensorProcessor)(config=model.config.to_dict()))
    left = sorted(t.name for t in file.tensors if t.name not in known and "_exps." not in t.name)  # experts are split when they are read
    scaled = sorted(name for name in file.fields if ".rope.scaling." in name and architecture != "gpt-oss")
    if left or scaled:
        raise Refused("unsupported_format", f"transformers does not read {', '.join((left + scaled)[:4])} of the file, with which llama.cpp computes: the reference would be another model")


def inputs():
    """Tokens alone: llama.cpp computes no padding."""
    return {"input_ids": pretrained.tokens("input_ids")}


def program_of(path):
    return pretrained.traced(opened(path), inputs())


class Engine(pretrained.Engine):
    def __init__(self, path, threads):
        self.predict(opened(path), inputs(), threads)
