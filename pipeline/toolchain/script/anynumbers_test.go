package script_test

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Two numbers that float64 and int64 tell apart, and float32 does not.
const evenTime, oddTime = 1 << 24, 1<<24 + 1

// splitTime is a document of PMML whose tree splits between the two.
const splitTime = `<?xml version="1.0"?>
<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
<DataDictionary><DataField name="a" optype="continuous" dataType="double"/><DataField name="y" optype="continuous" dataType="double"/></DataDictionary>
<TreeModel functionName="regression"><MiningSchema><MiningField name="y" usageType="target"/><MiningField name="a"/></MiningSchema>
<Node score="0.75"><True/><Node score="0.25"><SimplePredicate field="a" operator="lessThan" value="16777216.5"/></Node><Node score="0.75"><True/></Node></Node>
</TreeModel></PMML>
`

// splitBoosted is a model of XGBoost whose tree splits there: it rounds by itself, so that both numbers go one way.
const splitBoosted = `{"learner": {"attributes": {}, "feature_names": [], "feature_types": [], "gradient_booster": {"model": {` +
	`"gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"}, "iteration_indptr": [0, 1], "tree_info": [0], "trees": [{` +
	`"base_weights": [0.0, 0.25, 0.75], "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [], "default_left": [0, 0, 0], "id": 0, ` +
	`"left_children": [1, -1, -1], "loss_changes": [1.0, 0.0, 0.0], "parents": [2147483647, 0, 0], "right_children": [2, -1, -1], ` +
	`"split_conditions": [16777218.0, 0.25, 0.75], "split_indices": [0, 0, 0], "split_type": [0, 0, 0], "sum_hessian": [2.0, 1.0, 1.0], ` +
	`"tree_param": {"num_deleted": "0", "num_feature": "1", "num_nodes": "3", "size_leaf_vector": "1"}}]}, ` +
	`"name": "gbtree"}, "learner_model_param": {"base_score": "0E0", "boost_from_average": "0", "num_class": "0", "num_feature": "1", "num_target": "1"}, ` +
	`"objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}}, "version": [3, 4, 1]}`

// sloped is an estimator that predicts the difference from the smaller number.
const sloped = `
import numpy, skops.io
from sklearn.linear_model import LinearRegression
model = LinearRegression().fit(numpy.float64([[0.0], [1.0]]), [0.0, 1.0])
model.coef_, model.intercept_ = numpy.float64([1.0]), numpy.float64(-2.0**24)
skops.io.dump(model, "model.skops")
`

// Frameworks that take numbers of any precision get those of the cases as they are: a float32 would have lost the last digit. Where the
// framework rounds by itself, its own rounding is what engines are compared with.
func TestFrameworksTakeAnyNumbers(t *testing.T) {
	t.Parallel()
	boosted := strings.NewReplacer("max_feature_idx=1", "max_feature_idx=0", "feature_names=a b", "feature_names=a", "feature_infos=[-1:1] [-1:1]", "feature_infos=[-1:1]",
		"threshold=0.5", "threshold=16777216.5").Replace(boostedText("", ""))
	dense := map[string]tensor.Tensor{"dense.weight": tensorOf(t, []float32{1}, 1, 1), "dense.bias": tensorOf(t, []float32{-evenTime}, 1)}
	for name, c := range map[string]struct {
		file, output string
		model        func(t *testing.T, path string)
		options      map[string]any
		want         [2]float64
	}{
		"lightgbm": {"source.lightgbm", "variable", text(boosted), nil, [2]float64{0.25, 0.75}},
		"pmml":     {"source.pmml", "variable", text(splitTime), nil, [2]float64{0.25, 0.75}},
		"pmml float": {"source.pmml", "variable", text(strings.Replace(splitTime, `name="a" optype="continuous" dataType="double"`, `name="a" optype="continuous" dataType="float"`, 1)), nil,
			[2]float64{0.75, 0.75}}, // a field that is a float rounds what it takes, as the value that it is compared with
		"xgboost":      {"source.xgboost", "variable", text(splitBoosted), nil, [2]float64{0.25, 0.25}},
		"scikit-learn": {"source.skops", "variable", fittedBy("scikit-learn", sloped, "model.skops"), nil, [2]float64{0, 1}},
		"safetensors": {"source.safetensors", "output", shardOf(dense), map[string]any{"kind": "mlp", "input": []string{"1"},
			"layers": []string{"dense"}}, [2]float64{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, _, _ := strings.Cut(name, " ")
			driver := script.New(script.Installed(toolchaintest.Installed(t, tool), tool), driverproc.Budget{})
			dir := t.TempDir()
			model, cases := filepath.Join(dir, c.file), filepath.Join(dir, "cases.safetensors")
			c.model(t, model)
			for kind, given := range map[string]tensor.Tensor{
				"float64": tensorOf(t, []float64{evenTime, oddTime}, 2, 1),
				"int64":   tensorOf(t, []int64{evenTime, oddTime}, 2, 1),
			} {
				shardOf(map[string]tensor.Tensor{"input": given})(t, cases)
				outcome, err := driver.Do(t.Context(), toolchain.Job{
					Verb: toolchain.VerbRun, Options: c.options, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "reference", Path: c.file}}, Threads: 1},
					Inputs: []toolchain.Input{
						toolchaintest.Input(t, toolchain.RoleModel, c.file, model),
						toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", cases),
					},
				}, t.TempDir())
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				file, _ := outcome.File("outputs/reference/cases-00000.safetensors")
				outputs, err := tensorfile.ReadFile(file.Path, tensorfile.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if got := outputs[c.output].Float64s(); len(got) != 2 || got[0] != c.want[0] || got[1] != c.want[1] {
					t.Errorf("%s: %v, want %v", kind, got, c.want)
				}
			}
		})
	}
}

