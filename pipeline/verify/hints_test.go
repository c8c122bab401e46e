package verify

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Where a processor has bf16, a failed fp32 engine of a runtime that uses it by itself gets the option that keeps fp32.
func TestHintBF16(t *testing.T) {
	t.Parallel()
	failed := registry.Errorf(registry.CodeLimit, "too much noise")
	keeps := toolchain.Profile{Name: "openvino", KeepsFP32: [2]string{"PRECISION", "f32"}}
	for name, c := range map[string]struct {
		feature   string
		profile   toolchain.Profile
		precision string
		load      *artifact.LoadProfile
		failure   error
		hinted    bool
	}{
		"fp32":                        {"avx512_bf16", keeps, "fp32", nil, failed, true},
		"fp32, by matrix products":    {"amx_bf16", keeps, "fp32", nil, failed, true},
		"with other options":          {"amx_bf16", keeps, "fp32", &artifact.LoadProfile{Options: map[string]string{"THREADS": "1"}}, failed, true},
		"of a processor without bf16": {"avx512_vnni", keeps, "fp32", nil, failed, false},
		"of a runtime that keeps it":  {"avx512_bf16", toolchain.Profile{}, "fp32", nil, failed, false},
		"int8":                        {"avx512_bf16", keeps, "int8", nil, failed, false},
		"kept already":                {"avx512_bf16", keeps, "fp32", &artifact.LoadProfile{Options: map[string]string{"PRECISION": "f32"}}, failed, false},
		"an engine that passes":       {"avx512_bf16", keeps, "fp32", nil, nil, false},
		"that failed otherwise":       {"avx512_bf16", keeps, "fp32", nil, registry.Errorf(registry.CodeInternal, "it crashed"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Session
			v.candidates = []run.Candidate{{Engine: artifact.Engine{Precision: c.precision, Load: c.load}}}
			v.candidates[0].Tool.Profile = c.profile
			v.Node.CPU.Features = []string{c.feature}
			failures := []error{c.failure}
			hintBF16(v, failures)
			hints := registry.Hints(failures[0])
			if hinted := strings.Contains(strings.Join(hints, "\n"), "load: {options: {PRECISION: f32}"); hinted != c.hinted {
				t.Errorf("hints %q, want one: %t", hints, c.hinted)
			}
		})
	}
}

// An engine of llama-cpp that ran out of time in a check gets the option with which it does not wait for its threads.
func TestHintThreads(t *testing.T) {
	t.Parallel()
	undecided := registry.Errorf(registry.CodeLimit, "is undecided")
	for name, c := range map[string]struct {
		option  string // of the runtime
		load    *artifact.LoadProfile
		late    bool
		failure error
		hinted  bool
	}{
		"out of time":           {"n_threads", nil, true, undecided, true},
		"another option":        {"n_threads", &artifact.LoadProfile{Options: map[string]string{"n_ubatch": "64"}}, true, undecided, true},
		"with the option":       {"n_threads", &artifact.LoadProfile{Options: map[string]string{"n_threads": "1"}}, true, undecided, false},
		"another runtime":       {"", nil, true, undecided, false},
		"an engine that passes": {"n_threads", nil, true, nil, false},
		"another reason":        {"n_threads", nil, false, undecided, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Session
			v.candidates = []run.Candidate{{Engine: artifact.Engine{Load: c.load}}}
			v.candidates[0].Tool.Profile.Spinning = c.option
			failures := []error{c.failure}
			hintThreads(v, []VerifiedEngine{{late: c.late}}, failures)
			if hinted := strings.Contains(strings.Join(registry.Hints(failures[0]), "\n"), "load: {options: {n_threads: 1}}"); hinted != c.hinted {
				t.Errorf("hints %q, want one: %t", registry.Hints(failures[0]), c.hinted)
			}
		})
	}
}

// A failed fp32 engine of a source that was converted points at the conversion, since the framework's outputs are what it is compared with.
func TestHintConverted(t *testing.T) {
	t.Parallel()
	failed := registry.Errorf(registry.CodeLimit, "too far off")
	for name, c := range map[string]struct {
		kind, precision string
		conversion      *artifact.Conversion
		failure         error
		hinted          bool
	}{
		"of scikit-learn":          {"scikit-learn/1.7.2", "fp32", nil, failed, true},
		"of ONNX":                  {run.OnnxRuntime + "/disable_all", "fp32", nil, failed, false},
		"int8":                     {"scikit-learn/1.7.2", "int8", nil, failed, false},
		"an engine that passes":    {"scikit-learn/1.7.2", "fp32", nil, nil, false},
		"inputs with fewer digits": {"scikit-learn/1.7.2", "fp32", &artifact.Conversion{Answers: 95, Cases: 1500}, failed, false},
	} {
		var v Session
		v.Golden.Set = &artifact.CaseSet{Kind: c.kind, Conversion: c.conversion}
		v.candidates = []run.Candidate{{Engine: artifact.Engine{Precision: c.precision}}}
		failures := []error{c.failure}
		hintConverted(v, failures)
		hints := strings.Join(registry.Hints(failures[0]), "\n")
		if hinted := strings.Contains(hints, "the conversion to ONNX computes something else than scikit-learn"); hinted != c.hinted {
			t.Errorf("%s: hints %q, want one: %t", name, hints, c.hinted)
		}
	}
}
