"""What an estimator itself predicts, as the outputs of its ONNX form are called."""

import warnings

from columns import FLOAT, TEXT, by_name, by_place, columns
from convert import INPUT, convert, features
from protocol import Refused


class Engine:
    any_numbers = True

    def __init__(self, estimator):
        import numpy

        model, self.outputs = convert(estimator)
        self.kinds = {o.name: (o.type.tensor_type.elem_type, len(o.type.tensor_type.shape.dim)) for o in model.graph.output}
        self.estimator, self.table = estimator, columns(estimator)
        if not self.table:
            self.inputs = {INPUT: (numpy.dtype("float32"), [-1, features(estimator)])}
            return
        self.width = len(by_name(estimator).feature_names_in_)
        by_place(by_name(estimator))
        self.inputs = {c.name: (numpy.dtype(object if c.kind == TEXT else c.kind), [-1, 1]) for c in self.table}

    def run(self, feed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a matrix has no names of features
            rows = self.rows(feed) if self.table else feed[INPUT]
            return [self.predicted(name, rows) for name in self.outputs]

    def rows(self, feed):
        """The columns as one matrix, in the places that they had in the table."""
        import numpy

        count = len(next(iter(feed.values())))
        rows = numpy.zeros((count, self.width), object)
        for column in self.table:
            values = feed[column.name][:, 0]
            rows[:, column.place] = values.astype(float) if column.kind == FLOAT else values
        return rows

    def predicted(self, name, rows):
        import numpy
        from onnx.helper import tensor_dtype_to_np_dtype

        found = numpy.asarray(self.method(name)(rows))
        kind, rank = self.kinds[name]
        if found.ndim == 1 and rank == 2:
            found = found[:, numpy.newaxis]
        return found.astype(tensor_dtype_to_np_dtype(kind))

    def method(self, name):
        """The method whose result skl2onnx calls so. The scores of what finds outliers are negative for
        them, as decision_function gives them; score_samples has another origin."""
        from sklearn.base import is_outlier_detector, is_regressor

        scores = ("decision_function",) if is_outlier_detector(self.estimator) else ("transform", "score_samples")
        candidates = {"label": ("predict",), "probabilities": ("predict_proba",), "scores": scores, "variable": ("predict", "transform")}
        # Converters of some regressors have names of their own for what they predict, such as GPmean.
        only = ("predict",) if len(self.outputs) == 1 and is_regressor(self.estimator) else ()
        for method in candidates.get(name, only):
            if hasattr(self.estimator, method):
                return getattr(self.estimator, method)
        raise Refused("unsupported_format", f"{type(self.estimator).__qualname__} has no method that gives its output {name!r}")
