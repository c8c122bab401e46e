"""Int4 weights of matrix products, by onnxruntime.quantization: round to nearest in
blocks along the inner dimension, with a scale for each."""

from graphs import load, one_thread
from protocol import Refused, model_of, write


def quantize_weights(request, options):
    source = model_of(request)
    load(source)
    one_thread()
    import onnx
    from onnxruntime.quantization import QuantFormat, matmul_nbits_quantizer

    formats = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
    config = matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(
        block_size=options["block_size"], is_symmetric=options["symmetric"], quant_format=formats[options["format"]], bits=4)
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        model=onnx.load(source), nodes_to_exclude=options["exclude_nodes"], algo_config=config)
    quantizer.process()
    model = quantizer.model.model
    count = sum(node.op_type == "MatMulNBits" for node in model.graph.node)
    if options["format"] == "qdq":
        count = sum(i.data_type in (onnx.TensorProto.INT4, onnx.TensorProto.UINT4) for i in model.graph.initializer)
    if count == 0:
        raise Refused("unsupported_op", "the model has no MatMul with constant weights that could be made int4")
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"quantized": count}
