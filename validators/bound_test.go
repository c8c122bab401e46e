package validators_test

import (
	"math"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Every figure of outputs has a field for its limit, and is measured; every field for a limit has a row.
func TestEveryFigureHasALimit(t *testing.T) {
	t.Parallel()
	for _, row := range figure.OfOutputs() {
		var o validators.OutputLimits
		if _, there := o.Bound(row); there {
			t.Errorf("%s is limited before it is", row.Name)
		}
		o.SetBound(row, 0.5)
		if got, there := o.Bound(row); !there || got != 0.5 || o.Validate() != nil {
			t.Errorf("%s: limit %v, %v, %v; want 0.5", row.Name, got, there, o.Validate())
		}
		result := tensor.Result{Top1Rows: 1}
		value, _ := result.Figure(row.Name)
		if misses, _ := result.Misses(row.Name); math.IsNaN(value) != (row.Rate || row.Sometimes) || math.IsNaN(misses) != !row.Rate {
			t.Errorf("%s: value %v, misses %v; want one of them", row.Name, value, misses)
		}
		if got := float64(evidence.OutputFigures{}.Figure(row.Name)); math.IsNaN(got) != (row.Rate || row.Sometimes) {
			t.Errorf("%s of a report is %v", row.Name, got)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[validators.OutputLimits]()) {
		if f.Type != reflect.TypeFor[*validators.AtLeast]() && f.Type != reflect.TypeFor[*validators.AtMost]() {
			continue
		}
		name := f.Tag.Get("json")
		if row, ok := figure.Find(name[:len(name)-len(",omitempty")]); !ok || row.AtLeast != (f.Type == reflect.TypeFor[*validators.AtLeast]()) {
			t.Errorf("%s is no figure of the table, or bounded from the other side", name)
		}
	}
}
