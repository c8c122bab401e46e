"""TensorFlow Lite files."""

from interpreting import Flatbuffer
from onnxgraph import converted, renamed
from protocol import Refused


def interpreter(path, threads=1):
    import tensorflow as tf

    try:
        return tf.lite.Interpreter(model_path=path, num_threads=threads)
    except (ValueError, RuntimeError) as e:
        raise Refused("bad_input", f"TensorFlow cannot read the file: {e}") from None


def names(loaded):
    """What the signature calls inputs and outputs, by names of tensors: {} without one."""
    signatures = loaded.get_signature_list()
    if not signatures:
        return {}
    if len(signatures) > 1:
        raise Refused("unsupported_format", f"the file has the signatures {', '.join(sorted(signatures))}: want one, since each is a model")
    runner = loaded.get_signature_runner(next(iter(signatures)))
    details = {**runner.get_input_details(), **runner.get_output_details()}
    found = {d["name"]: name for name, d in details.items()}
    if len(found) < len(details):
        raise Refused("unsupported_format", f"some of the inputs and outputs {', '.join(sorted(details))} are one tensor: want a tensor for each")
    return found


def convert(path):
    called = names(interpreter(path))
    model = converted(frozen_graph=None, tflite_path=path, name="model")
    if called:
        inner = {t for node in model.graph.node for t in node.output} & set(called.values()) - set(called)
        renamed(model.graph, {**{t: t + "__inner" for t in inner}, **called})
    return model


class Engine(Flatbuffer):
    def __init__(self, path, threads):
        loaded = interpreter(path, threads)
        super().__init__(loaded, names(loaded))
