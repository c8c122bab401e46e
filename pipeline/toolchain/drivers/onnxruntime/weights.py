"""Int4 weights of matrix products, in blocks along the inner dimension with a scale for
each: rounded to nearest by onnxruntime.quantization, or by half-quadratic quantization."""

import blocks
import hqq
from gemms import split
from graphs import check_names, load
from protocol import Refused, model_of, write

QDQ_OPSET = 21  # the first with DequantizeLinear of blocks of 4 bits
QDQ_IR = 10  # the first with types of 4 bits


def quantize_weights(request, options):
    import onnx

    model = load(model_of(request))
    check_names(options["exclude_nodes"], model)
    model, count = quantized(model, options)
    if count == 0:
        raise Refused("unsupported_op", "the model has no MatMul or Gemm with constant weights that could be made int4")
    onnx.checker.check_model(model)
    write(request, "model.onnx", model.SerializeToString(deterministic=True))
    return {"quantized": count}


def quantized(model, options):
    """The model with int4 weights, and of how many products."""
    from onnxruntime.quantization import QuantFormat, matmul_nbits_quantizer

    if options["format"] == "qdq":
        model = upgraded(model, QDQ_OPSET)
        model.ir_version = max(model.ir_version, QDQ_IR)
    elif options["algorithm"] == "hqq":
        model = upgraded(model, blocks.SHAPE_IN_INPUT)
    split(model, options["exclude_nodes"])
    formats = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
    config = matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(
        block_size=options["block_size"], is_symmetric=options["symmetric"], quant_format=formats[options["format"]], bits=4)
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(model, nodes_to_exclude=options["exclude_nodes"], algo_config=config)
    quantizer.node_quantizer = products = product_quantizer(options, blocks.Names(model.graph))(config)
    quantizer.process()
    return quantizer.model.model, products.count


def upgraded(model, opset):
    """The model in this operator set, or its own if that is later. The quantizer itself would
    write another number over the model's, whatever its operators mean there."""
    from onnx.version_converter import ConvertError, convert_version

    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), opset)
    if version >= opset:
        return model
    try:
        return convert_version(model, opset)
    except (ConvertError, RuntimeError) as e:
        raise Refused("unsupported_op", f"int4 weights need operator set {opset}, and the model, which has {version}, cannot be converted: {e}") from None


def product_quantizer(options, names):
    """The class that quantizes one product after the other. What it makes gets names that are free."""
    from onnx import TensorProto
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantizer, get_initializer

    class Products(DefaultWeightOnlyQuantizer):
        count = 0

        def quantize_matmul(self, node, graph_stack):
            weights, graph = get_initializer(node.input[1], graph_stack)
            # Products of other types are no use: no operator multiplies them with 4 bits.
            if weights is None or weights.data_type not in (TensorProto.FLOAT, TensorProto.FLOAT16):
                return [node]
            nodes = super().quantize_matmul(node, graph_stack)
            if nodes == [node]:
                return nodes
            self.count += 1
            rename_dequantized(nodes, self.count, names)
            if options["algorithm"] == "rtn":
                return nodes
            rows, scales, zeros = self.solved
            return blocks.add_rest(nodes, node.input[0], weights.name, (graph, graph_stack[0]), names, rows, options["block_size"], scales, zeros)

        def qbits_block_quant(self, fp32weight):
            if options["algorithm"] == "rtn":
                return super().qbits_block_quant(fp32weight)
            codes, scales, zeros = hqq.solve(fp32weight, options["block_size"])
            self.solved = len(codes), scales, zeros
            if options["format"] == "qdq":
                return blocks.for_dequantizing(codes, scales, zeros)
            return blocks.for_product(codes, scales, zeros, options["block_size"])

    return Products


def rename_dequantized(nodes, number, names):
    """Gives dequantized weights a name of their own: the quantizer calls them after the
    weights, which several products may share."""
    for node in nodes:
        if node.op_type == "DequantizeLinear":
            was, node.output[0] = node.output[0], names.new(f"{node.output[0]}_{number}")
            for other in nodes:
                for i, name in enumerate(other.input):
                    if name == was:
                        other.input[i] = node.output[0]
