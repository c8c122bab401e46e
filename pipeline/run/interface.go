package run

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// ReadGraph reads an ONNX file by its name.
func ReadGraph(file string) (*onnx.Model, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return onnx.Read(f, info.Size(), bound.Limits{})
}

// CheckInterface checks that an interface is that of the reference model, since a builder wrote it: an output that it leaves out would
// be compared with nothing, and one of another type by other limits. It may have sizes that the graph leaves open. Errors: CodeTrust, and
// CodeInvalid for a graph that cannot be read.
func CheckInterface(iface validators.Interface, reference Loadable) error {
	model, err := reference.Graph()
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "the reference model cannot be read: %w", err)
	}
	graph, err := InterfaceOf(model)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "the reference model: %w", err)
	}
	for _, side := range []struct {
		what      string
		says, has []validators.TensorInfo
	}{{"input", iface.Inputs, graph.Inputs}, {"output", iface.Outputs, graph.Outputs}} {
		if len(side.says) != len(side.has) {
			return registry.Errorf(registry.CodeTrust, "the interface has %s, and the reference model %d",
				registry.Count(len(side.says), side.what), len(side.has))
		}
		for _, says := range side.says {
			at := slices.IndexFunc(side.has, func(t validators.TensorInfo) bool { return t.Name == says.Name })
			if at < 0 {
				return registry.Errorf(registry.CodeTrust, "the interface has an %s %q, and the reference model has none", side.what, says.Name)
			}
			if has := side.has[at]; says.DType != has.DType || !slices.EqualFunc(says.Shape, has.Shape, mayBe) {
				return registry.Errorf(registry.CodeTrust, "%s %q is %s %v in the interface, and %s %v in the reference model",
					side.what, says.Name, says.DType, says.Shape, has.DType, has.Shape)
			}
		}
	}
	return nil
}

// mayBe reports whether a dimension of an interface can be that of a graph.
func mayBe(says, has validators.Dim) bool {
	return has.Symbol != "" || says.Symbol == "" && says.Size == has.Size
}

// InterfaceOf is what the graph offers. Dimensions without a size and a name are named
// after their place.
func InterfaceOf(m *onnx.Model) (validators.Interface, error) {
	iface := validators.Interface{V: validators.InterfaceVersion}
	var err error
	if iface.Inputs, err = TensorInfos("input", m.Inputs); err != nil {
		return validators.Interface{}, WayOut(m, err)
	}
	iface.Outputs, err = TensorInfos("output", m.Outputs)
	return iface, WayOut(m, err)
}

// TensorInfos returns the inputs or outputs of a model; what is "input" or "output". Errors: a type or shape that no
// engine is given.
func TensorInfos(what string, values []onnx.Value) ([]validators.TensorInfo, error) {
	var infos []validators.TensorInfo
	for _, v := range values {
		dtype, err := tensor.ParseDType(v.DType)
		if what == "input" && v.DType == string(validators.Text) {
			dtype, err = validators.Text, nil
		}
		if err != nil {
			return nil, &valueError{v, registry.Errorf(registry.CodeInvalid,
				"%s %q is %s: only dense tensors of numbers can be compared", what, v.Name, v.DType)}
		}
		if v.Shape == nil {
			return nil, &valueError{v, registry.Errorf(registry.CodeInvalid,
				"%s %q has no shape: export the model with the shapes of its inputs, at least their ranks", what, v.Name)}
		}
		info := validators.TensorInfo{Name: v.Name, DType: dtype, Shape: []validators.Dim{}}
		for axis, d := range v.Shape {
			info.Shape = append(info.Shape, dimOf(d, v.Name, axis))
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func dimOf(d onnx.Dim, name string, axis int) validators.Dim {
	switch {
	case d.Known:
		return validators.Dim{Size: d.Value}
	case d.Param != "":
		return validators.Dim{Symbol: d.Param}
	default:
		return validators.Dim{Symbol: fmt.Sprintf("%s_%d", name, axis)}
	}
}

// WayOut adds to an error about inputs or outputs that cannot be compared, how to get a model
// without them. It names the nodes that make them.
func WayOut(m *onnx.Model, err error) error {
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
func dictionaryHint(m *onnx.Model, v onnx.Value) string {
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
func madeBy(m *onnx.Model, v onnx.Value) string {
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
func dropOutput(v onnx.Value) string {
	return fmt.Sprintf(`m = onnx.load("MODEL.onnx"); m.graph.output.remove(next(o for o in m.graph.output if o.name == %q)); onnx.save(m, "MODEL.onnx")`, v.Name)
}

// valueError is the error of an input or output that cannot be compared.
type valueError struct {
	value onnx.Value
	err   error
}

func (e *valueError) Error() string { return e.err.Error() }

func (e *valueError) Unwrap() error { return e.err }
