"""Makes the Keras models beside this script: python3 make.py, with the packages of the toolchain
tensorflow (pipeline/toolchain/drivers/tensorflow/requirements.lock).

digits.keras   the trained network of examples/digits as Keras has it, channels last
lambda.keras   a model with a Lambda layer
custom.keras   a model with a layer that Keras does not have

The times of what Keras writes into an archive differ from run to run.
"""

import os
import pathlib

os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")

import keras  # noqa: E402
import onnx  # noqa: E402
import onnx.numpy_helper  # noqa: E402

here = pathlib.Path(__file__).resolve().parent
digits = here / "../../../../../examples/digits"


def network():
    trained = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(digits / "digits.onnx").graph.initializer}
    image = x = keras.Input((8, 8, 1), name="image")
    sizes = []
    for i in (1, 2):
        kernel = trained[f"conv{i}.weight"].transpose(2, 3, 1, 0)
        x = keras.layers.Conv2D(kernel.shape[3], 3, padding="same", activation="relu", name=f"conv{i}")(x)
        sizes += [kernel, trained[f"conv{i}.bias"]]
    x = keras.layers.Flatten(name="flat")(keras.layers.MaxPooling2D(name="pool")(x))
    logits = keras.layers.Dense(10, name="logits")(x)
    model = keras.Model(image, {"logits": logits, "probability": keras.layers.Softmax(name="probability")(logits)}, name="digits")
    # What was flattened with its channels first is flattened here with them last.
    dense = trained["dense.weight"].reshape(32, 4, 4, 10).transpose(1, 2, 0, 3).reshape(512, 10)
    model.set_weights([*sizes, dense, trained["dense.bias"]])
    return model


@keras.saving.register_keras_serializable("mine")
class Mine(keras.layers.Layer):
    def call(self, x):
        return x * 3


def main():
    network().save(here / "digits.keras")
    for name, layer in (("lambda", keras.layers.Lambda(lambda x: x * 2)), ("custom", Mine())):
        keras.Sequential([keras.Input((4,), name="x"), layer], name="model").save(here / f"{name}.keras")


if __name__ == "__main__":
    main()
