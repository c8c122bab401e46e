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

// boostedText is a model of LightGBM with a tree of two leaves, and a line more in it.
func boostedText(head, line string) string {
	return "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\n" + head +
		"feature_names=a b\nfeature_infos=[-1:1] [-1:1]\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.5\n" +
		"decision_type=2\nleft_child=-1\nright_child=-2\nleaf_value=0.25 0.75\n" + line + "is_linear=0\nshrinkage=1\n\n\nend of trees\n"
}

// LightGBM believes a file: it follows children to wherever they lead, and writes as many predictions as there are
// trees. So it must not read what was not checked.
func TestImportLightGBM(t *testing.T) {
	t.Parallel()
	driver := script.New(script.Installed(toolchaintest.Installed(t, "lightgbm"), "lightgbm"), driverproc.Budget{})
	for name, c := range map[string]struct {
		text, says string // says is empty: it passes
	}{
		"a model":              {boostedText("", ""), ""},
		"trees at other bytes": {boostedText("tree_sizes=7\n", ""), ""}, // which are not looked at
		"children twice":       {strings.Replace(boostedText("", "\nleft_child=-1\n"), "left_child=-1", "left_child=200000000", 1), "line 'left_child' is there twice in tree 0"},
		"a size twice":         {boostedText("num_class=1000\n", ""), "line 'num_class' is there twice before the trees"},
		"a number of Python":   {strings.Replace(boostedText("", ""), "split_feature=0", "split_feature=0_1", 1), "split_feature has '0_1': want a number"},
		"a count of Python":    {strings.Replace(boostedText("", ""), "max_feature_idx=1", "max_feature_idx=0_1", 1), "max_feature_idx is '0_1': want a number"},
		"more trees than room": {strings.Replace(boostedText("", ""), "iteration=1\n", "iteration=2\n", 1), "the model has 1 trees of 2 in each iteration"},
		"less room than trees": {strings.Replace(boostedText("", ""), "num_class=1\n", "num_class=0\n", 1), "want one number"},
		"an objective of more": {boostedText("objective=multiclass num_class:1000\n", ""), "classes of its objective '1000': want one number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "model.txt")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			job := toolchain.Job{Verb: toolchain.VerbImport, Inputs: []toolchain.Input{
				toolchaintest.Input(t, toolchain.RoleModel, "source.lightgbm", path)}}
			_, err := driver.Do(t.Context(), job, t.TempDir())
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s: %s", err, registry.CodeInvalid, c.says)
			}
		})
	}
}
