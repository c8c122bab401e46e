package script_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// A run ends before XGBoost adds a tree to a score that it has no room for.
func TestRunXGBoostChecksScores(t *testing.T) {
	t.Parallel()
	const text = `{"learner": {"attributes": {}, "feature_names": [], "feature_types": [], "gradient_booster": {"model": {` +
		`"gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"}, "iteration_indptr": [0, 1], "tree_info": [50000000], "trees": [{` +
		`"base_weights": [0.5], "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [], "default_left": [0], "id": 0, ` +
		`"left_children": [-1], "loss_changes": [0.0], "parents": [2147483647], "right_children": [-1], "split_conditions": [0.5], "split_indices": [0], ` +
		`"split_type": [0], "sum_hessian": [1.0], "tree_param": {"num_deleted": "0", "num_feature": "64", "num_nodes": "1", "size_leaf_vector": "1"}}]}, ` +
		`"name": "gbtree"}, "learner_model_param": {"base_score": "5E-1", "boost_from_average": "1", "num_class": "0", "num_feature": "64", "num_target": "1"}, ` +
		`"objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}}, "version": [3, 4, 1]}`
	path := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := script.New(script.Installed(toolchaintest.Installed(t, "xgboost"), "xgboost"), driverproc.Budget{}).Do(t.Context(), toolchain.Job{
		Verb: toolchain.VerbRun, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "reference", Path: "source.xgboost"}}},
		Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "source.xgboost", path),
			toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digitCases),
		},
	}, t.TempDir())
	if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "for score 50000000: want one of 1 scores") {
		t.Errorf("%v, want %s: its score", err, registry.CodeInvalid)
	}
}
