package pipeline

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A bisection runs the cases of the worst elements, also the first case, and then others evenly from all.
func TestCasesOfABisection(t *testing.T) {
	t.Parallel()
	worst := func(cases ...int) registry.ParityReport {
		report := registry.ParityReport{Outputs: make(map[string]registry.OutputFigures)}
		for i, number := range cases {
			report.Outputs[string(rune('a'+i))] = registry.OutputFigures{Worst: &registry.Worst{Case: number}}
		}
		report.Outputs["exact"] = registry.OutputFigures{}
		return report
	}
	for name, c := range map[string]struct {
		report      registry.ParityReport
		count, most int
		want        []int
	}{
		"no worst element":        {worst(), 8, 4, []int{0, 2, 4, 6}},
		"fewer cases than asked":  {worst(), 2, 4, []int{0, 1}},
		"the worst one":           {worst(7), 8, 1, []int{7}},
		"the first is the worst":  {worst(0), 8, 1, []int{0}},
		"the worst and others":    {worst(5), 8, 3, []int{0, 2, 5}},
		"one worst of two":        {worst(5, 5), 8, 2, []int{0, 5}},
		"more than asked":         {worst(5, 3, 1), 8, 2, []int{1, 3}},
		"behind the last case":    {worst(8), 8, 1, []int{0}},
		"the last case":           {worst(7), 8, 2, []int{0, 7}},
		"of no case":              {worst(-1), 8, 1, []int{0}},
		"worst among the regular": {worst(4), 8, 2, []int{0, 4}},
	} {
		if got := casesToRun(c.report, c.count, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Extra runs get time for what the engine takes to load; the reference model's time is not known, and taken as the slowest engine's.
func TestTimeOfExtraRuns(t *testing.T) {
	t.Parallel()
	outputs := runOutputs{engines: []toolchain.EngineResult{{ID: "e0", LoadNS: int64(time.Second)}, {ID: "e1", LoadNS: int64(3 * time.Second)}, {ID: "e2", LoadNS: int64(2 * time.Second)}}}
	for _, c := range []struct {
		id    string
		fixed time.Duration
		load  time.Duration
	}{{"e0", 0, time.Second}, {"e1", 0, 3 * time.Second}, {referenceID, 0, 3 * time.Second}, {"e9", 0, 0}, {"e2", time.Minute, 2 * time.Second}} {
		v := verification{p: &Pipeline{ExtraTime: c.fixed}}
		total := extraTime
		if c.fixed != 0 {
			total = c.fixed
		}
		got := v.extra(c.id, outputs, 2)
		if want := total + extraLoads*c.load; got.load != c.load || got.total != want || got.left != want || got.parts != 2 {
			t.Errorf("%s: %v to load, %v in all, %v left; want %v and %v", c.id, got.load, got.total, got.left, c.load, want)
		}
	}
}

// An engine that configures its process has one of its own.
func TestRunsAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model bool
		load  *registry.LoadProfile
		want  bool
	}{
		"nothing is said":         {false, nil, false},
		"the model says it":       {true, nil, true},
		"options of the session":  {false, &registry.LoadProfile{Runtime: onnxRuntime, Options: map[string]string{"a": "1"}}, false},
		"environment variables":   {false, &registry.LoadProfile{Runtime: onnxRuntime, Env: map[string]string{"A": "1"}}, true},
		"the runtime of browsers": {false, &registry.LoadProfile{Runtime: "onnxruntime-web"}, true},
	} {
		got := candidate{engine: registry.Engine{Load: c.load}, model: loadable{alone: c.model}}.alone()
		if got != c.want {
			t.Errorf("%s: alone %t, want %t", name, got, c.want)
		}
	}
}

// The tolerance of a cross-check follows from how the source counts.
func TestToleranceOfACrossCheck(t *testing.T) {
	t.Parallel()
	with := func(dtypes ...string) *format.Model {
		m := &format.Model{Tensors: make(map[string]int)}
		for _, d := range dtypes {
			m.Tensors[d]++
		}
		return m
	}
	for name, c := range map[string]struct {
		quantized string
		model     *format.Model
		want      crossCheckTolerance
	}{
		"no ONNX model": {"", nil, crossCheckFloat32}, "full precision": {"", with("float32"), crossCheckFloat32},
		"float16": {"", with("float32", "float16"), crossCheckHalf}, "bfloat16": {"", with("bfloat16"), crossCheckHalf},
		"quantized": {"static", with("int8"), crossCheckQuantized}, "quantized, of halves": {"static", with("float16"), crossCheckQuantized},
	} {
		m := maker{}
		m.inputs.Quantized, m.inputs.imported.source.model = c.quantized, c.model
		if got := m.tolerance(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// The test result passes if parity passes and performance does not fail; an output passes if it ran and no reason names it.
func TestSummaryOfAVerification(t *testing.T) {
	t.Parallel()
	const pass, fail, undecided, recorded = registry.VerdictPass, registry.VerdictFail, registry.VerdictUndecided, registry.VerdictRecorded
	of := func(output string) registry.Reason { return registry.Reason{Code: "outside-limit", Output: output} }
	for name, c := range map[string]struct {
		parity, performance registry.Verdict
		ran                 int
		reasons             []registry.Reason // of parity
		slow                []registry.Reason // of performance
		result              string
		passed, failed      []string
	}{
		"both pass":         {pass, pass, 3, nil, nil, "PASSED", []string{"parity/a", "parity/b"}, []string{}},
		"no limit on times": {pass, recorded, 3, nil, nil, "PASSED", []string{"parity/a", "parity/b"}, []string{}},
		"times undecided":   {pass, undecided, 3, nil, []registry.Reason{{Code: "not-enough"}}, "FAILED", []string{"parity/a", "parity/b"}, []string{"not-enough"}},
		"times not judged":  {pass, "", 3, nil, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{}},
		"too slow":          {pass, fail, 3, nil, []registry.Reason{{Code: "latency"}}, "FAILED", []string{"parity/a", "parity/b"}, []string{"latency"}},
		"an output fails":   {fail, recorded, 3, []registry.Reason{of("b"), of("b")}, nil, "FAILED", []string{"parity/a"}, []string{"parity/b"}},
		"undecided":         {undecided, recorded, 3, []registry.Reason{{Code: "not-run"}}, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{"not-run"}},
		"nothing ran":       {undecided, recorded, 0, []registry.Reason{{Code: "not-run"}}, nil, "FAILED", []string{}, []string{"not-run"}},
		"no verdict":        {"", recorded, 3, nil, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{}},
		"several reasons":   {fail, fail, 3, []registry.Reason{of("b"), of("a")}, []registry.Reason{{Code: "latency"}}, "FAILED", []string{}, []string{"latency", "parity/a", "parity/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verification{}
			v.iface.Outputs = []validators.TensorInfo{{Name: "a"}, {Name: "b"}}
			var e VerifiedEngine
			e.Parity.Verdict, e.Parity.Cases.Ran, e.Parity.Reasons = c.parity, c.ran, c.reasons
			e.Performance.Verdict, e.Performance.Reasons = c.performance, c.slow
			got := v.summary(e)
			if got.Result != c.result || !slices.Equal(got.PassedTests, c.passed) || !slices.Equal(got.FailedTests, c.failed) {
				t.Errorf("%s, passed %q, failed %q; want %s, %q, %q", got.Result, got.PassedTests, got.FailedTests, c.result, c.passed, c.failed)
			}
		})
	}
}

// A verdict that is no pass fails, whether or not a reason says why. That times were only recorded is enough; that parity was is not.
func TestNoPassFails(t *testing.T) {
	t.Parallel()
	const pass, recorded = registry.VerdictPass, registry.VerdictRecorded
	for _, c := range []struct {
		parity, performance registry.Verdict
		pass                bool
	}{
		{pass, pass, true}, {pass, recorded, true}, {recorded, recorded, false}, {pass, "", false}, {"", pass, false},
		{registry.VerdictFail, pass, false}, {pass, registry.VerdictUndecided, false},
	} {
		var e VerifiedEngine
		e.Parity.Verdict, e.Performance.Verdict = c.parity, c.performance
		if err := failed(e); (err == nil) != c.pass || err != nil && !registry.HasCode(err, registry.CodeLimit) {
			t.Errorf("parity %q, performance %q: %v", c.parity, c.performance, err)
		}
	}
}

// Jitter of one output fails although another one, of which nothing was compared, is undecided.
func TestJitterBesideAnOutputThatIsUndecided(t *testing.T) {
	t.Parallel()
	limit := validators.OutputLimits{SNRdB: &validators.AtLeast{Min: 40}}
	c := consistencyChecks{v: verification{}}
	c.v.limits = validators.Limits{V: validators.LimitsVersion, MinCases: 1, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{
		"fp32": {Outputs: map[string]validators.OutputLimits{"a": limit, "b": limit}}}}
	one := func(elements int64, snr float64) tensor.Result {
		return tensor.Result{Cases: 3, Elements: elements, SNR: snr, SpreadSNR: snr}
	}
	whole := map[string]tensor.Result{"a": one(9, 90), "b": one(9, 90)}
	judge := c.judge(candidate{engine: registry.Engine{Precision: "fp32"}}, whole)
	for snr, want := range map[float64]registry.Verdict{45: registry.VerdictFail, 95: registry.VerdictUndecided} {
		verdict, reasons := judge(registry.ConsistencyProcess, map[string]tensor.Result{"a": {}, "b": one(9, snr)}, 3)
		if verdict != want || (verdict == registry.VerdictFail) != (reasons[0].Output == "b") {
			t.Errorf("%g dB: %s, %v; want %s", snr, verdict, reasons, want)
		}
	}
}

// What a trial loses is accuracy where that is compared, and else the noise of its worst output.
func TestLossOfATrial(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	outputs := func(db ...float64) map[string]registry.OutputFigures {
		all := make(map[string]registry.OutputFigures)
		for i, v := range db {
			all[string(rune('a'+i))] = registry.OutputFigures{SNRdB: registry.Figure(v)}
		}
		return all
	}
	for name, c := range map[string]struct {
		loss     string
		outputs  map[string]registry.OutputFigures
		accuracy *registry.Accuracy
		want     float64
	}{
		"noise":                        {"", outputs(40), nil, -40},
		"the worst output":             {"", outputs(40, 12, 30), nil, -12},
		"an exact output":              {"", outputs(math.Inf(1)), nil, -200},
		"noise beyond what is counted": {"", outputs(-300), nil, 200},
		"an output without a figure":   {"", outputs(40, nan), nil, 200},
		"nothing was compared":         {"", nil, nil, nan},
		"accuracy":                     {LossAccuracy, outputs(40), &registry.Accuracy{Drop: 0.25}, 0.25},
		"accuracy that is not there":   {LossAccuracy, outputs(40), nil, nan},
		"accuracy without outputs":     {LossAccuracy, nil, &registry.Accuracy{Drop: 0.25}, nan},
	} {
		tuned := &tuning{}
		tuned.result.Loss = c.loss
		report := registry.ParityReport{Outputs: c.outputs, Accuracy: c.accuracy}
		if got := float64(tuned.loss(report)); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A part is stated once for a spec and a commit; a statement about anything else does not count as that.
func TestMissingPart(t *testing.T) {
	t.Parallel()
	r := targetsOf([2]string{"x", "fp32"})
	key := digest.FromString("key")
	part, other := &plan.Part{Key: key}, &plan.Part{Key: digest.FromString("other")}
	for name, c := range map[string]struct {
		claim registry.Claim
		want  int // statements to make
	}{
		"said":                     {builderSays(t, r.Digest, part, "c0ffee", 1), 0},
		"of another spec":          {builderSays(t, r.Digest, other, "c0ffee", 1), 1},
		"from another commit":      {builderSays(t, r.Digest, part, "0ld", 1), 1},
		"about an engine":          {builderSays(t, r.Engines[0].Digest, part, "c0ffee", 1), 1},
		"of a whole release":       {builderSays(t, r.Digest, nil, "c0ffee", 1), 1},
		"another kind of document": {registry.Claim{Subject: r.Digest, Statement: registry.Statement{PredicateType: registry.PredicateSign}}, 1},
	} {
		b := build{p: &Pipeline{}}
		b.parts = &wantedParts{key: key, commit: "c0ffee"}
		b.plan.Model, b.plan.Version = "a/b", "1.0.0"
		got, err := b.missingPart(r, []registry.Claim{c.claim})
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d statements, error %v; want %d", name, len(got), err, c.want)
		}
	}
}

// An engine replaces the one with its label for the same machines, or else what this machine or its own machines get now.
func TestCounterpart(t *testing.T) {
	t.Parallel()
	at := func(name string, arch, level string) registry.Target {
		return registry.Target{V: 1, Name: name, OS: "linux", CPU: registry.TargetCPU{Arch: arch, Level: level}}
	}
	engine := func(target registry.Target, variant string) registry.Engine {
		return registry.Engine{Digest: digest.FromString(target.Name + variant), Target: target, Variant: variant}
	}
	narrow, wide, arm := at("narrow", "amd64", "v1"), at("wide", "amd64", "v3"), at("arm", "arm64", "")
	renamed := narrow
	renamed.Name = "other"
	for name, c := range map[string]struct {
		of    registry.Engine
		there []registry.Engine
		want  string // label; empty: none
	}{
		"its label":                        {engine(narrow, "int8"), []registry.Engine{engine(narrow, "fp32"), engine(narrow, "int8")}, "narrow/int8"},
		"another label":                    {engine(narrow, "small"), []registry.Engine{engine(narrow, "fp32")}, "narrow/fp32"},
		"another name of the same machine": {engine(renamed, "fp32"), []registry.Engine{engine(narrow, "fp32")}, "narrow/fp32"},
		"its label, for other machines":    {engine(at("narrow", "amd64", "v3"), "fp32"), []registry.Engine{engine(wide, "fp32"), engine(narrow, "fp32")}, "wide/fp32"},
		"for other machines alone":         {engine(arm, "fp32"), []registry.Engine{engine(arm, "old")}, "arm/old"},
		"for no machine of its own":        {engine(narrow, "fp32"), nil, ""},
	} {
		h := host{node: registry.Node{OS: "linux", CPU: registry.NodeCPU{Arch: "amd64", Level: "v3"}}}
		got, ok := h.counterpart(c.of, c.there)
		if ok != (c.want != "") || ok && got.Label() != c.want {
			t.Errorf("%s: got %s, %t; want %q", name, got.Label(), ok, c.want)
		}
	}
}

// A case that is given is written as a file of one case; what is no tensor of one case is refused.
func TestGivenCase(t *testing.T) {
	t.Parallel()
	x := floats32(t, []float32{1, 2}, 1, 2)
	dir := filepath.Join(t.TempDir(), "a", "b")
	got, err := givenCase(map[string]tensor.Tensor{"x": x}, dir)
	if err != nil || len(got) != 1 || got[0].number != 0 || got[0].input.Role != toolchain.RoleCases || filepath.Dir(got[0].input.Path) != dir {
		t.Errorf("got %+v, error %v; want a file of one case in %s", got, err, dir)
	}
	x.Data = x.Data[:3]
	if _, err := givenCase(map[string]tensor.Tensor{"x": x}, dir); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "the inputs of the case: ") {
		t.Errorf("bytes that do not fit the shape: error %v, want CodeInvalid", err)
	}
}

// A million predictions cost what the machine costs while it makes them.
func TestCostPerMillion(t *testing.T) {
	t.Parallel()
	trial := Trial{Latency: &registry.Latency{PerSecond: 1000}}
	if got := trial.CostPerMillion(3.6); math.Abs(got-1) > 1e-12 {
		t.Errorf("at 3.6 an hour and 1000 a second: got %v, want 1", got)
	}
}

// An engine is loaded again as often as fits the time, at least twice, and no more often than is of use.
func TestLoadsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load, one time.Duration
		want      int
	}{
		{0, 0, mostLoads}, {time.Millisecond, 0, mostLoads}, {loadsTime / mostLoads, 0, mostLoads}, {loadsTime / (mostLoads - 1), 0, mostLoads - 1},
		{time.Second, 0, 5}, {0, loadsTime / consistency.LoadCases / 4, 4}, {loadsTime / 3, 0, 3}, {loadsTime, 0, 2}, {time.Hour, time.Hour, 2},
	} {
		if got := loadsOf(c.load, c.one, mostLoads); got != c.want {
			t.Errorf("%v to load and %v for a case: %d loads, want %d", c.load, c.one, got, c.want)
		}
	}
}

// Some of the cases are compared by the spread that an output has over all of them.
func TestSomeCasesHaveTheSpreadOfAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	y, err := tensor.New([]float32{1, 3, 5, 7}, 4, 1)
	if err == nil {
		err = cases.WriteShard(filepath.Join(dir, "a.safetensors"), map[string]tensor.Tensor{"y": y})
	}
	if err != nil {
		t.Fatal(err)
	}
	set := registry.CaseSet{Shards: []registry.Shard{{File: "a.safetensors", Count: 4}}}
	v := verification{}
	v.cases, v.golden = material{dir: dir, set: &set}, material{dir: dir, set: &set}
	v.iface.Outputs = []validators.TensorInfo{{Name: "y", DType: tensor.Float32}}
	v.limits = validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"fp32": {Outputs: map[string]validators.OutputLimits{
		"y": {SNRdB: &validators.AtLeast{Min: 80}}}}}}
	run, err := v.comparisonOfSome(t.Context(), "fp32")
	if err != nil {
		t.Fatal(err)
	}
	got := 0.0
	if spreads := run.Outputs["y"].Spreads; len(spreads) == 1 {
		got = spreads[0]
	}
	if want := math.Sqrt(5); math.Abs(got-want) > 1e-6 {
		t.Errorf("a spread of %v, want %v", got, want)
	}
}

