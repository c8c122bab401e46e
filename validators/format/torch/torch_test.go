package torch_test

import (
	"bytes"
	"testing"

	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/torch"
)

func TestIsScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a module":             {formattest.Zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "m/constants.pkl", "x"), true},
		"weights":              {formattest.Zipped(t, "m/data.pkl", "x", "m/data/0", "x"), false},
		"without code":         {formattest.Zipped(t, "m/data.pkl", "x", "m/constants.pkl", "x"), false},
		"code of another":      {formattest.Zipped(t, "m/data.pkl", "x", "n/code/__torch__.py", "x", "m/constants.pkl", "x"), false},
		"constants of another": {formattest.Zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "n/constants.pkl", "x"), false},
		"deeper":               {formattest.Zipped(t, "m/n/data.pkl", "x", "m/n/code/__torch__.py", "x", "m/n/constants.pkl", "x"), false},
		"at the top":           {formattest.Zipped(t, "data.pkl", "x", "code/__torch__.py", "x", "constants.pkl", "x"), false},
		"a program":            {formattest.Zipped(t, "m/models/model.json", "{}", "m/archive_format", "pt2"), false},
		"cut short":            {formattest.Zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x", "m/constants.pkl", "x")[:40], false},
		"nothing":              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := torch.IsScript(bytes.NewReader(c.data), int64(len(c.data))); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestIsExport(t *testing.T) {
	t.Parallel()
	const program = "m/models/model.json"
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a program":             {formattest.Zipped(t, program, "{}", "m/archive_format", "pt2"), true},
		"no program":            {formattest.Zipped(t, "m/archive_format", "pt2", "m/models/model.so", "x"), false},
		"another format":        {formattest.Zipped(t, program, "{}", "m/archive_format", "pt1"), false},
		"a long format":         {formattest.Zipped(t, program, "{}", "m/archive_format", "pt2 and more than that"), false},
		"a program elsewhere":   {formattest.Zipped(t, "n/models/model.json", "{}", "m/archive_format", "pt2"), false},
		"the format at the top": {formattest.Zipped(t, "models/model.json", "{}", "archive_format", "pt2"), false},
		"TorchScript":           {formattest.Zipped(t, "m/data.pkl", "x", "m/code/__torch__.py", "x"), false},
		"an archive cut short":  {formattest.Zipped(t, program, "{}", "m/archive_format", "pt2")[:40], false},
		"nothing":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := torch.IsExport(bytes.NewReader(c.data), int64(len(c.data))); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
