"""What an estimator itself predicts, as the outputs of its ONNX form are called."""

from convert import INPUT, convert, features
from protocol import Refused


class Engine:
    def __init__(self, estimator):
        import numpy

        model, self.outputs = convert(estimator)
        self.kinds = {o.name: (o.type.tensor_type.elem_type, len(o.type.tensor_type.shape.dim)) for o in model.graph.output}
        self.estimator = estimator
        self.inputs = {INPUT: (numpy.dtype("float32"), [-1, features(estimator)])}

    def run(self, feed):
        return [self.predicted(name, feed[INPUT]) for name in self.outputs]

    def predicted(self, name, rows):
        import numpy
        from onnx.helper import tensor_dtype_to_np_dtype

        found = numpy.asarray(self.method(name)(rows))
        kind, rank = self.kinds[name]
        if found.ndim == 1 and rank == 2:
            found = found[:, numpy.newaxis]
        return found.astype(tensor_dtype_to_np_dtype(kind))

    def method(self, name):
        """The method whose result skl2onnx calls so."""
        candidates = {"label": ("predict",), "probabilities": ("predict_proba",), "scores": ("transform", "score_samples"), "variable": ("predict", "transform")}
        for method in candidates.get(name, ()):
            if hasattr(self.estimator, method):
                return getattr(self.estimator, method)
        raise Refused("unsupported_format", f"{type(self.estimator).__qualname__} has no method that gives its output {name!r}")
