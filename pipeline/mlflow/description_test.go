package mlflow

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".MLmodel"))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// The files are from MLflow 3.17.
func TestChooseOfRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flavor, at, end string
		code            registry.Code // of the file's end
		example         example
		log             string // in the hint
	}{
		"onnx":           {"onnx", "model.onnx", ".onnx", "", example{"input_example.json", "ndarray", ""}, ""},
		"sk-skops":       {"sklearn", "model.skops", ".skops", "", example{"input_example.json", "dataframe", "split"}, ""},
		"sk-cloudpickle": {"sklearn", "model.pkl", "", registry.CodeUnsafe, example{"input_example.json", "dataframe", "split"}, `serialization_format="skops"`},
		"xgb-json":       {"xgboost", "model.json", ".json", "", example{"input_example.json", "dataframe", "split"}, ""},
		"xgb-xgb":        {"xgboost", "model.xgb", ".ubj", "", example{"input_example.json", "dataframe", "split"}, ""},
		"lgb":            {"lightgbm", "model.lgb", ".txt", "", example{}, ""},
		"lgbc":           {"lightgbm", "model.skops", "", registry.CodeInvalid, example{}, "model.booster_"},
		"tfkeras":        {"tensorflow", "data", "", "", example{"input_example.json", "ndarray", ""}, ""},
		"savedmodel":     {"tensorflow", "tf2model", "", "", example{}, ""},
		"kerasexp":       {"keras", "data", "", "", example{}, ""},
		"pt2":            {"pytorch", "data", "", "", example{"input_example.json", "ndarray", ""}, ""},
		"ptpickle":       {"pytorch", "data", "", "", example{}, ""},
	} {
		d, err := readDescription(read(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := d.choose()
		if err != nil || got.name != c.flavor || got.at != c.at || d.example != c.example {
			t.Errorf("%s: flavor %s at %s, example %+v, error %v, want %+v", name, got.name, got.at, d.example, err, c)
			continue
		}
		if len(got.within) > 0 {
			continue // the folder decides
		}
		end, err := got.end(path.Base(got.at))
		if end != c.end || registry.CodeOf(err) != c.code && err != nil || (err == nil) != (c.code == "") || !strings.Contains(hints(err), c.log) {
			t.Errorf("%s: end %q, error %v with the hint %q, want %+v", name, end, err, hints(err), c)
		}
	}
}

func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, hint string }{
		"Python code alone": {"flavors:\n  python_function:\n    loader_module: mlflow.pyfunc.model\n", "Python code alone", "mlflow.onnx.log_model"},
		"another flavor":    {"flavors:\n  python_function:\n    data: x\n  catboost:\n    data: model.cb\n", "the flavor catboost", "mlflow.onnx.log_model"},
		"a path outside":    {"flavors:\n  onnx:\n    data: ../../etc/passwd\n", "leads out of the model", ""},
		"an absolute path":  {"flavors:\n  onnx:\n    data: /etc/passwd\n", "leads out of the model", ""},
		"no file":           {"flavors:\n  onnx:\n    onnx_version: 1.23.2\n", "names no file", "log the model again"},
		"no flavors":        {"mlflow_version: 3.17.2\n", "names no flavors", ""},
		"flavors as a list": {"flavors: [onnx]\n", "names no flavors", ""},
		"a list":            {"- onnx\n", "names no flavors", ""},
		"an alias":          {"flavors: &a\n  onnx:\n    data: x\nagain: *a\n", "anchors are not read", ""},
		"nothing":           {"", "", ""},
		"too much":          {"flavors:\n  onnx:\n    data: " + strings.Repeat("x", 1<<16), "MLmodel has more than", "mlflow artifacts download"},
	} {
		d, err := readDescription([]byte(c.text))
		if err == nil {
			_, err = d.choose()
		}
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(hints(err), c.hint) {
			t.Errorf("%s: %v (hint %q), want %q", name, err, hints(err), c.want)
		}
	}
}

// Whatever an MLmodel has, the paths that follow from it stay in the model.
func FuzzDescription(f *testing.F) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".MLmodel"); ok {
			f.Add(read(f, name))
		}
	}
	f.Add([]byte("flavors: {onnx: {data: ../x}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := readDescription(data)
		if err == nil {
			var got choice
			if got, err = d.choose(); err == nil {
				if !filepath.IsLocal(got.at) {
					t.Fatalf("the path %q", got.at)
				}
				_, err = got.end(path.Base(got.at))
			}
		}
		if code := registry.CodeOf(err); err != nil && code != registry.CodeInvalid && code != registry.CodeUnsafe {
			t.Fatal(err)
		}
	})
}
