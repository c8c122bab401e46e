"""Archives of Keras 3: files that end in .keras."""

import os
import re

import savedmodel
from protocol import Refused


def opened(path):
    """The model, without its optimizer. Lambda layers and classes of others are refused by Keras too."""
    import keras

    if keras.backend.backend() != "tensorflow":
        raise Refused("unavailable", f"Keras computes with {keras.backend.backend()}: want tensorflow")
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except (MemoryError, ImportError):
        raise
    except Exception as e:  # whatever a damaged archive makes it raise
        raise Refused("bad_input", f"Keras {keras.__version__} cannot load the file: {' '.join(str(e).split())[:300]}") from None
    if not getattr(model, "inputs", None):
        raise Refused("unsupported_format", "the model has no inputs of known shape: call it once, or begin it with keras.Input, and save it again")
    return model


def inputs_of(model):
    """Its inputs by name: {name: tensor}, in the order in which the model takes them."""
    return named([t.name for t in model.inputs], model.inputs, "inputs")


def outputs_of(model, values):
    """What the model gives, by name: the keys of a dictionary, or the names of the last layers."""
    if isinstance(values, dict):
        return named(list(values), list(values.values()), "outputs")
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    names = list(getattr(model, "output_names", [])) or [layer.name for layer in model.layers[-1:]]
    if len(names) != len(values):
        raise Refused("unsupported_format", f"the model has {len(values)} outputs and names for {len(names)}: give it a dictionary of outputs")
    return named(names, values, "outputs")


def named(names, values, what):
    clean = [re.sub(r"\W", "_", name.split(":")[0]) for name in names]
    if len(set(clean)) < len(values):
        raise Refused("unsupported_format", f"two {what} of the model are called the same: {', '.join(clean[:8])}: give its layers names")
    return dict(zip(clean, values))


def call(model, feed):
    """What the model predicts for {name: tensor}."""
    given = [feed[name] for name in inputs_of(model)]
    structure = parts(model, "input")
    if isinstance(structure, dict):
        order = {id(t): g for t, g in zip(model.inputs, given)}
        given = {key: order[id(t)] for key, t in structure.items()}
    elif len(given) == 1:
        (given,) = given
    return outputs_of(model, model(given, training=False))


def parts(model, what):
    """Its input or its output as the model has it: a tensor, a list, or a dictionary."""
    import keras

    return getattr(model, what + "s" if isinstance(model, keras.Sequential) else what)


def convert(path):
    """By way of a SavedModel, which tf2onnx reads."""
    import tensorflow as tf

    model = opened(path)
    module = tf.Module()
    module.model = model
    inputs = inputs_of(model)
    specs = [tf.TensorSpec(t.shape, t.dtype, name) for name, t in inputs.items()]
    module.call = tf.function(lambda *given: call(model, dict(zip(inputs, given))), input_signature=specs)
    try:
        tf.saved_model.save(module, "saved", signatures=module.call.get_concrete_function())
    except (MemoryError, ImportError):
        raise
    except Exception as e:
        raise Refused("unsupported_op", f"TensorFlow cannot trace the model: {' '.join(str(e).split())[:300]}") from None
    return savedmodel.convert(os.path.join("saved", "saved_model.pb"))


class Engine:
    def __init__(self, path, threads):
        import numpy
        import tensorflow as tf

        if tf.config.threading.get_intra_op_parallelism_threads() != threads:  # which can be said once
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        self.model, self.tensor = opened(path), tf.constant
        self.inputs = {n: (numpy.dtype(t.dtype), [-1 if s is None else s for s in t.shape]) for n, t in inputs_of(self.model).items()}
        self.outputs = sorted(outputs_of(self.model, parts(self.model, "output")))

    def run(self, feed):
        found = call(self.model, {name: self.tensor(array) for name, array in feed.items()})
        return [found[name].numpy() for name in self.outputs]
