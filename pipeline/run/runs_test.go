package run

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// An engine that configures its process has one of its own.
func TestRunsAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model   bool
		process bool // options of the runtime are of the process
		load    *artifact.LoadProfile
		want    bool
	}{
		"nothing is said":        {false, true, nil, false},
		"the model says it":      {true, false, nil, true},
		"options of the session": {false, false, &artifact.LoadProfile{Options: map[string]string{"a": "1"}}, false},
		"options of the process": {false, true, &artifact.LoadProfile{Options: map[string]string{"a": "1"}}, true},
		"environment variables":  {false, false, &artifact.LoadProfile{Env: map[string]string{"A": "1"}}, true},
	} {
		with := Candidate{Engine: artifact.Engine{Load: c.load}, Model: Loadable{Alone: c.model}}
		with.Tool.Profile.LoadsProcess = c.process
		got := with.alone()
		if got != c.want {
			t.Errorf("%s: alone %t, want %t", name, got, c.want)
		}
	}
}

// Each member of a group runs alone, in order and then in reverse.
func TestApart(t *testing.T) {
	t.Parallel()
	var turns []string
	for _, g := range (RunGroup{Name: "g", Members: []Candidate{{ID: "a"}, {ID: "b"}, {ID: "c"}}}).Apart() {
		if len(g.Members) != 1 || g.Name != "g" {
			t.Fatalf("a turn of %d members of %s, want one of g", len(g.Members), g.Name)
		}
		turns = append(turns, g.Members[0].ID)
	}
	if want := []string{"a", "b", "c", "c", "b", "a"}; !slices.Equal(turns, want) {
		t.Errorf("turns %q, want %q", turns, want)
	}
}
