package toolchain

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Outcome is the result of a job.
type Outcome struct {
	Files   []OutputFile    // sorted by name
	Result  json.RawMessage // what the driver reports, per verb: [ProbeResult], [RunResult], ...
	Cached  bool            // the result is from the cache; nothing ran
	Origin  Origin          // of a cached result: where the work was done
	Elapsed time.Duration   // wall time of the work, when it was done
	Key     registry.Digest // of everything that can change the result; set by Cache
	// Enforced has the restrictions under which the driver did the work.
	Enforced Enforced

	about About // of a cached result
}

// Origin says where a cached step was done. The zero Origin is this machine.
type Origin struct {
	Cache  string `json:"cache,omitempty"`  // "oci://host/repository"
	Signer string `json:"signer,omitempty"` // the builder's key that signed it there
}

// OutputFile is a file that a job left. Digest and Size were computed by mlpromote from the
// bytes, not by the driver.
type OutputFile struct {
	Name   string // relative to the output directory, with '/'
	Path   string // where it is
	Digest registry.Digest
	Size   int64 // bytes
}

// File returns the file of the outcome with a name.
func (o Outcome) File(name string) (OutputFile, bool) {
	for _, f := range o.Files {
		if f.Name == name {
			return f, true
		}
	}
	return OutputFile{}, false
}

// RunResult reads the result of a run and holds it against what was asked: one result of each
// engine, in the order of the request, with a time of each run. Errors: CodeInternal for any other.
func (o Outcome) RunResult(asked RunOptions) (RunResult, error) {
	var r RunResult
	if err := json.Unmarshal(o.Result, &r); err != nil {
		return RunResult{}, registry.Errorf(registry.CodeInternal, "result of run: %w", err)
	}
	same := func(e RunEngine, result EngineResult) bool { return e.ID == result.ID }
	if !slices.EqualFunc(asked.Engines, r.Engines, same) {
		return RunResult{}, registry.Errorf(registry.CodeInternal, "result of run: it is of the engines %q, want one of each of %q",
			ids(r.Engines, func(e EngineResult) string { return e.ID }), ids(asked.Engines, func(e RunEngine) string { return e.ID }))
	}
	for _, e := range r.Engines {
		if err := e.check(r.Cases, max(asked.Rounds, 1)); err != nil {
			return RunResult{}, registry.Errorf(registry.CodeInternal, "result of run: engine %q: %w", e.ID, err)
		}
	}
	return r, nil
}

// check refuses times that no run took. Whether the others are true is up to the program that measured them.
func (e EngineResult) check(cases, rounds int) error {
	switch {
	case cases <= 0 || len(e.TimingsNS) != cases*rounds:
		return fmt.Errorf("it has %d timings of %d cases: want a time for each case in each of %d rounds", len(e.TimingsNS), cases, rounds)
	case slices.Min(e.TimingsNS) <= 0:
		return fmt.Errorf("a run took %d ns: want more than 0", slices.Min(e.TimingsNS))
	case e.LoadNS < 0:
		return fmt.Errorf("it loaded in %d ns: want 0 or more", e.LoadNS)
	}
	return nil
}

func ids[T any](engines []T, id func(T) string) []string {
	var all []string
	for _, e := range engines {
		all = append(all, id(e))
	}
	return all
}

// About describes a step for listings.
type About struct {
	Verb Verb
	Tool string // name and version
}