// A report names the destination where limits compare with the engine that is there.
func TestDestinationOfAReport(t *testing.T) {
	t.Parallel()
	accuracy := func(l *validators.Limits) { l.Accuracy = &validators.AccuracyLimit{Regression: &validators.AtMost{}} }
	latency := func(l *validators.Limits) { l.Latency.Regression = &validators.AtMost{} }
	for name, c := range map[string]struct {
		environment string
		change      func(*validators.Limits)
		want        bool
	}{
		"accuracy":                             {"prod", accuracy, true},
		"latency":                              {"prod", latency, true},
		"nothing is compared":                  {"prod", func(*validators.Limits) {}, false},
		"accuracy, but not with what is there": {"prod", func(l *validators.Limits) { l.Accuracy = &validators.AccuracyLimit{} }, false},
		"nothing is there":                     {"", accuracy, false},
	} {
		v := verification{}
		v.limits = validators.Limits{V: validators.LimitsVersion}
		v.next.environment, v.next.release = c.environment, digest.FromString("release")
		c.change(&v.limits)
		got := v.destination(candidate{})
		if (got != nil) != c.want || c.want && (got.Environment != "prod" || got.Release["sha256"] != v.next.release.Encoded()) {
			t.Errorf("%s: got %+v, want one: %t", name, got, c.want)
		}
	}
}

