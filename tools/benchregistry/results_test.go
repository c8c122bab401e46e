package main

import (
	"strings"
	"testing"
)

func TestGoals(t *testing.T) {
	t.Parallel()
	var r results
	// Rounds differ by a disturbance that hits both alike; ratios do not.
	for _, disturbance := range []float64{1, 3, 10} {
		r.add(rowPushMemory, "s", ours, 1.7*disturbance)
		r.add(rowPushMemory, "s", hashing, disturbance)
		r.add(rowPushMemory, "s", cncf, 2*disturbance)
		r.add(rowPull, "s", secured, 1.25*disturbance)
		r.add(rowPull, "s", staticBy, disturbance)
		r.add(rowManifest, "k requests/s", ours, 2/disturbance)
		r.add(rowManifest, "k requests/s", static, 10/disturbance)
	}
	r.add(rowAttach, "of 32", ours, 31)
	want := map[string]bool{
		"push: time of distribution, tmpfs":  true,  // 0.85
		"push: time of a bare sha256, tmpfs": true,  // 1.7
		"pull with TLS":                      false, // 0.8
		"manifest GET: rate of nginx":        false, // 0.2
		"attached at once":                   false,
	}
	goals := r.goals()
	if len(goals) != len(want) {
		t.Errorf("%d goals, want %d: those of which something was measured", len(goals), len(want))
	}
	for start, met := range want {
		found := false
		for _, g := range goals {
			if strings.HasPrefix(g.text, start) {
				found = true
				if g.met() != met {
					t.Errorf("%s: %v is met: %v, want %v", g.text, g.got, g.met(), met)
				}
			}
		}
		if !found {
			t.Errorf("no goal %s", start)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"":                  nil,
		"0.123":             {0.1234},
		"2.50 [1-4]":        {4, 2, 3, 1},
		"32 [31-32]":        {32, 31, 32},
		"1235 [12.3-12345]": {12345.4, 1234.6, 12.34},
	} {
		if got := summary(values); got != want {
			t.Errorf("%v: got %q, want %q", values, got, want)
		}
	}
}
