"""ONNX graphs as functions that JAX traces.

Values of the graph are arrays of JAX, or arrays of numpy for what is known while JAX traces: constants,
and shapes, whose open dimensions are JAX's own symbols (numpy arrays of objects). What has only known
inputs is computed at once, by numpy, so that Reshape and its like get a shape that is known.
"""

import onnxoperators
from protocol import Refused


def function_of(model):
    """A function of {input: array} that gives {output: array}."""
    import onnx
    from onnx import numpy_helper

    opset = {o.domain: o.version for o in model.opset_import}
    graph = model.graph
    missing = sorted({n.op_type for n in graph.node if n.domain not in ("", "ai.onnx") or n.op_type not in onnxoperators.OPERATORS})
    if missing:
        raise Refused("unsupported_op", f"no translation to JAX for {', '.join(missing[:8])}", op=missing[0])
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    outputs = [o.name for o in graph.output]

    def compute(feeds):
        values = {**constants, **feeds}
        for node in graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            given = [values[name] if name else None for name in node.input]
            try:
                made = onnxoperators.apply(node.op_type, given, attributes, opset.get("", 1), len(node.output))
            except (Refused, MemoryError):
                raise
            except Exception as e:  # whatever the tracing of an operator stumbles upon
                said = " ".join(str(e).split())
                raise Refused("unsupported_op", f"node {node.name or node.op_type}: JAX cannot trace {node.op_type}: {said[:300]}", op=node.op_type) from e
            values.update((name, value) for name, value in zip(node.output, made) if name)
        return {name: onnxoperators.device(values[name]) for name in outputs}

    return compute
