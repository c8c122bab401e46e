package script_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

func TestMain(m *testing.M) {
	os.Exit(toolchaintest.Main(m, nil))
}

const digits = "../../../examples/digits/"

func installed(t *testing.T) func() (script.Program, error) {
	t.Helper()
	return script.Installed(toolchaintest.Installer(t, "onnxruntime"), "onnxruntime")
}

// quantize is the static int8 job of the example.
func quantize(t *testing.T, options map[string]any) toolchain.Job {
	t.Helper()
	return toolchain.Job{Verb: toolchain.VerbQuantize, Options: options, Inputs: []toolchain.Input{
		toolchaintest.Input(t, toolchain.RoleModel, "digits.onnx", digits+"digits.onnx"),
		toolchaintest.Input(t, toolchain.RoleCalibration, "calibration-00000.safetensors", digits+"calibration/calibration-00000.safetensors"),
	}}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	id, err := script.New(installed(t), driverproc.Budget{}).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id.Name != "onnxruntime" || id.Version != "1.30.0" || id.Versions["python"] == "" ||
		id.Lock.Validate() != nil || id.Code.Validate() != nil || id.LibraryDigest.Validate() != nil {
		t.Errorf("identity %+v", id)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var probe toolchain.ProbeResult
	if err := json.Unmarshal(outcome.Result, &probe); err != nil {
		t.Fatal(err)
	}
	id, err := driver.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range probe.Tool {
		if id.Versions[name] != version {
			t.Errorf("%s says that it is %s, its record says %s", name, version, id.Versions[name])
		}
	}
}

// Every observer gives the same bytes in two processes, and others than its neighbours.
func TestQuantizeIsReproducible(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	seen := make(map[registry.Digest]string)
	for _, observer := range []string{"minmax", "entropy", "percentile"} {
		var twins []toolchain.Outcome
		for range 2 {
			outcome, err := driver.Do(t.Context(), quantize(t, map[string]any{"observer": observer, "percentile": 99}), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			twins = append(twins, outcome)
		}
		names := func(f toolchain.OutputFile) string { return f.Name + " " + f.Digest.String() }
		if a, b := collect(twins[0].Files, names), collect(twins[1].Files, names); !slices.Equal(a, b) || len(a) != 2 {
			t.Errorf("%s: two processes made %v and %v", observer, a, b)
		}
		table, _ := twins[0].File("calibration.json")
		if twin, ok := seen[table.Digest]; ok {
			t.Errorf("%s and %s found the same ranges", observer, twin)
		}
		seen[table.Digest] = observer
		checkTable(t, table.Path, observer)
		t.Logf("%s: %s", observer, twins[0].Elapsed)
	}
}

func collect(files []toolchain.OutputFile, of func(toolchain.OutputFile) string) []string {
	var all []string
	for _, f := range files {
		all = append(all, of(f))
	}
	return all
}

// checkTable reads the ranges: the image's pixels are 0 to 1.
func checkTable(t *testing.T, path, observer string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Observer string
		Tensors  map[string]struct{ Lowest, Highest float64 }
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	image := table.Tensors["image"]
	if table.Observer != observer || len(table.Tensors) < 5 || image.Lowest > 0 || image.Highest <= 0.5 || image.Highest > 1 {
		t.Errorf("%s: table %+v", observer, table)
	}
}

func TestQuantizeRefuses(t *testing.T) {
	t.Parallel()
	driver := script.New(installed(t), driverproc.Budget{})
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("garbage ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options map[string]any
		edit    func(*toolchain.Job)
		want    string
	}{
		"unknown option":  {options: map[string]any{"bits": 4}, want: "option 'bits'"},
		"unknown method":  {options: map[string]any{"method": "magic"}, want: "static-int8"},
		"wrong type":      {options: map[string]any{"per_channel": "yes"}, want: "want a bool"},
		"unhashable":      {options: map[string]any{"observer": []string{"minmax"}}, want: "minmax, entropy, percentile"},
		"percentile":      {options: map[string]any{"percentile": 7}, want: "more than 50"},
		"no calibration":  {edit: func(j *toolchain.Job) { j.Inputs = j.Inputs[:1] }, want: "needs calibration"},
		"no model":        {edit: func(j *toolchain.Job) { j.Inputs = j.Inputs[1:] }, want: "expected one"},
		"other tensors":   {edit: func(j *toolchain.Job) { j.Inputs[1] = cases(t, "pixels") }, want: "no tensor for the model's input image"},
		"other shape":     {edit: func(j *toolchain.Job) { j.Inputs[1] = cases(t, "image") }, want: "tensor 'image' is float32 [2, 3]"},
		"no safetensors":  {edit: func(j *toolchain.Job) { j.Inputs[1] = toolchaintest.Input(t, "calibration", "c", garbage) }, want: "no safetensors file"},
		"no onnx":         {edit: func(j *toolchain.Job) { j.Inputs[0] = toolchaintest.Input(t, "model", "m.onnx", garbage) }, want: "no ONNX file"},
		"nothing to do":   {options: map[string]any{"op_types": []string{"Softmax"}}, want: "no operator"},
		"verb of another": {edit: func(j *toolchain.Job) { j.Verb = toolchain.VerbCompile }, want: "this driver has probe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := quantize(t, c.options)
			if c.edit != nil {
				c.edit(&job)
			}
			_, err := driver.Do(t.Context(), job, t.TempDir())
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want CodeInvalid and %q", err, c.want)
			}
		})
	}
}

