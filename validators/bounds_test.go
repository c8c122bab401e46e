package validators_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// checkBound expects no error, or one that says what is wanted.
func checkBound(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case want != "":
		checkInvalid(t, "beyond the bound", err, want)
	}
}

// What is at a bound is valid, and the next thing beyond it is not.
func TestInterfaceBounds(t *testing.T) {
	t.Parallel()
	shape := func(dims ...validators.Dim) func(i *validators.Interface) {
		return func(i *validators.Interface) { i.Outputs[1].Shape = dims }
	}
	batch := func(low, opt, high int64) func(i *validators.Interface) {
		return func(i *validators.Interface) {
			i.Dims = map[string]validators.DimRange{"batch": {Min: low, Opt: opt, Max: high}}
		}
	}
	name := func(s string) func(i *validators.Interface) {
		return func(i *validators.Interface) { i.Outputs[1].Name = s }
	}
	meaning := func(s string) func(i *validators.Interface) {
		return func(i *validators.Interface) { i.Outputs[1].Meaning = s }
	}
	outputs := func(n int) func(i *validators.Interface) {
		return func(i *validators.Interface) {
			i.Outputs = nil
			for at := range n {
				i.Outputs = append(i.Outputs, validators.TensorInfo{Name: "y" + strings.Repeat("'", at%200) + string(rune('a'+at/200)), DType: tensor.Bool, Kind: validators.KindLabel})
			}
		}
	}
	one := validators.Dim{Size: 1}
	for what, c := range map[string]struct {
		edit func(i *validators.Interface)
		want string
	}{
		"largest name":              {name(strings.Repeat("n", 256)), ""},
		"name too long":             {name(strings.Repeat("n", 257)), "want 1 to 256 bytes of printable text"},
		"name that is not UTF-8":    {name("\xff"), "want 1 to 256 bytes of printable text"},
		"name with a line break":    {name("a\nb"), "want 1 to 256 bytes of printable text"},
		"longest meaning":           {meaning(strings.Repeat("m", 4096)), ""},
		"meaning too long":          {meaning(strings.Repeat("m", 4097)), "want at most 4096 bytes of UTF-8"},
		"meaning that is not UTF-8": {meaning("\xff"), "want at most 4096 bytes of UTF-8"},
		"highest rank":              {shape(one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one), ""},
		"rank too high":             {shape(one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one, one), "17 dimensions: want at most 16"},
		"largest size":              {shape(validators.Dim{Size: 1<<53 - 1}), ""},
		"size too large":            {shape(validators.Dim{Size: 1 << 53}), "dimension 0: want a size"},
		"size and symbol":           {shape(validators.Dim{Symbol: "batch", Size: 1}), "dimension 0: want a size"},
		"symbol with a line break":  {shape(one, validators.Dim{Symbol: "a\nb"}), "dimension 1: want a size"},
		"most outputs":              {outputs(1024), ""},
		"too many outputs":          {outputs(1025), "1025 outputs: want 1 to 1024"},
		"no outputs":                {outputs(0), "0 outputs: want 1 to 1024"},
		"no inputs":                 {func(i *validators.Interface) { i.Inputs = nil }, "0 inputs: want 1 to 1024"},
		"range of one size":         {batch(1, 1, 1), ""},
		"largest range":             {batch(1, 1, 1<<53-1), ""},
		"range too large":           {batch(1, 1, 1<<53), "want 0 <= min <= opt <= max"},
		"optimum below":             {batch(2, 1, 3), "sizes min 2, opt 1, max 3"},
		"optimum above":             {batch(1, 3, 2), "sizes min 1, opt 3, max 2"},
		"range from -1":             {batch(-1, 1, 1), "sizes min -1, opt 1, max 1"},
		"no version":                {func(i *validators.Interface) { i.V = 0 }, "interface version 0: this program reads version 1"},
		"a version of later": {func(i *validators.Interface) { i.V = validators.InterfaceVersion + 1 },
			fmt.Sprintf("interface version %d", validators.InterfaceVersion+1)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			i := digits()
			c.edit(&i)
			checkBound(t, i.Validate(), c.want)
			if _, err := i.Encode(); (err == nil) != (c.want == "") {
				t.Errorf("Encode: error %v, want the same as Validate", err)
			}
		})
	}
}

