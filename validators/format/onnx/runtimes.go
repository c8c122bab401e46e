package onnx

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// oldestOpset is the oldest operator set that all operators of ONNX Runtime support.
const oldestOpset = 7

// onnxRuntimes lists which models releases of ONNX Runtime read: operator sets of the domains
// ai.onnx and ai.onnx.ml, and versions of the file format, up to these. A release that is not
// listed reads what the previous one reads. Every later release reads everything that an
// earlier one reads.
//
// Source: https://onnxruntime.ai/docs/reference/compatibility.html, up to 1.20. For 1.18
// (whose ai.onnx.ml is 5, and 4 on that page) and from 1.21 on, what the released
// packages load: every release was tried with models that import each set.
var onnxRuntimes = []struct {
	version       string
	opset, ml, ir int64
}{
	{"1.0", 11, 2, 6},
	{"1.3", 12, 2, 7},
	{"1.6", 13, 2, 7},
	{"1.8", 14, 2, 7},
	{"1.9", 15, 2, 8},
	{"1.11", 16, 2, 8},
	{"1.12", 17, 3, 8},
	{"1.14", 18, 3, 8},
	{"1.15", 19, 3, 8},
	{"1.16", 19, 3, 9},
	{"1.17", 20, 4, 9},
	{"1.18", 21, 5, 10},
	{"1.21", 22, 5, 10},
	{"1.23", 23, 5, 11},
	{"1.24", 25, 5, 13},
	{"1.25", 26, 5, 13},
}

// Need is the oldest release of ONNX Runtime that reads a graph. The zero Need belongs to files
// that are not graphs; every runtime meets it.
type Need struct {
	Version string `json:"version,omitempty"` // "1.18"
	Because string `json:"because,omitempty"` // "operator set 21"
}

// Runtime returns the oldest release of ONNX Runtime that reads the model. It depends on the
// model's imports, not on its operators, as in ONNX Runtime. Operators of ONNX Runtime
// itself (com.microsoft) and of libraries have no useful versions, so a graph with such
// operators may need a later release. The release with which it was made is safe. Errors:
// CodeInvalid, with a hint, for a model that no known release reads.
func (m *Model) Runtime() (Need, error) {
	newest := onnxRuntimes[len(onnxRuntimes)-1]
	if opset, ok := m.Opsets[DefaultDomain]; ok && opset < oldestOpset {
		return Need{}, registry.Errorf(registry.CodeInvalid,
			"its operator set is %d, and onnxruntime has %d to %d: convert it with onnx.version_converter, or export it anew",
			opset, oldestOpset, newest.opset)
	}
	var need Need
	for _, has := range []struct {
		what    string
		version int64
		of      func(release int) int64
		refused string
	}{
		{"operator set", m.Opsets[DefaultDomain], func(i int) int64 { return onnxRuntimes[i].opset },
			fmt.Sprintf("its operator set is %d, and onnxruntime has %d to %d: export it with opset %[3]d or earlier",
				m.Opsets[DefaultDomain], oldestOpset, newest.opset)},
		{"operator set of " + mlDomain, m.Opsets[mlDomain], func(i int) int64 { return onnxRuntimes[i].ml },
			fmt.Sprintf("its operator set of %s is %d, and onnxruntime has 1 to %d: export it with %[3]d or earlier",
				mlDomain, m.Opsets[mlDomain], newest.ml)},
		{"ONNX IR", m.IRVersion, func(i int) int64 { return onnxRuntimes[i].ir },
			fmt.Sprintf("its file format is ONNX IR %d, and onnxruntime reads up to %d: export it for IR %[2]d, such as with an earlier onnx",
				m.IRVersion, newest.ir)},
	} {
		first := 0
		for first < len(onnxRuntimes) && has.of(first) < has.version {
			first++
		}
		if first == len(onnxRuntimes) {
			return Need{}, registry.Errorf(registry.CodeInvalid, "%s", has.refused)
		}
		if v := onnxRuntimes[first].version; need.Version == "" || artifact.CompareVersions(v, need.Version) > 0 {
			need = Need{v, fmt.Sprintf("%s %d", has.what, has.version)}
		}
	}
	return need, nil
}

// Met reports whether every version that satisfies a constraint reads the graph.
func (n Need) Met(by artifact.Constraint) bool {
	lowest := by.Exact + by.Min // one of them is empty
	return n.Version == "" || lowest != "" && artifact.CompareVersions(lowest, n.Version) >= 0
}
