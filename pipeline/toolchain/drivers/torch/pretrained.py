"""Folders that save_pretrained of transformers wrote: configuration, weights as safetensors, tokenizer.

Only classes of transformers itself are made, and only safetensors are read: no code and no pickle of the folder.
"""

import inspect
import json
import os

import exported
from protocol import Refused

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")

CONFIG = "config.json"
# Inputs of a model of text, in the order in which tokenizers give them.
TEXT = ("input_ids", "attention_mask", "token_type_ids")
# Outputs, by what they are called in transformers. Others are states and caches.
OUTPUTS = ("logits", "start_logits", "end_logits", "prediction_logits", "seq_relationship_logits", "logits_per_image", "pred_boxes", "last_hidden_state", "pooler_output")
# Sizes to trace with. Of 1, torch.export would take the dimension as fixed.
BATCH, SEQUENCE = 2, 9


def opened(path):
    """The model in the folder of a config.json, and its configuration."""
    import torch
    import transformers

    folder = os.path.dirname(path)
    with open(path, encoding="utf-8") as f:
        name = json.load(f)["architectures"][0]
    found = getattr(transformers, name, None) if isinstance(name, str) else None
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise Refused("unsupported_format", f"config.json: transformers {transformers.__version__} has no model {name!r}")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if config.is_encoder_decoder:
            raise Refused("unsupported_format", f"{name} has an encoder and a decoder, which run one after the other: export each of them with torch.export")
        model, loaded = found.from_pretrained(
            folder, config=config, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32, attn_implementation="eager",
            ignore_mismatched_sizes=True, output_loading_info=True,
        )  # fmt: skip
    except (MemoryError, ImportError, Refused):
        raise
    except Exception as e:  # whatever a damaged folder makes it raise
        raise Refused("bad_input", f"transformers {transformers.__version__} cannot load the model: {' '.join(str(e).split())[:300]}") from None
    fit(name, loaded)
    return model.eval(), config


def fit(name, loaded):
    """Refuses weights that are not those of the class, by what transformers says of a load."""
    if loaded["mismatched_keys"]:
        key, there, wanted = sorted(loaded["mismatched_keys"])[0]
        raise Refused("bad_input", f"the weights do not fit {name}: {key} has the shape {list(there)}, and config.json asks for {list(wanted)}")
    if loaded["missing_keys"]:
        wrong = sorted(loaded["missing_keys"])
        raise Refused("bad_input", f"the weights do not fit {name}: {len(wrong)} would be drawn at random, such as {wrong[0]}")


def inputs_of(model, config, folder):
    """{name: tensor to trace with}, in the order of the model's forward. Dimensions of size BATCH and SEQUENCE are open."""
    if model.main_input_name == "pixel_values":
        return {"pixel_values": image(getattr(config, "vision_config", config))}
    name = type(model).__name__
    if model.main_input_name != "input_ids":
        raise Refused("unsupported_format", f"{name} takes {model.main_input_name}, expected input_ids or pixel_values: export the model with torch.export")
    takes = inspect.signature(model.forward).parameters
    return {name: tokens(name) for name in text_inputs(folder) if name in takes}


def image(config):
    import torch

    size = getattr(config, "image_size", None)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    if not isinstance(height, int) or not isinstance(width, int):
        raise Refused("unsupported_format", "config.json: no image_size, so the shape of pixel_values is unknown: export the model with torch.export")
    return torch.zeros(BATCH, config.num_channels, height, width)


def tokens(name):
    import torch

    return (torch.zeros if name == "token_type_ids" else torch.ones)(BATCH, SEQUENCE, dtype=torch.int64)


def open_dims(tensor):
    """{position: name} of the dimensions that a caller chooses."""
    return {0: "batch", 1: "sequence"} if tensor.ndim == 2 else {0: "batch"}