// A document of exactly as many bytes as allowed is read.
func TestParseInterfaceBoundsBytes(t *testing.T) {
	t.Parallel()
	i := digits()
	for at := range 261 {
		i.Inputs = append(i.Inputs, validators.TensorInfo{Name: fmt.Sprintf("x%03d", at), DType: tensor.Bool, Meaning: strings.Repeat("m", 3950)})
	}
	i.Inputs = append(i.Inputs, validators.TensorInfo{Name: "last", DType: tensor.Bool})
	data, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for extra, want := range map[int]string{0: "", 1: "interface.json has 1048577 bytes: want at most 1048576"} {
		again := i
		again.Inputs = append([]validators.TensorInfo(nil), i.Inputs...)
		again.Inputs[len(again.Inputs)-1].Meaning = strings.Repeat("m", 1<<20-len(data)+extra)
		text, err := again.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = validators.ParseInterface(text)
		checkBound(t, err, want)
	}
}

func TestLimitsBounds(t *testing.T) {
	t.Parallel()
	number := func(v float64) *float64 { return &v }
	atLeast := func(v float64) *validators.AtLeast { return &validators.AtLeast{Min: v} }
	atMost := func(v float64) *validators.AtMost { return &validators.AtMost{Max: v} }
	for what, c := range map[string]struct {
		limits validators.OutputLimits
		want   string
	}{
		"no limit":              {validators.OutputLimits{}, "no limit: want one of"},
		"rtol 0":                {validators.OutputLimits{RTol: number(0)}, ""},
		"rtol infinite":         {validators.OutputLimits{RTol: number(math.Inf(1))}, "rtol +Inf: want a finite number of at least 0"},
		"atol NaN":              {validators.OutputLimits{ATol: number(math.NaN())}, "atol NaN: want a finite number of at least 0"},
		"atol below 0":          {validators.OutputLimits{ATol: number(-1e-9)}, "atol -1e-09: want a finite number of at least 0"},
		"cosine -1":             {validators.OutputLimits{Cosine: atLeast(-1)}, ""},
		"cosine 1":              {validators.OutputLimits{Cosine: atLeast(1)}, ""},
		"cosine above 1":        {validators.OutputLimits{Cosine: atLeast(math.Nextafter(1, 2))}, "want a number from -1 to 1"},
		"cosine below -1":       {validators.OutputLimits{Cosine: atLeast(math.Nextafter(-1, -2))}, "want a number from -1 to 1"},
		"top1 0":                {validators.OutputLimits{Top1: atLeast(0)}, ""},
		"top1 1":                {validators.OutputLimits{Top1: atLeast(1)}, ""},
		"top1 NaN":              {validators.OutputLimits{Top1: atLeast(math.NaN())}, "top1.min NaN: want a number from 0 to 1"},
		"snr below 0":           {validators.OutputLimits{SNRdB: atLeast(-3)}, ""},
		"snr infinite":          {validators.OutputLimits{SNRdB: atLeast(math.Inf(-1))}, "snr.min -Inf: want a finite number"},
		"max_abs 0":             {validators.OutputLimits{MaxAbs: atMost(0)}, ""},
		"max_abs infinite":      {validators.OutputLimits{MaxAbs: atMost(math.Inf(1))}, "max_abs.max +Inf: want a finite number of at least 0"},
		"where, and no limit":   {validators.OutputLimits{Where: "mask"}, "no limit: want one of"},
		"where, and a limit":    {validators.OutputLimits{Where: "mask", RTol: number(0)}, ""},
		"where of no such name": {validators.OutputLimits{Where: "a\nb", RTol: number(0)}, "want the name of an input"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			checkBound(t, c.limits.Validate(), c.want)
			checkBound(t, judged(c.limits).Validate(), c.want)
		})
	}
}

