"""SavedModels: folders with saved_model.pb."""

import os

from onnxgraph import converted
from protocol import Refused

TAG, DEFAULT = "serve", "serving_default"


def signature(folder):
    """The name of the signature that is the model, without loading the model."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    try:
        with open(os.path.join(folder, "saved_model.pb"), "rb") as f:
            saved.ParseFromString(f.read())
    except DecodeError:
        raise Refused("bad_input", "saved_model.pb is damaged") from None
    serving = [m for m in saved.meta_graphs if TAG in m.meta_info_def.tags]
    if len(serving) != 1:
        raise Refused("unsupported_format", f"the SavedModel has {len(serving)} graphs with the tag {TAG!r}: want one, as tf.saved_model.save writes it")
    found = sorted(s for s in serving[0].signature_def if not s.startswith("__"))
    if DEFAULT in found:
        return DEFAULT
    if len(found) != 1:
        raise Refused("unsupported_format", f"the SavedModel has the signatures {', '.join(found) or 'none'}: want {DEFAULT}, or one alone")
    return found[0]


def loaded(load, *args, **options):
    """What load gives. Whatever a damaged folder makes it raise is the input's fault."""
    try:
        return load(*args, **options)
    except (MemoryError, ImportError):
        raise
    except Exception as e:
        raise Refused("bad_input", f"TensorFlow cannot load the SavedModel: {' '.join(str(e).split())[:500]}") from None


def convert(path):
    from tf2onnx import tf_loader

    folder = os.path.dirname(path)
    graph, inputs, outputs, tables, called = loaded(
        tf_loader.from_saved_model, folder, None, None, tag=[TAG], signatures=[signature(folder)], return_initialized_tables=True, return_tensors_to_rename=True
    )
    return converted(frozen_graph=graph, input_names=inputs, output_names=outputs, initialized_tables=tables, tensors_to_rename=called, name="model")


class Engine:
    def __init__(self, path, threads):
        import tensorflow as tf

        if tf.config.threading.get_intra_op_parallelism_threads() != threads:  # which can be said once
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        self.tensor = tf.constant
        folder = os.path.dirname(path)
        self.model = loaded(tf.saved_model.load, folder, tags=[TAG])  # kept, since it owns the variables
        self.function = self.model.signatures[signature(folder)]
        specs = self.function.structured_input_signature[1]
        self.inputs = {name: (spec.dtype.as_numpy_dtype, shape(name, spec)) for name, spec in specs.items()}
        self.outputs = sorted(self.function.structured_outputs)

    def run(self, feed):
        found = self.function(**{name: self.tensor(array) for name, array in feed.items()})
        return [found[name].numpy() for name in self.outputs]


def shape(name, spec):
    if spec.shape.rank is None:
        raise Refused("unsupported_format", f"input {name!r} is a tensor of any rank: export the model with the shapes of its inputs")
    return [-1 if size is None else size for size in spec.shape]
