"""Flatbuffers of TensorFlow Lite, as the verb run takes them, on whichever interpreter."""


class Flatbuffer:
    """interpreter has loaded the file; called has other names for its tensors."""

    def __init__(self, interpreter, called=None):
        called = called or {}
        self.interpreter = interpreter
        self.details = [{**d, "name": called.get(d["name"], d["name"])} for d in interpreter.get_input_details()]
        self.inputs = {d["name"]: (d["dtype"], [int(n) for n in signature(d)]) for d in self.details}
        self.outputs = [called.get(d["name"], d["name"]) for d in interpreter.get_output_details()]
        self.indexes = [d["index"] for d in interpreter.get_output_details()]
        self.shapes = None

    def run(self, feed):
        shapes = [feed[d["name"]].shape for d in self.details]
        if shapes != self.shapes:
            self.allocate(shapes)
            self.shapes = shapes
        for d in self.details:
            self.interpreter.set_tensor(d["index"], feed[d["name"]])
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(i) for i in self.indexes]

    def allocate(self, shapes):
        """Makes room for inputs of these shapes."""
        for d, shape in zip(self.details, shapes):
            self.interpreter.resize_tensor_input(d["index"], shape, strict=False)
        self.interpreter.allocate_tensors()


def signature(d):
    """The shape with -1 for open dimensions; an older file has only a fixed one."""
    return d["shape_signature"] if len(d["shape_signature"]) else d["shape"]
