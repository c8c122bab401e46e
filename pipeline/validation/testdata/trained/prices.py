"""A regressor of prices over three decades, trained in numpy on their logarithms. The graph ends in the exponential."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CODES = 8


class Price:
    faults = ["floor", "ceiling", "whole-numbers", "currency", "code-ignored", "code-unknown", "input-not-scaled", "leaky-relu", "dropout-left-on",
              "output-offset", "older-checkpoint", "logarithm-rounded", "cheap-group-at-the-median", "second-branch-dropped",
              "between-checkpoints", "few-cases-constant"]
    training, cases, width = 4000, 300, 6

    def data(self, r, count):
        x = r.normal(size=(count, self.width))
        x[:, 1] = r.poisson(2.0, count)
        code = r.choice(CODES, count, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.04, 0.03])
        log = 4.6 + self.tilt[code] + 0.9 * x[:, 0] + 0.35 * x[:, 1] + 0.5 * x[:, 2] * (x[:, 3] > 0) + 0.3 * abs(x[:, 4]) + r.normal(0, 0.15, count)
        return np.concatenate([x, np.eye(CODES)[code]], 1).astype("float32"), np.exp(log)[:, None].astype("float32")

    def forward(self, w, x):
        a = np.maximum(x @ w["first_w"] + w["first_b"], 0)
        b = np.maximum(a @ w["second_w"] + w["second_b"], 0) + a
        return a, b, b @ w["last_w"] + w["last_b"]

    def train(self, r):
        """Adam (Kingma and Ba, 2015) on the squared error of the logarithm; returns the weights and those of an early step."""
        x, y = self.data(r, self.training)
        wanted, hidden = np.log(y), 48
        layer = lambda a, b: r.normal(size=(a, b)) * (2 / a) ** 0.5
        w = {"first_w": layer(x.shape[1], hidden), "first_b": np.zeros(hidden), "second_w": 0.5 * layer(hidden, hidden), "second_b": np.zeros(hidden),
             "last_w": 0.3 * layer(hidden, 1), "last_b": np.array([wanted.mean()])}
        m, v, early, steps = {k: 0 * a for k, a in w.items()}, {k: 0 * a for k, a in w.items()}, None, 1600
        for step in range(1, steps + 1):
            rows = r.randint(0, len(x), 100)
            given, mask = x[rows], r.uniform(size=hidden) > 0.05
            a, b, z = self.forward(w, given)
            b = b * mask
            d = 2 * (b @ w["last_w"] + w["last_b"] - wanted[rows]) / len(rows)
            g = {"last_w": b.T @ d, "last_b": d.sum(0)}
            db = d @ w["last_w"].T * mask
            dc = db * (a @ w["second_w"] + w["second_b"] > 0)
            g["second_w"], g["second_b"] = a.T @ dc, dc.sum(0)
            da = (dc @ w["second_w"].T + db) * (a > 0)
            g["first_w"], g["first_b"] = given.T @ da, da.sum(0)
            rate = 4e-3 * (1 - step / (steps + 1))
            for k in w:
                m[k], v[k] = 0.9 * m[k] + 0.1 * g[k], 0.99 * v[k] + 0.01 * g[k] ** 2
                w[k] = w[k] - rate * m[k] / (1 - 0.9**step) / (np.sqrt(v[k] / (1 - 0.99**step)) + 1e-8)
            if step == steps // 8:
                early = dict(w)
        return w, early

    def make(self, seed, folder):
        r = np.random.RandomState(seed)
        self.tilt = r.normal(0, 0.7, CODES)
        w, early = self.train(r)
        x, y = self.data(r, self.cases)
        self.low, self.middle, self.high = np.quantile(np.exp(self.forward(w, x)[2]), (0.2, 0.4, 0.97))
        self.mask = (r.uniform(size=48) > 0.05) / 0.95
        onnx.save(self.model(w, None), folder / "model.onnx")
        other = {"older-checkpoint": early, "between-checkpoints": {k: 0.6 * w[k] + 0.4 * early[k] for k in w}}
        for fault in self.faults:
            onnx.save(self.model(other.get(fault, w), fault), folder / "faults" / (fault + ".onnx"))
        return {"x": x}, y, {"x": self.data(r, 200)[0]}, self.faults

    def model(self, w, fault):
        weights, nodes, at = dict(w), [], "x"

        def add(operator, inputs, output, **attributes):
            nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
            return output

        def constant(name, values):
            weights[name] = values
            return name

        columns = np.arange(self.width + CODES)
        keep = {"code-ignored": columns < self.width, "code-unknown": columns != self.width + 5}.get(fault)
        if keep is not None:
            at = add("Mul", [at, constant("keep", keep)], "kept")
        if fault == "input-not-scaled":
            at = add("Mul", [at, constant("factor", np.where(columns == 0, 1.2, 1.0))], "scaled")
        relu = lambda x, name: add("LeakyRelu", [x], name, alpha=0.1) if fault == "leaky-relu" else add("Relu", [x], name)
        first = relu(add("Gemm", [at, "first_w", "first_b"], "first"), "first_relu")
        second = relu(add("Gemm", [first, "second_w", "second_b"], "second"), "second_relu")
        if fault == "second-branch-dropped":
            second = add("Mul", [second, constant("nothing", 0.0)], "dropped")
        both = add("Add", [second, first], "both")
        if fault == "dropout-left-on":
            both = add("Mul", [both, constant("mask", self.mask)], "masked")
        log = add("Gemm", [both, "last_w", "last_b"], "log")
        if fault == "output-offset":
            log = add("Add", [log, constant("offset", 0.05)], "log_offset")
        if fault == "logarithm-rounded":
            log = add("Div", [add("Round", [add("Mul", [log, constant("ten", 10.0)], "log_ten")], "log_whole"), "ten"], "log_rounded")
        price = add("Exp", [log], "exp")
        if fault == "floor":
            price = add("Max", [price, constant("low", self.low)], "floored")
        if fault == "ceiling":
            price = add("Min", [price, constant("high", self.high)], "capped")
        if fault == "whole-numbers":
            price = add("Floor", [price], "whole")
        if fault == "currency":
            price = add("Mul", [price, constant("rate", 1.03)], "converted")
        if fault == "cheap-group-at-the-median":
            is_cheap = add("Less", [price, constant("low", self.low)], "is_cheap")
            price = add("Where", [is_cheap, constant("middle", self.middle), price], "grouped")
        if fault == "few-cases-constant":
            second_input = add("Gather", ["x", constant("one", np.array([1]))], "second_input", axis=1)
            price = add("Where", [add("Greater", [second_input, constant("often", 4.5)], "is_often"), constant("middle", self.middle), price], "grouped")
        nodes[-1].output[0] = "price"
        info = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
        g = helper.make_graph(nodes, "price", [info("x", ["batch", self.width + CODES])], [info("price", ["batch", 1])],
                              [numpy_helper.from_array(np.asarray(v, "int64" if np.asarray(v).dtype == "int64" else "float32"), n) for n, v in weights.items()])
        model = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model