// A limit on accuracy is of a metric that there is, and a program is named where one computes the metric.
func TestAccuracyLimitMetric(t *testing.T) {
	t.Parallel()
	one := registry.Digest("sha256:" + strings.Repeat("0", 64))
	for what, c := range map[string]struct {
		limit validators.AccuracyLimit
		want  string
	}{
		"a metric":                     {validators.AccuracyLimit{Metric: "top1"}, ""},
		"no metric":                    {validators.AccuracyLimit{}, `accuracy metric "": want one of`},
		"unknown metric":               {validators.AccuracyLimit{Metric: "top_1"}, `accuracy metric "top_1": want one of`},
		"a program":                    {validators.AccuracyLimit{Metric: "program", Program: one}, ""},
		"no program":                   {validators.AccuracyLimit{Metric: "program"}, "want the digest of the program"},
		"a program for top1":           {validators.AccuracyLimit{Metric: "top1", Program: one}, "is computed without a program"},
		"a program for one output":     {validators.AccuracyLimit{Metric: "program", Program: one, Output: "y"}, "a program reads all outputs"},
		"a program where less is good": {validators.AccuracyLimit{Metric: validators.MetricProgramLower, Program: one}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c.limit.Drop = &validators.AtMost{Max: 0.1}
			checkBound(t, c.limit.Validate(), c.want)
			if got, want := c.limit.ByProgram(), strings.HasPrefix(c.limit.Metric, "program"); got != want {
				t.Errorf("by a program: %t, want %t", got, want)
			}
		})
	}
}

func TestLatencyLimitsBounds(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *validators.TimeAtMost { return &validators.TimeAtMost{MaxNs: d} }
	for what, c := range map[string]struct {
		limits validators.LatencyLimits
		want   string
	}{
		"none":                  {validators.LatencyLimits{}, ""},
		"p50 of 1 ns":           {validators.LatencyLimits{P50: at(1)}, ""},
		"p50 of 0 ns":           {validators.LatencyLimits{P50: at(0)}, "latency limit of 0 ns"},
		"p99 of 0 ns":           {validators.LatencyLimits{P50: at(1), P99: at(0)}, "latency limit of 0 ns"},
		"longest p99":           {validators.LatencyLimits{P99: at(1<<53 - 1)}, ""},
		"p99 too long":          {validators.LatencyLimits{P99: at(1 << 53)}, "less than 100 days"},
		"no regression allowed": {validators.LatencyLimits{Regression: &validators.AtMost{}}, ""},
		"regression below 0":    {validators.LatencyLimits{Regression: &validators.AtMost{Max: -0.1}}, "latency.regression.max -0.1"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			checkBound(t, c.limits.Validate(), c.want)
			limits := judged(validators.OutputLimits{Cosine: &validators.AtLeast{}})
			limits.Latency = c.limits
			checkBound(t, limits.Validate(), c.want)
		})
	}
}

// Accuracy is measured on the first output with an answer for each case: by its kind.
func TestScoredOutput(t *testing.T) {
	t.Parallel()
	batch := validators.Dim{Symbol: "batch"}
	for what, c := range map[string]struct {
		dtype   tensor.DType
		shape   []validators.Dim
		kind    validators.Kind
		answers bool
	}{
		"an open number of scores": {tensor.Float32, []validators.Dim{batch, {Symbol: "classes"}}, validators.KindScores, true},
		"class numbers":            {tensor.Int64, []validators.Dim{batch}, validators.KindClass, true},
		"scores of tokens":         {tensor.Float32, []validators.Dim{batch, {Size: 2}, {Size: 2}}, validators.KindTokens, true},
		"an embedding":             {tensor.Float32, []validators.Dim{batch, {Size: 8}}, validators.KindEmbedding, false},
		"a value":                  {tensor.Float32, []validators.Dim{batch}, validators.KindValue, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			output := validators.TensorInfo{Name: "second", DType: c.dtype, Shape: c.shape, Kind: c.kind}
			i := validators.Interface{Outputs: []validators.TensorInfo{{Name: "first", DType: tensor.Int64}, output}}
			for _, must := range []bool{false, true} {
				name, ok := i.ScoredOutput(must)
				want := "first"
				if c.answers {
					want = "second"
				}
				if name != want || ok != (c.answers || must) {
					t.Errorf("scored output %s, %v if one must be; want %s, %v", name, ok, want, c.answers || must)
				}
			}
		})
	}
}

