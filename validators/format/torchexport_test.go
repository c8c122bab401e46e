package format_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/validators/format"
)

func TestIsTorchScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a module":             {zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "m/constants.pkl", "x"), true},
		"weights":              {zipped(t, "m/data.pkl", "x", "m/data/0", "x"), false},
		"without code":         {zipped(t, "m/data.pkl", "x", "m/constants.pkl", "x"), false},
		"code of another":      {zipped(t, "m/data.pkl", "x", "n/code/__torch__.py", "x", "m/constants.pkl", "x"), false},
		"constants of another": {zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "n/constants.pkl", "x"), false},
		"deeper":               {zipped(t, "m/n/data.pkl", "x", "m/n/code/__torch__.py", "x", "m/n/constants.pkl", "x"), false},
		"at the top":           {zipped(t, "data.pkl", "x", "code/__torch__.py", "x", "constants.pkl", "x"), false},
		"a program":            {zipped(t, "m/models/model.json", "{}", "m/archive_format", "pt2"), false},
		"cut short":            {zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "m/constants.pkl", "x")[:40], false},
		"nothing":              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := format.IsTorchScript(bytes.NewReader(c.data), int64(len(c.data))); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestIsTorchExport(t *testing.T) {
	t.Parallel()
	const program = "m/models/model.json"
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a program":             {zipped(t, program, "{}", "m/archive_format", "pt2"), true},
		"no program":            {zipped(t, "m/archive_format", "pt2", "m/models/model.so", "x"), false},
		"another format":        {zipped(t, program, "{}", "m/archive_format", "pt1"), false},
		"a long format":         {zipped(t, program, "{}", "m/archive_format", "pt2 and more than that"), false},
		"a program elsewhere":   {zipped(t, "n/models/model.json", "{}", "m/archive_format", "pt2"), false},
		"the format at the top": {zipped(t, "models/model.json", "{}", "archive_format", "pt2"), false},
		"TorchScript":           {zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x"), false},
		"an archive cut short":  {zipped(t, program, "{}", "m/archive_format", "pt2")[:40], false},
		"nothing":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := format.IsTorchExport(bytes.NewReader(c.data), int64(len(c.data))); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
