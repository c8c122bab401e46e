//go:build cgo

package pipeline_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/draft"
	"mlpromote.dev/mlpromote/registry"
)

// The inputs of a model are read off its graph; what runs code and what is no model are refused.
func TestInputsOfModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		code registry.Code
		want []string
	}{
		"a model":          {scaling(1.5, 1, "made by hand"), "", []string{"x"}},
		"runs code":        {[]byte("\x80\x04K\x01."), registry.CodeUnsafe, nil},
		"text":             {[]byte("hello"), registry.CodeInvalid, nil},
		"nothing is there": {nil, registry.CodeInvalid, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "model.onnx")
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := draft.InputsOfModel(file)
			var names []string
			for _, in := range got.Inputs {
				names = append(names, in.Name)
			}
			if !registry.HasCode(err, c.code) && !(c.code == "" && err == nil) || !slices.Equal(names, c.want) {
				t.Errorf("inputs %q, error %v; want %q, %s", names, err, c.want, c.code)
			}
		})
	}
}

// Cases that are imported for a draft have the inputs of its model.
func TestImportCasesOfADraft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, table := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "table.csv")
	for path, data := range map[string][]byte{model: scaling(1.5, 1, "made by hand"), table: []byte("x,price\n1,2\n3,4\n5,6\n")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := draft.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.ImportCases(table, "price", filepath.Join(dir, "cases"))
	if err != nil || got.Count != 3 || got.Labels != "price" {
		t.Errorf("imported %+v, error %v; want 3 cases with the labels price", got, err)
	}
	if _, err := d.ImportCases(table, "cost", filepath.Join(dir, "more")); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("labels that are not there: error %v, want CodeInvalid", err)
	}
}