// A dimension allows its own size, or any in the range of its symbol.
func TestDimSizes(t *testing.T) {
	t.Parallel()
	i := validators.Interface{Dims: map[string]validators.DimRange{"batch": {Min: 2, Opt: 3, Max: 4}}}
	fixed, open := validators.Dim{Size: 7}, validators.Dim{Symbol: "batch"}
	for size, want := range map[int64]bool{1: false, 2: true, 4: true, 5: false} {
		if got := i.Allows(open, size); got != want {
			t.Errorf("a range of 2 to 4 allows %d: %v, want %v", size, got, want)
		}
	}
	for size, want := range map[int64]bool{6: false, 7: true, 8: false} {
		if got := i.Allows(fixed, size); got != want {
			t.Errorf("a size of 7 allows %d: %v, want %v", size, got, want)
		}
	}
	if got := i.OptSize(open); got != 3 {
		t.Errorf("a symbol is measured at %d, want 3", got)
	}
	if got := i.OptSize(fixed); got != 7 {
		t.Errorf("a size of 7 is measured at %d", got)
	}
	if fixed.String() != "7" || open.String() != "batch" {
		t.Errorf("dimensions are written %s and %s, want 7 and batch", fixed, open)
	}
}

// Only the limits that are given are asked for, the others are left to the preset.
func TestOverridesReplaceSingleFigures(t *testing.T) {
	t.Parallel()
	two := 2.0
	all := validators.OutputLimits{RTol: &two, ATol: &two, Cosine: &validators.AtLeast{Min: 0.5}, Top1: &validators.AtLeast{Min: 0.5},
		SNRdB: &validators.AtLeast{Min: 2}, MaxAbs: &validators.AtMost{Max: 2}, Equal: &validators.AtLeast{Min: 0.5},
		MaxError: &validators.AtMost{Max: 2}, CaseError: &validators.AtMost{Max: 2}, Systematic: &validators.AtMost{Max: 2}, PerChannel: new(true)}
	limits, err := validators.ExpandPreset("", digits(), []string{"int8"}, 600,
		validators.LimitOverrides{Outputs: map[string]validators.OutputLimits{"logits": all}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := limits.For("int8", "logits"); got != all {
		t.Errorf("limits %+v, want those of the overrides", got)
	}
	if got, _ := limits.For("int8", "best"); got.RTol != nil || got.Equal == nil || got.Equal.Min != 0.95 {
		t.Errorf("limits of the other output %+v, want those of the preset", got)
	}
}

// A mask fits where its dimensions are the output's first, each the same, or one that may turn out to be the same.
func TestWhereFits(t *testing.T) {
	t.Parallel()
	batch, seq, length := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "seq"}, validators.Dim{Symbol: "length"}
	eight, nine := validators.Dim{Size: 8}, validators.Dim{Size: 9}
	for what, c := range map[string]struct {
		mask, output []validators.Dim
		fits         bool
	}{
		"same symbols":             {[]validators.Dim{batch, seq}, []validators.Dim{batch, seq}, true},
		"other symbols":            {[]validators.Dim{batch, seq}, []validators.Dim{batch, length}, true},
		"a symbol and a size":      {[]validators.Dim{batch, seq}, []validators.Dim{batch, eight}, true},
		"a size and a symbol":      {[]validators.Dim{batch, eight}, []validators.Dim{batch, seq}, true},
		"the same size":            {[]validators.Dim{eight, nine}, []validators.Dim{eight, nine}, true},
		"another size first":       {[]validators.Dim{eight, nine}, []validators.Dim{nine, nine}, false},
		"another size last":        {[]validators.Dim{batch, eight}, []validators.Dim{batch, nine}, false},
		"fewer dimensions":         {[]validators.Dim{batch}, []validators.Dim{batch, eight}, true},
		"more dimensions":          {[]validators.Dim{batch, eight, eight}, []validators.Dim{batch, eight}, false},
		"no dimensions of a mask":  {nil, []validators.Dim{batch, eight}, false},
		"no dimensions of the two": {nil, nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			i := validators.Interface{V: validators.InterfaceVersion,
				Inputs:  []validators.TensorInfo{{Name: "mask", DType: tensor.Bool, Shape: c.mask}},
				Outputs: []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: c.output}}}
			_, err := validators.ExpandPreset("", i, []string{"fp32"}, 600, where("y", "mask"))
			want := ""
			if !c.fits {
				want = "want an input whose dimensions are the output's first"
			}
			checkBound(t, err, want)
		})
	}
}
