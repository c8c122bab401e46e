package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// valueError is the error of an input or output that cannot be compared.
type valueError struct {
	value format.Value
	err   error
}

func (e *valueError) Error() string { return e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }

// wayOut adds to an error about inputs or outputs that cannot be compared, how to get a model
// without them. It names the nodes that make them.
func wayOut(m *format.Model, err error) error {
	var of *valueError
	if !errors.As(err, &of) {
		return err
	}
	switch v := of.value; {
	case strings.Contains(v.DType, "("):
		return registry.WithHint(err, "%s", dictionaryHint(m, v))
	case v.DType == string(validators.Text):
		return registry.WithHint(err,
			"%sleave the output out: %s; nodes find the names of classes in labels.json, by the largest score", madeBy(m, v), dropOutput(v))
	}
	return err
}

// dictionaryHint says how to do without a sequence, map or optional value.
func dictionaryHint(m *format.Model, v format.Value) string {
	made := madeBy(m, v)
	switch op := m.Producers[v.Name]; {
	case op == "ZipMap":
		return made + `export the model with a tensor of probabilities instead: skl2onnx.to_onnx(model, ..., options={"zipmap": False}); with onnxmltools likewise zipmap=False`
	case strings.HasPrefix(v.DType, "sequence(") && op != "":
		return made + "join its elements before the output, by ConcatFromSequence or in the exporting program (torch.stack, torch.cat), " +
			"or leave it out: " + dropOutput(v)
	case op != "":
		return made + "leave it out: " + dropOutput(v)
	}
	return "export the model with a tensor in its place"
}

// madeBy says which node makes an output: `the node "n" (ZipMap) makes it: `.
func madeBy(m *format.Model, v format.Value) string {
	op, ok := m.Producers[v.Name]
	if !ok {
		return ""
	}
	if name := m.ProducerNames[v.Name]; name != "" {
		return fmt.Sprintf("the node %.80q (%s) makes it: ", name, op)
	}
	return fmt.Sprintf("a node %s makes it: ", op)
}

// dropOutput is a line of Python that removes an output of a graph m.
func dropOutput(v format.Value) string {
	return fmt.Sprintf(`m = onnx.load("MODEL.onnx"); m.graph.output.remove(next(o for o in m.graph.output if o.name == %q)); onnx.save(m, "MODEL.onnx")`, v.Name)
}
