"""Makes types.onnx, which returns its inputs: one of each type that this server has, and sums of the rows of x_f32. Needs onnx."""

import onnx
from onnx import TensorProto as T
from onnx import helper

TYPES = {
    "f32": T.FLOAT, "f64": T.DOUBLE, "f16": T.FLOAT16, "i8": T.INT8, "i16": T.INT16, "i32": T.INT32, "i64": T.INT64,
    "u8": T.UINT8, "u16": T.UINT16, "u32": T.UINT32, "u64": T.UINT64, "b": T.BOOL, "s": T.STRING,
}

inputs = [helper.make_tensor_value_info("x_" + name, code, ["n", 2]) for name, code in TYPES.items()]
outputs = [helper.make_tensor_value_info("y_" + name, code, ["n", 2]) for name, code in TYPES.items()]
inputs.append(helper.make_tensor_value_info("x_0", T.FLOAT, []))
outputs.append(helper.make_tensor_value_info("y_0", T.FLOAT, []))
outputs.append(helper.make_tensor_value_info("y_1", T.FLOAT, ["m"]))
nodes = [helper.make_node("Identity", ["x_" + name], ["y_" + name]) for name in [*TYPES, "0"]]
nodes.append(helper.make_node("Constant", [], ["axes"], value=helper.make_tensor("v", T.INT64, [1], [1])))
nodes.append(helper.make_node("ReduceSum", ["x_f32", "axes"], ["y_1"], keepdims=0))
model = helper.make_model(
    helper.make_graph(nodes, "types", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
)
onnx.checker.check_model(model)
onnx.save(model, "types.onnx")
