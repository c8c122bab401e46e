package onnx_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// The oldest ONNX Runtime that reads a model is the one of whatever it imports latest.
func TestRuntime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ir   int64
		sets map[string]int64
		want onnx.Need
		says string // part of the error; empty for none
	}{
		"old":                      {3, map[string]int64{"ai.onnx": 7}, onnx.Need{Version: "1.0", Because: "operator set 7"}, ""},
		"by its operators":         {8, map[string]int64{"ai.onnx": 17}, onnx.Need{Version: "1.12", Because: "operator set 17"}, ""},
		"by classical operators":   {8, map[string]int64{"ai.onnx": 15, "ai.onnx.ml": 3}, onnx.Need{Version: "1.12", Because: "operator set of ai.onnx.ml 3"}, ""},
		"by its file format":       {9, map[string]int64{"ai.onnx": 18}, onnx.Need{Version: "1.16", Because: "ONNX IR 9"}, ""},
		"1.23 and no 1.22":         {11, map[string]int64{"ai.onnx": 22}, onnx.Need{Version: "1.23", Because: "ONNX IR 11"}, ""},
		"no set before 25 in 1.23": {10, map[string]int64{"ai.onnx": 24}, onnx.Need{Version: "1.24", Because: "operator set 24"}, ""},
		"newest":                   {13, map[string]int64{"ai.onnx": 26, "ai.onnx.ml": 5}, onnx.Need{Version: "1.25", Because: "operator set 26"}, ""},
		"operators without a version of their own": {8, map[string]int64{"ai.onnx": 17, "com.microsoft": 1}, onnx.Need{Version: "1.12", Because: "operator set 17"}, ""},
		"classical operators alone":                {8, map[string]int64{"ai.onnx.ml": 1}, onnx.Need{Version: "1.9", Because: "ONNX IR 8"}, ""},
		"too old":                                  {3, map[string]int64{"ai.onnx": 6}, onnx.Need{}, "operator set is 6, and onnxruntime has 7 to 26: convert it"},
		"too new":                                  {13, map[string]int64{"ai.onnx": 27}, onnx.Need{}, "export it with opset 26 or earlier"},
		"too new, classical":                       {13, map[string]int64{"ai.onnx": 17, "ai.onnx.ml": 6}, onnx.Need{}, "ai.onnx.ml is 6, and onnxruntime has 1 to 5"},
		"too new a file":                           {14, map[string]int64{"ai.onnx": 17}, onnx.Need{}, "ONNX IR 14, and onnxruntime reads up to 13"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := onnx.Model{IRVersion: c.ir, Opsets: c.sets}
			got, err := m.Runtime()
			if got != c.want || (err == nil) != (c.says == "") ||
				err != nil && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%+v, %v; want %+v and an error that says %q", got, err, c.want, c.says)
			}
		})
	}
}

// A runtime is met by what lets no older one in.
func TestNeedMet(t *testing.T) {
	t.Parallel()
	need := onnx.Need{Version: "1.18"}
	for name, c := range map[string]struct {
		need onnx.Need
		by   artifact.Constraint
		want bool
	}{
		"the very version":      {need, artifact.Constraint{Exact: "1.18"}, true},
		"an earlier one":        {need, artifact.Constraint{Exact: "1.17.9"}, false},
		"from it on":            {need, artifact.Constraint{Min: "1.18.0"}, true},
		"from an earlier one":   {need, artifact.Constraint{Min: "1.17"}, false},
		"below a later one":     {need, artifact.Constraint{Below: "2"}, false},
		"nothing needed":        {onnx.Need{}, artifact.Constraint{Below: "2"}, true},
		"nothing is let in yet": {need, artifact.Constraint{}, false},
	} {
		if got := c.need.Met(c.by); got != c.want {
			t.Errorf("%s: met %v, want %v", name, got, c.want)
		}
	}
}
