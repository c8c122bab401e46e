"""Makes the files beside this script: python3 make.py, with the packages of the toolchain torch
(pipeline/toolchain/drivers/torch/requirements.lock). Weights are drawn from a seed.

q8_0.gguf   Llama with one layer, 8-bit weights in blocks of 32
f16.gguf    the same weights in fp16
more.gguf   q8_0.gguf with rope_freqs.weight, which llama.cpp computes with and transformers does not read
"""

import pathlib

import gguf
import numpy

here = pathlib.Path(__file__).resolve().parent
WORDS, SIZE, HIDDEN, HEADS, GROUPS, CONTEXT = 60, 32, 64, 2, 1, 48


def tensors(draw):
    def matrix(rows, columns, gain=1.0):
        return gain * draw.normal(0, columns**-0.5, (rows, columns))

    def norm():
        return 1 + 0.1 * draw.normal(size=SIZE)

    keys = SIZE * GROUPS // HEADS
    yield "token_embd.weight", draw.normal(0, 1, (WORDS, SIZE))
    yield "blk.0.attn_norm.weight", norm()
    yield "blk.0.attn_q.weight", matrix(SIZE, SIZE, 2)
    yield "blk.0.attn_k.weight", matrix(keys, SIZE, 2)
    yield "blk.0.attn_v.weight", matrix(keys, SIZE)
    yield "blk.0.attn_output.weight", matrix(SIZE, SIZE)
    yield "blk.0.ffn_norm.weight", norm()
    yield "blk.0.ffn_gate.weight", matrix(HIDDEN, SIZE)
    yield "blk.0.ffn_up.weight", matrix(HIDDEN, SIZE)
    yield "blk.0.ffn_down.weight", matrix(SIZE, HIDDEN)
    yield "output_norm.weight", norm()
    yield "output.weight", matrix(WORDS, SIZE, 3)


def save(name, kind, number, more=()):
    file = gguf.GGUFWriter(here / name, "llama")
    file.add_name("words")
    file.add_file_type(number)
    file.add_vocab_size(WORDS)
    file.add_context_length(CONTEXT)
    file.add_embedding_length(SIZE)
    file.add_block_count(1)
    file.add_feed_forward_length(HIDDEN)
    file.add_head_count(HEADS)
    file.add_head_count_kv(GROUPS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_freq_base(10000.0)
    file.add_rope_dimension_count(SIZE // HEADS)
    file.add_tokenizer_model("llama")
    file.add_token_list([f"word{i}" for i in range(WORDS)])
    file.add_token_scores([0.0] * WORDS)
    file.add_token_types([1] * WORDS)
    for tensor, values in [*tensors(numpy.random.default_rng(17)), *more]:
        values = values.astype(numpy.float32)
        if values.ndim == 1:
            file.add_tensor(tensor, values)
        else:
            file.add_tensor(tensor, gguf.quants.quantize(values, kind), raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    (here / name).chmod(0o644)


def main():
    save("q8_0.gguf", gguf.GGMLQuantizationType.Q8_0, 7)
    save("f16.gguf", gguf.GGMLQuantizationType.F16, 1)
    save("more.gguf", gguf.GGMLQuantizationType.Q8_0, 7, [("rope_freqs.weight", numpy.full(SIZE // HEADS // 2, 4.0))])


if __name__ == "__main__":
    main()
