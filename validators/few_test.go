package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// Few cases lower the default limit on equal answers, which is said; a limit that was asked for
// stays as it is.
func TestFew(t *testing.T) {
	t.Parallel()
	scores := validators.TensorInfo{Name: "y", DType: "float32", Shape: []validators.Dim{{Symbol: "n"}, {Size: 10}}, Kind: validators.KindScores}
	values := scores
	values.Kind = validators.KindValue
	for name, c := range map[string]struct {
		output    validators.TensorInfo
		precision string
		cases     int
		change    func(*validators.OutputLimits)
		want      string // empty for none
	}{
		"16 cases":          {scores, validators.PrecisionFP32, 16, nil, `16 cases prove so little that the default limit on equal answers of output "y" in fp32 is 73 %; with `},
		"twice as many":     {scores, validators.PrecisionFP32, 300, nil, ""},
		"enough":            {scores, validators.PrecisionFP32, 1000, nil, ""},
		"int8 takes fewer":  {scores, validators.PrecisionInt8, 100, nil, ""},
		"a limit of theirs": {scores, validators.PrecisionFP32, 16, func(l *validators.OutputLimits) { l.Top1 = &validators.AtLeast{Min: 0.5} }, ""},
		"no rate":           {values, validators.PrecisionFP32, 16, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, err := validators.DefaultLimits(c.precision, c.output, c.cases)
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(&limits)
			}
			all := validators.Limits{V: validators.LimitsVersion,
				Precisions: map[string]validators.PrecisionLimits{c.precision: {Outputs: map[string]validators.OutputLimits{"y": limits}}}}
			if got, _ := all.MoreCases(c.cases, validators.LabelledCases{}); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			} else {
				t.Log(got)
			}
		})
	}
}
