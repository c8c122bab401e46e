package verify

import (
	"reflect"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// The test result passes if parity passes and performance does not fail; an output passes if it ran and no reason names it.
func TestSummaryOfAVerification(t *testing.T) {
	t.Parallel()
	const pass, fail, undecided, recorded = evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictUndecided, evidence.VerdictRecorded
	of := func(output string) evidence.Reason { return evidence.Reason{Code: "outside-limit", Output: output} }
	for name, c := range map[string]struct {
		parity, performance evidence.Verdict
		ran                 int
		reasons             []evidence.Reason // of parity
		slow                []evidence.Reason // of performance
		result              string
		passed, failed      []string
	}{
		"both pass":         {pass, pass, 3, nil, nil, "PASSED", []string{"parity/a", "parity/b"}, []string{}},
		"no limit on times": {pass, recorded, 3, nil, nil, "PASSED", []string{"parity/a", "parity/b"}, []string{}},
		"times undecided":   {pass, undecided, 3, nil, []evidence.Reason{{Code: "not-enough"}}, "FAILED", []string{"parity/a", "parity/b"}, []string{"not-enough"}},
		"times not judged":  {pass, "", 3, nil, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{}},
		"too slow":          {pass, fail, 3, nil, []evidence.Reason{{Code: "latency"}}, "FAILED", []string{"parity/a", "parity/b"}, []string{"latency"}},
		"an output fails":   {fail, recorded, 3, []evidence.Reason{of("b"), of("b")}, nil, "FAILED", []string{"parity/a"}, []string{"parity/b"}},
		"undecided":         {undecided, recorded, 3, []evidence.Reason{{Code: "not-run"}}, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{"not-run"}},
		"nothing ran":       {undecided, recorded, 0, []evidence.Reason{{Code: "not-run"}}, nil, "FAILED", []string{}, []string{"not-run"}},
		"no verdict":        {"", recorded, 3, nil, nil, "FAILED", []string{"parity/a", "parity/b"}, []string{}},
		"several reasons":   {fail, fail, 3, []evidence.Reason{of("b"), of("a")}, []evidence.Reason{{Code: "latency"}}, "FAILED", []string{}, []string{"latency", "parity/a", "parity/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Session{}
			v.Iface.Outputs = []validators.TensorInfo{{Name: "a"}, {Name: "b"}}
			var e VerifiedEngine
			e.Parity.Verdict, e.Parity.Cases.Ran, e.Parity.Reasons = c.parity, c.ran, c.reasons
			e.Performance.Verdict, e.Performance.Reasons = c.performance, c.slow
			got := summary(v, e)
			if got.Result != c.result || !slices.Equal(got.PassedTests, c.passed) || !slices.Equal(got.FailedTests, c.failed) {
				t.Errorf("%s, passed %q, failed %q; want %s, %q, %q", got.Result, got.PassedTests, got.FailedTests, c.result, c.passed, c.failed)
			}
		})
	}
}

// A report lists the packages of a Python that mlpromote did not install, and of nothing else.
func TestHostPackages(t *testing.T) {
	t.Parallel()
	adopted := toolchain.Identity{Adopted: true, Lock: digest.FromString("packages"), Versions: map[string]string{"torch": "2.11"}}
	got := hostPackages(adopted)
	if got == nil || !reflect.DeepEqual(got.Packages, evidence.NewDigestSet(adopted.Lock)) || !reflect.DeepEqual(got.Versions, adopted.Versions) {
		t.Errorf("got %+v, want the packages of %+v", got, adopted)
	}
	for name, change := range map[string]func(*toolchain.Identity){
		"of a lock file": func(i *toolchain.Identity) { i.Adopted = false },
		"of an image":    func(i *toolchain.Identity) { i.Image = "sha256:0" },
		"of a manifest":  func(i *toolchain.Identity) { i.Versions = nil },
	} {
		other := adopted
		change(&other)
		if got := hostPackages(other); got != nil {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}