// A framework that takes one type refuses others, so that no one rounds for it without a word.
func TestFrameworksOfOneType(t *testing.T) {
	t.Parallel()
	dir, driver, _ := xla(t, "xla_programs.py")
	cases := filepath.Join(dir, "double.safetensors")
	shardOf(map[string]tensor.Tensor{"image": tensorOf(t, make([]float64, 64), 1, 8, 8, 1)})(t, cases)
	_, err := driver.Do(t.Context(), toolchain.Job{
		Verb: toolchain.VerbRun, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "reference", Path: "source.jax"}}, Threads: 1},
		Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "source.jax", filepath.Join(dir, "convolutions-1.jax")),
			toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", cases),
		},
	}, t.TempDir())
	if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), `tensor 'image' is float64 [1, 8, 8, 1]: the model's input wants float32`) {
		t.Errorf("%v, want %s: it is float64", err, registry.CodeInvalid)
	}
}

//go:embed testdata/thresholds_check.py
var thresholdsCheck string

// A threshold that is rounded to float32 sends every float32 where the threshold itself sends it.
func TestThresholdsOfTrees(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "lightgbm").Find("lightgbm")
	if err != nil {
		t.Fatal(err)
	}
	common, err := filepath.Abs("../drivers/common")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), interpreter(record.Dir), "-c", thresholdsCheck, common).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

//go:embed testdata/histograms_check.py
var histogramsCheck string

// The same holds for trees that skl2onnx converts.
func TestThresholdsOfScikitLearn(t *testing.T) {
	t.Parallel()
	record, err := toolchaintest.Installed(t, "scikit-learn").Find("scikit-learn")
	if err != nil {
		t.Fatal(err)
	}
	drivers, err := filepath.Abs("../drivers")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), interpreter(record.Dir), "-c", histogramsCheck, drivers).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func text(content string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shardOf writes tensors as a file.
func shardOf(tensors map[string]tensor.Tensor) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := tensorfile.Write(f, tensors, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// fittedBy moves the file that a program writes in the interpreter of a toolchain.
func fittedBy(toolchain, program, file string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		record, err := toolchaintest.Installed(t, toolchain).Find(toolchain)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), interpreter(record.Dir), "-c", program)
		cmd.Dir = filepath.Dir(path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := os.Rename(filepath.Join(cmd.Dir, file), path); err != nil {
			t.Fatal(err)
		}
	}
}

func tensorOf[T tensor.Scalar](t *testing.T, values []T, shape ...int64) tensor.Tensor {
	t.Helper()
	made, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