def text_inputs(folder):
    """What the tokenizer gives; without one, tokens and which of them are padding."""
    try:
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
            names = json.load(f).get("model_input_names")
    except (OSError, ValueError, AttributeError):
        names = None
    return [n for n in TEXT if n in names] if isinstance(names, list) and "input_ids" in names else list(TEXT[:2])


def predictor(model, inputs):
    """A module of tensors to tensors, and the names of its outputs."""
    import torch

    options = {"return_dict": True}
    if "use_cache" in inspect.signature(model.forward).parameters:
        options["use_cache"] = False
    with torch.no_grad():
        made = model(**inputs, **options)
    outputs = [n for n in OUTPUTS if isinstance(made.get(n), torch.Tensor)]
    if not outputs:
        raise Refused("unsupported_format", f"{type(model).__name__} gives {', '.join(map(str, made))[:200]}, expected one of {', '.join(OUTPUTS)}")
    if outputs[0].endswith("logits"):  # of which hidden states are the step before
        outputs = [n for n in outputs if n not in ("last_hidden_state", "pooler_output")]

    class Predictor(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *given):
            made = self.model(**dict(zip(inputs, given)), **options)
            return tuple(made[n] for n in outputs)

    return Predictor().eval(), outputs


def program_of(path, change=lambda model: None):
    """The model, changed by a function, as a program of torch.export, {name of input: names of its open dimensions}, the names of its outputs,
    and the names of classes as the protocol has them."""
    model, config = opened(path)
    change(model)
    program, dims, outputs = traced(model, inputs_of(model, config, os.path.dirname(path)))
    return program, dims, outputs, names_of(config, outputs)


def traced(model, inputs):
    """The program, open dimensions and outputs of a model, by tensors to trace it with."""
    import torch

    module, outputs = predictor(model, inputs)
    dims = {name: open_dims(tensor) for name, tensor in inputs.items()}
    shapes = {"given": tuple({d: torch.export.Dim.AUTO for d in of} for of in dims.values())}
    try:
        # By itself, transformers computes experts of mixtures by an operator of its own, which nothing else has.
        model.set_experts_implementation("batched_mm")
        with torch.no_grad():
            program = torch.export.export(module, tuple(inputs.values()), dynamic_shapes=shapes)
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever the model's code stumbles upon
        raise Refused("unsupported_op", f"torch.export cannot trace {type(model).__name__}: {' '.join(str(e).split())[:300]}") from None
    check_open(program, dims, type(model).__name__)
    return program, dims, outputs


def check_open(program, dims, name):
    """Refuses a model whose code took a size of the tensors to trace with for the only one."""
    for node, (given, of) in zip(exported.inputs_of(program).values(), dims.items(), strict=True):
        for at, dim in of.items():
            size = exported.number(node.meta["val"].shape[at])
            if size is not None:
                raise Refused("unsupported_op", f"the code of {name} fixes dimension {at} of {given} ({dim}) at the {size} that it is traced with, "
                              f"and engines would take no other: export the model with torch.export, with the {dim} that it is to have")


def names_of(config, outputs):
    """{"outputs": {"logits": names of the classes}}, where a person has named them."""
    names = [config.id2label.get(i) for i in range(len(config.id2label or {}))]
    named = names and all(isinstance(n, str) for n in names) and names != [f"LABEL_{i}" for i in range(len(names))]
    return {"outputs": {"logits": names}} if named and outputs == ["logits"] else {"outputs": {}}


class Engine:
    def __init__(self, path, threads):
        model, config = opened(path)
        self.predict(model, inputs_of(model, config, os.path.dirname(path)), threads)

    def predict(self, model, inputs, threads):
        import torch

        torch.set_num_threads(threads)
        self.torch, (self.module, self.outputs) = torch, predictor(model, inputs)
        self.inputs = {n: (t.numpy().dtype, [-1 if d in open_dims(t) else size for d, size in enumerate(t.shape)]) for n, t in inputs.items()}

    def run(self, feed):
        with self.torch.no_grad():
            return [t.numpy() for t in self.module(*[self.torch.from_numpy(feed[name]) for name in self.inputs])]
