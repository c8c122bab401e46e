"""StableHLO, as jax.export writes it, as ONNX: one function, without what computes the same twice.

A broadcast is put off: operators of ONNX broadcast by themselves, and most of what StableHLO broadcasts
are numbers that the next operator takes. A value is (name of a tensor, shape to expand it to, or None).
"""

import hlooperators
import numpy as np
from protocol import Refused

OPSET, IR_VERSION = 17, 8


class Emitter:
    """Nodes in the making; values of StableHLO are in scopes, one for each function that is called."""

    def __init__(self, functions):
        self.functions, self.nodes, self.initializers, self.made, self.scopes = functions, [], [], {}, [{}]

    def node(self, kind, *inputs, **attributes):
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value, dtype=None):
        """A tensor of the graph; one for equal ones."""
        from onnx import numpy_helper

        value = np.asarray(value, dtype, order="C")
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self.made:
            self.made[key] = f"constant_{len(self.initializers)}"
            self.initializers.append(numpy_helper.from_array(value, self.made[key]))
        return self.made[key]

    def whole(self, value):
        """The tensor of a value, expanded."""
        name, shape = self.scopes[-1][value]
        if shape is None:
            return name
        return self.node("Expand", name, shape if isinstance(shape, str) else self.constant(shape, "int64"))

    def sizes(self, value):
        """A value that is a shape, as ONNX takes it."""
        return self.node("Cast", self.whole(value), to=7)

    def keep(self, operation, *names):
        self.scopes[-1].update((result, (name, None)) for result, name in zip(operation.results, names))

    def put_off(self, operation, name, shape):
        self.scopes[-1][operation.results[0]] = (name, shape)

    def elementwise(self, operation, emit):
        """An operator whose operands have one shape: those that are broadcast stay as they are, if one is whole."""
        pairs = [self.scopes[-1][o] for o in operation.operands]
        name = emit(*(n for n, _ in pairs))
        shape = None if any(s is None for _, s in pairs) else pairs[0][1]
        self.put_off(operation, name, shape)

    def call(self, name, arguments):
        """The values that a function returns."""
        function = self.functions.get(name)
        if function is None or len(self.scopes) > 64:
            raise Refused("bad_input", f"the program calls {name}, which it does not have, or calls nest too deeply")
        block = function.regions[0].blocks[0]
        values = dict(zip(block.arguments, arguments))
        self.scopes.append(values)
        for operation in block.operations:
            if operation.operation.name in ("func.return", "stablehlo.return"):
                found = [self.scopes[-1][o] for o in operation.operation.operands]
                self.scopes.pop()
                return found
            self.emit(operation.operation)
        raise Refused("bad_input", f"the function {name} returns nothing")

    def emit(self, operation):
        kind = operation.name.removeprefix("stablehlo.")
        if kind in ("func.call", "call", "composite"):
            self.inline(operation, kind)
            return
        f = hlooperators.OPERATORS.get(kind)
        if f is None:
            raise Refused("unsupported_op", f"no translation to ONNX for {operation.name}", op=operation.name)
        f(self, operation)

    def inline(self, operation, kind):
        from jaxlib.mlir import ir

        if kind == "composite":
            name = ir.StringAttr(operation.attributes["name"]).value
            if name in hlooperators.COMPOSITES:
                self.elementwise(operation, lambda x: hlooperators.COMPOSITES[name](self, x, hlooperators.dtype_of(operation.results[0])))
                return
        callee = operation.attributes["decomposition" if kind == "composite" else "callee"]
        found = self.call(ir.FlatSymbolRefAttr(callee).value, [self.scopes[-1][o] for o in operation.operands])
        self.scopes[-1].update(zip(operation.results, found))


def model_of(program):
    """The model of a program that package exported opened."""
    import exported
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    from jax._src.interpreters import mlir
    from onnx import helper

    if list(program.platforms) != ["cpu"]:
        raise Refused("unsupported_format", f"the program is for {', '.join(program.platforms)}: export it with platforms=['cpu']")
    with mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, bytes(program.mlir_module_serialized))
        module = module if isinstance(module, ir.Module) else ir.Module.parse(module, context)
        functions = {ir.StringAttr(f.attributes["sym_name"]).value: f.operation for f in module.body.operations}
        emitter = Emitter(functions)
        names = exported.inputs_of(program)
        given = [(names[i], None) for i in program.module_kept_var_idx]
        found = emitter.call("main", given)
        emitter.scopes = [dict(enumerate(found))]
        results = [emitter.whole(i) for i in range(len(found))]
    outputs = exported.outputs_of(program)
    if set(names) & set(outputs):
        raise Refused("unsupported_format", f"inputs and outputs are called the same: {', '.join(sorted(set(names) & set(outputs)))}")
    emitter.nodes += [helper.make_node("Identity", [r], [o], o) for r, o in zip(results, outputs)]
    needed(emitter, outputs)
    ends = [[value(n, a) for n, a in zip(*pair)] for pair in ((names, program.in_avals), (outputs, program.out_avals))]
    graph = helper.make_graph(emitter.nodes, "model", *ends, emitter.initializers)
    return checked(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="jax"))


def needed(emitter, outputs):
    """Drops what no output needs."""
    wanted, kept = set(outputs), []
    for node in reversed(emitter.nodes):
        if wanted & set(node.output):
            kept.append(node)
            wanted.update(node.input)
    emitter.nodes = kept[::-1]
    emitter.initializers = [i for i in emitter.initializers if i.name in wanted]


def value(name, aval):
    from onnx import helper

    sizes = [d if isinstance(d, int) else str(d) if str(d).isidentifier() else None for d in aval.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(aval.dtype)), sizes)


def checked(model):
    import onnx

    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
        raise Refused("unsupported_op", f"what became of this program is not valid ONNX: {' '.join(str(e).split())[:300]}") from None
    return model
