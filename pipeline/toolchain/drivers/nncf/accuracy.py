"""The release's own metric, for quantization that has to keep it."""

from graphs import graph_inputs
from protocol import Refused
from tensors import cases, read_shard


class Judge:
    """Top-1 accuracy of one output on labelled cases: the share of rows whose largest
    value is where the label says."""

    def __init__(self, model, shards, labels, output):
        if not shards:
            raise Refused("bad_input", "accuracy_aware needs labelled cases: inputs of role cases")
        self.output = output
        self.items = []
        answers = (answer for item in shards for answer in labels_of(item, labels))
        for feed, answer in zip(cases(shards, graph_inputs(model)), answers):
            self.items.append((feed, answer))
        self.validations = 0

    def validate(self, model, items):
        """The metric and what each case contributes, as NNCF asks for it."""
        import numpy

        self.validations += 1
        run = session(model)
        hits = []
        for feed, answer in items:
            (got,) = run.run([self.output], feed)
            hits.append(float(numpy.mean(numpy.argmax(got, axis=-1).reshape(-1) == numpy.reshape(answer, -1))))
        return (sum(hits) / len(hits) if hits else 0.0), hits

    def said(self, model, made):
        validations = self.validations
        return {
            "metric": "top1", "output": self.output, "count": len(self.items), "validations": validations,
            "model": self.validate(model, self.items)[0], "quantized": self.validate(made, self.items)[0],
        }


def labels_of(item, name):
    tensors = read_shard(item)
    if name not in tensors:
        raise Refused("bad_input", f"{item['name']} has no tensor {name!r} of labels: it has {', '.join(sorted(tensors))}")
    return tensors[name]


def session(model):
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString(), onnxruntime.SessionOptions(), providers=["CPUExecutionProvider"])
