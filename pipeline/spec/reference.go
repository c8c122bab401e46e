package spec

import "strings"

// Reference is what the spec says of the reference model's outputs.
type Reference struct {
	Accept string `yaml:"accept,required" doc:"Why the golden outputs may differ from what ONNX's reference evaluator computes; it is recorded in the provenance"`
}

// maxAccept bounds the reason, which every engine's provenance repeats.
const maxAccept = 1000

func (c checker) checkReference() {
	if c.Reference == nil {
		return
	}
	if text := c.Reference.Accept; strings.TrimSpace(text) == "" || len(text) > maxAccept {
		c.problem(at("reference", "accept"), "found a text of %d bytes: want the reason, in at most %d", len(text), maxAccept)
	}
}
