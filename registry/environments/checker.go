package environments

import "mlpromote.dev/mlpromote/registry/strictyaml"

// checker reports mistakes in one entry.
type checker struct {
	doc   *strictyaml.Document
	index int
}

func (c checker) at(path ...any) *strictyaml.Node {
	return c.doc.At(append([]any{"trust", c.index}, path...)...)
}
