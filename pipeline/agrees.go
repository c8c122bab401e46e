package pipeline

import (
	"os"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// graph reads the ONNX file of a model that is one.
func (l loadable) graph() (*format.Model, error) {
	for _, in := range l.inputs {
		if in.Name == l.entry {
			return readGraph(in.Path)
		}
	}
	return nil, registry.Errorf(registry.CodeInvalid, "the model has no file %s", l.entry)
}

// readGraph reads an ONNX file by its name.
func readGraph(file string) (*format.Model, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return format.ReadONNX(f, info.Size(), format.Limits{})
}

// checkAgrees checks that an interface is that of the reference model, since a builder wrote it: an output that it leaves out would
// be compared with nothing, and one of another type by other limits. It may have sizes that the graph leaves open. Errors: CodeTrust, and
// CodeInvalid for a graph that cannot be read.
func checkAgrees(iface validators.Interface, reference loadable) error {
	model, err := reference.graph()
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "the reference model cannot be read: %w", err)
	}
	graph, err := interfaceOf(model)
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
