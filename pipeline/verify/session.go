package verify

import (
	"fmt"
	"path/filepath"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// destination is the environment that takes releases from the one that is verified, and the
// release that it has. The zero destination has none.
type destination struct {
	environment string
	release     registry.Digest
}

// replaced is the engine of the destination that an engine would replace. With a fault it cannot be
// compared with here, and limits that compare stay undecided.
type replaced struct {
	run.Candidate
	fault string
}

// Fetched has the files that a verification reads, each byte checked against its digest on the way.
type Fetched struct {
	Expected
	Reference      run.Material
	ReferenceModel run.Loadable
	candidates     []run.Candidate
	current        map[string]replaced // by label of the candidate
	next           destination
}

// Expected has the outputs that engines are compared with.
type Expected struct {
	Limits        validators.Limits
	Iface         validators.Interface
	Cases, Golden run.Material // the cases as engines take them
	given         cases.Set    // as the user gave them
	copies        map[int]bool // cases that have the inputs of an earlier one
	Changed       map[int]bool // cases whose values were changed for engines; nil if the cases have the types that engines take
	Scorer        *run.Scorer  // of a metric that a program computes
}

// Beginning is the time at which a verification began, and the newest event that it saw.
type Beginning struct {
	StartedOn time.Time `json:"startedOn"`
	// History is the hash of the model's newest event; empty if the model has no event.
	History registry.Digest `json:"history,omitempty"`
}

// Session verifies one release on one machine. It has the release, the machine, and the files that were fetched.
// It does not change once it is made.
type Session struct {
	Env     *run.Env
	Scratch string
	Subject
	Host
	Fetched
	skipped []SkippedEngine
	bare    []run.Candidate  // the candidates on their runtimes, if a server runs them
	faults  map[string]error // by engine: why no answer of its server counts
}

// Subject is the release that is verified, as it was when the verification began.
type Subject struct {
	Began       Beginning
	Environment string
	Release     artifact.Release
	Claims      []evidence.Claim // about the release and its engines
}

// EngineID names the i-th candidate among the engines of a run.
func EngineID(i int) string { return fmt.Sprintf("engine-%d", i) }

// RunOutputs is where runs left their outputs, and how long their single runs took.
type RunOutputs struct {
	Root    map[string]string // by engine: where its run left its outputs
	broken  map[string]error  // by engine: why it did not run
	earlier map[string]int    // by engine: cases that an earlier verification had run
	resumed Beginning         // of that verification
	Engines []toolchain.EngineResult
}

// began is when the outputs of an engine began to be made.
func (o RunOutputs) began(id string, now Beginning) Beginning {
	if o.earlier[id] > 0 {
		return o.resumed
	}
	return now
}

// providers says who ran an engine.
func (o RunOutputs) providers(id string) []evidence.ProviderShare {
	for _, e := range o.Engines {
		if e.ID == id {
			return e.Providers
		}
	}
	return nil
}

func (o RunOutputs) dir(id string) string { return filepath.Join(o.Root[id], "outputs", id) }

// note says what did not run again.
func (o RunOutputs) note(cases int) string {
	total, earlier := 0, 0
	for _, n := range o.earlier {
		total, earlier = total+cases, earlier+n
	}
	if earlier == 0 {
		return ""
	}
	return fmt.Sprintf("resumed: %d of %d cases were run before", earlier, total)
}
