package cases

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// A column that the model reads cannot be the labels.
func TestFeatureAsLabels(t *testing.T) {
	t.Parallel()
	input := validators.TensorInfo{Name: "input", Names: []string{"age", "hour"}}
	_, _, err := features([]string{"age", "hour", "fraud"}, 1, input)
	if err == nil || !strings.Contains(err.Error(), `"hour" is a feature of the model, so it cannot be the labels`) {
		t.Errorf("error %v, want that hour is a feature", err)
	}
	if columns, _, err := features([]string{"age", "hour", "fraud"}, 2, input); err != nil || len(columns) != 2 {
		t.Errorf("columns %v, error %v; want both features", columns, err)
	}
}