// A measurement gets more runs where limits are on a tail, and no fewer than the least.
func TestTimingOfAVerification(t *testing.T) {
	t.Parallel()
	tail := validators.LatencyLimits{P99: &validators.TimeAtMost{}}
	median := validators.LatencyLimits{P50: &validators.TimeAtMost{}}
	limits := func(l validators.LatencyLimits) validators.Limits {
		return validators.Limits{V: validators.LimitsVersion, Confidence: 0.95, Latency: l}
	}
	runs := limits(tail).TailRuns(tailOver)
	slow := 2 * limitedTime / time.Duration(runs) // so that these runs do not fit the time
	for name, c := range map[string]struct {
		limits validators.Limits
		time   time.Duration
		median time.Duration
		want   timing
	}{
		"nothing is limited":          {limits(validators.LatencyLimits{}), 0, 0, timing{recordedTime, recordedSamples}},
		"a median is":                 {limits(median), 0, 0, timing{limitedTime, maxSamples}},
		"a tail is":                   {limits(tail), 0, slow, timing{time.Duration(runs) * slow, runs}},
		"time is given":               {limits(median), time.Second, time.Millisecond, timing{time.Second, 1000}},
		"slow runs fill the time":     {limits(median), 0, limitedTime / 100, timing{limitedTime, 100}},
		"the slowest have the fewest": {limits(median), 0, time.Hour, timing{limitedTime, minSamples}},
	} {
		v := verification{p: &Pipeline{LatencyTime: c.time}}
		v.limits = c.limits
		if got := v.timing(c.median); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
