package onnx

// maxTrialWork bounds the nodes that all trials of a model visit.
const maxTrialWork = 20_000_000

// trials try sizes of inputs: they compute the shapes that follow from one, as far as the nodes are
// known, and find out where a graph can't be run.
type trials struct {
	flow *flow
	work int
}

// trial is the shapes that are known of one size of one input.
type trial struct {
	*flow
	shapes []([]int64) // by value; nil where it is not known
	stride []int64     // by value: how many elements of the input lie between two of it, at most
	most   int64       // the largest of them
}

// run reports whether the graph takes an input of a shape, as far as is known, and by how much its
// sizes are divided. Beyond the work for all trials nothing fits.
func (t *trials) run(input int32, shape []int64) (fits bool, stride int64) {
	if t.work -= len(t.flow.nodes) + len(t.flow.ids); t.work < 0 {
		return false, 1
	}
	r := trial{flow: t.flow, shapes: make([][]int64, len(t.flow.ids)), stride: make([]int64, len(t.flow.ids)), most: 1}
	r.shapes[input], r.stride[input] = shape, 1
	for _, n := range t.flow.nodes {
		if !r.node(n) {
			return false, r.most
		}
	}
	return true, r.most
}

// node computes the shape of a node's output, and reports whether the node can run.
func (r *trial) node(n flowNode) bool {
	if len(n.out) == 0 || n.out[0] == noValue || !r.depends(n) {
		return true
	}
	shape, fits := r.after(n)
	if !fits {
		return false
	}
	elements := int64(1)
	for _, size := range shape {
		if size < 1 {
			return false
		}
		if elements *= min(size, maxFlowNumber); elements > 1<<38 {
			return true // too large to compute with
		}
	}
	r.shapes[n.out[0]] = shape
	for _, in := range n.in {
		if in != noValue {
			r.stride[n.out[0]] = max(r.stride[n.out[0]], r.stride[in])
		}
	}
	if steps := n.numbers["strides"]; len(steps) > 0 && n.op != "ConvTranspose" {
		widest := int64(1)
		for _, step := range steps {
			widest = max(widest, step)
		}
		if product := r.stride[n.out[0]] * widest; product <= 1<<16 {
			r.stride[n.out[0]] = product
		}
	}
	r.most = max(r.most, r.stride[n.out[0]])
	return true
}

// depends reports whether an input of a node has a shape that comes from the input of the model.
func (r *trial) depends(n flowNode) bool {
	for _, in := range n.in {
		if in != noValue && r.shapes[in] != nil {
			return true
		}
	}
	return false
}

// of is the shape of a node's input: computed, or that of a constant.
func (r *trial) of(n flowNode, at int) []int64 {
	if at >= len(n.in) || n.in[at] == noValue {
		return nil
	}
	if shape := r.shapes[n.in[at]]; shape != nil {
		return shape
	}
	return r.constants[n.in[at]].dims
}

// after gives the shape of the first output, nil where it is not known.
func (r *trial) after(n flowNode) (shape []int64, fits bool) {
	x := r.of(n, 0)
	switch n.op {
	case "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Cast", "Identity", "BatchNormalization", "InstanceNormalization", "Dropout",
		"Softmax", "LogSoftmax", "Erf", "Sqrt", "Exp", "Log", "Abs", "Neg", "HardSigmoid", "HardSwish", "Elu", "Selu", "Gelu", "Softplus", "Mish",
		"LRN", "LayerNormalization", "QuantizeLinear", "DequantizeLinear":
		return x, true
	case "Add", "Sub", "Mul", "Div", "Pow", "PRelu":
		return broadcast(x, r.of(n, 1))
	case "Gather":
		return gathered(r.known(n, 0).dims, r.of(n, 1), n.number("axis", 0)), true
	case "Concat":
		return r.concat(n)
	case "Transpose":
		return transposed(x, n.numbers["perm"]), true
	case "Conv":
		return convolved(n, x, r.of(n, 1))
	case "ConvTranspose":
		return upConvolved(n, x, r.of(n, 1))
	case "MaxPool", "AveragePool", "LpPool":
		return pooled(n, x)
	case "GlobalAveragePool", "GlobalMaxPool":
		return onePixel(x), true
	case "Resize", "Upsample":
		return scaled(x, r.known(n, min(len(n.in), 3)-1).values), true
	case "Flatten":
		return flat(x, n.number("axis", 1)), true
	case "Reshape":
		return reshaped(x, r.known(n, 1).values)
	case "Gemm":
		return product(x, r.of(n, 1), n.number("transB", 0) != 0 && len(r.of(n, 1)) == 2)
	case "MatMul":
		return product(x, r.of(n, 1), false)
	}
	return nil, true
}

// concat joins along an axis. All other sizes must be equal: that of a network whose parts shrink
// and grow again may not be.
func (r *trial) concat(n flowNode) ([]int64, bool) {
	var out []int64
	for i := range n.in {
		x := r.of(n, i)
		if x == nil {
			return nil, true
		}
		axis := n.number("axis", 0)
		if axis < 0 {
			axis += int64(len(x))
		}
		if axis < 0 || axis >= int64(len(x)) || out != nil && len(out) != len(x) {
			return nil, true
		}
		if out == nil {
			out = append([]int64{}, x...)
			continue
		}
		for d := range x {
			if int64(d) == axis {
				out[d] += x[d]
			} else if out[d] != x[d] {
				return nil, false
			}
		}
	}
	return out, true
}