// cases writes a shard with one float32 tensor [2, 3] of that name.
func cases(t *testing.T, name string) toolchain.Input {
	t.Helper()
	header := `{"` + name + `":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}`
	text := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	text = append(text, make([]byte, 24)...)
	path := filepath.Join(t.TempDir(), "shard")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return toolchaintest.Input(t, toolchain.RoleCalibration, "shard.safetensors", path)
}

// A driver sees neither the user's packages nor modules beside it, and its hashes are fixed.
func TestPythonIsIsolated(t *testing.T) {
	t.Parallel()
	program, err := installed(t)()
	if err != nil {
		t.Fatal(err)
	}
	program.Code = map[string][]byte{"driver.py": []byte(`
import json, site, sys
r = json.load(sys.stdin)
result = {"path": sys.path, "user": site.ENABLE_USER_SITE, "bytecode": sys.dont_write_bytecode, "hash": hash("mlpromote"), "argv": sys.argv}
with open(r["response_path"], "w") as f:
    json.dump({"protocol": r["protocol"], "id": r["id"], "ok": True, "result": result}, f)
`)}
	driver := script.New(func() (script.Program, error) { return program, nil }, driverproc.Budget{})
	var hashes []int64
	for range 2 {
		outcome, err := driver.Do(t.Context(), toolchain.Job{Verb: toolchain.VerbProbe}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var saw struct {
			Path, Argv     []string
			User, Bytecode bool
			Hash           int64
		}
		if err := json.Unmarshal(outcome.Result, &saw); err != nil {
			t.Fatal(err)
		}
		if saw.User || !saw.Bytecode || slices.Contains(saw.Path, "") || slices.Contains(saw.Path, filepath.Dir(saw.Argv[0])) {
			t.Errorf("the driver saw %+v", saw)
		}
		hashes = append(hashes, saw.Hash)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("hashes differ between processes: %v", hashes)
	}
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	empty := &install.Installer{Root: t.TempDir()}
	driver := script.New(script.Installed(empty, "onnxruntime"), driverproc.Budget{})
	if _, err := driver.Identity(t.Context()); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("identity: error %v, want CodeUnavailable", err)
	}
	if _, err := driver.Do(t.Context(), quantize(t, nil), t.TempDir()); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("do: error %v, want CodeUnavailable", err)
	}
}
