package draft

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Cases of a model that bounds one dimension and leaves the batch open are cases of any number, as in a spec that says both.
func TestImportCasesOfABoundedModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := tensor.New(make([]float32, 200*12), 200, 12)
	if err == nil {
		err = cases.WriteShard(filepath.Join(dir, "x.safetensors"), map[string]tensor.Tensor{"x": x})
	}
	if err != nil {
		t.Fatal(err)
	}
	most := int64(16)
	iface := validators.Interface{Inputs: []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Symbol: "seq"}}}}}
	d := Model{iface: ingest.AllowedSizes{"seq": {nil, &most}}.Drafted(iface)}
	got, err := d.ImportCases(filepath.Join(dir, "x.safetensors"), "", filepath.Join(dir, "cases"))
	if err != nil || got.Count != 200 || got.Interface.Dims["seq"].Max != 16 || got.Interface.Dims["batch"].Min != 1 {
		t.Errorf("%d cases, sizes %v, %v; want 200", got.Count, got.Interface.Dims, err)
	}
}
