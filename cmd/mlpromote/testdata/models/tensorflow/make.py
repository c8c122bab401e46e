"""Makes the TensorFlow models beside this script: python3 make.py, with the packages of the
toolchain tensorflow (pipeline/toolchain/drivers/tensorflow/requirements.lock).

digits/         a SavedModel: the trained network of examples/digits as TensorFlow has it,
                channels last, its weights as variables, and two outputs
digits.tflite   the same, converted by TensorFlow
reading/        a SavedModel that reads a file
cases/          100 images of the digits example, channels last, and what they show

The order of what TensorFlow writes into a SavedModel differs from run to run.
"""

import json
import os
import pathlib
import shutil
import struct

os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnx.numpy_helper  # noqa: E402
import tensorflow as tf  # noqa: E402

here = pathlib.Path(__file__).resolve().parent
digits = here / "../../../../../examples/digits"
CASES = 100
IMAGE = tf.TensorSpec([None, 8, 8, 1], tf.float32, "image")


def weights():
    graph = onnx.load(digits / "digits.onnx").graph
    return {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}


class Digits(tf.Module):
    def __init__(self):
        super().__init__()
        trained = weights()
        self.kernels = [tf.Variable(trained[f"conv{i}.weight"].transpose(2, 3, 1, 0)) for i in (1, 2)]
        self.biases = [tf.Variable(trained[f"conv{i}.bias"]) for i in (1, 2)]
        # What was flattened with its channels first is flattened here with them last.
        dense = trained["dense.weight"].reshape(32, 4, 4, 10).transpose(1, 2, 0, 3).reshape(512, 10)
        self.dense, self.bias = tf.Variable(dense), tf.Variable(trained["dense.bias"])

    @tf.function(input_signature=[IMAGE])
    def __call__(self, image):
        for kernel, bias in zip(self.kernels, self.biases):
            image = tf.nn.relu(tf.nn.conv2d(image, kernel, 1, "SAME") + bias)
        pooled = tf.nn.max_pool2d(image, 2, 2, "VALID")
        logits = tf.matmul(tf.reshape(pooled, [-1, 512]), self.dense) + self.bias
        return {"logits": logits, "probability": tf.nn.softmax(logits)}


class Reading(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def __call__(self, x):
        return {"y": x + tf.cast(tf.strings.length(tf.io.read_file("/etc/hostname")), tf.float32)}


def save(module, folder):
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(module, str(folder), signatures=module.__call__.get_concrete_function())
    for part in ("fingerprint.pb", "assets"):  # of which nothing is read
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def cases():
    data = (digits / "cases/cases-00000.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    image = body[header["image"]["data_offsets"][0] :][: CASES * 64 * 4]  # one channel: first or last is the same
    label = body[header["label"]["data_offsets"][0] :][: CASES * 8]
    text = json.dumps({
        "image": {"dtype": "F32", "shape": [CASES, 8, 8, 1], "data_offsets": [0, len(image)]},
        "label": {"dtype": "I64", "shape": [CASES], "data_offsets": [len(image), len(image) + len(label)]},
    }, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (here / "cases").mkdir(exist_ok=True)
    (here / "cases/cases.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + image + label)
    return numpy.frombuffer(image, "<f4").reshape(CASES, 8, 8, 1), numpy.frombuffer(label, "<i8")


def main():
    images, labels = cases()
    model = Digits()
    right = numpy.mean(numpy.argmax(model(images)["logits"], axis=1) == labels)
    if right < 0.97:
        raise SystemExit(f"{right:.2%} right: the weights are not where they belong")
    save(model, here / "digits")
    converter = tf.lite.TFLiteConverter.from_saved_model(str(here / "digits"))
    (here / "digits.tflite").write_bytes(converter.convert())
    save(Reading(), here / "reading")
    print(f"{right:.2%} right")


if __name__ == "__main__":
    main()
