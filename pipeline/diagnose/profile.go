package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators/performance"
)

// Profiled says where the time of an engine goes on this machine.
type Profiled struct {
	Ref     registry.Ref       `json:"-"`
	Engine  string             `json:"engine"` // label
	Digest  registry.Digest    `json:"digest"`
	Runtime artifact.Toolchain `json:"runtime"` // name and version of what ran the engine
	// LoadNS is what loading the engine took, and Load its parts as the runtime divides them. All times are
	// nanoseconds.
	LoadNS int64                   `json:"loadNs"`
	Load   []toolchain.ProfileTime `json:"load,omitempty"`
	P50NS  int64                   `json:"p50Ns"` // median of runs without a profile, which costs time itself
	// Of a run with the profile: RunNS in all, 0 if the runtime does not say it, of which operators and copies take
	// parts. Copies move values between devices or layouts, and compute nothing.
	Runs        int   `json:"runs"`
	RunNS       int64 `json:"runNs,omitempty"`
	OperatorsNS int64 `json:"operatorsNs"`
	CopiesNS    int64 `json:"copiesNs"`
	// Nodes are those of the engine's graph, the costliest first, and Kinds the same by operator.
	Nodes []ProfiledNode `json:"nodes"`
	Kinds []ProfiledNode `json:"kinds"`
	// Missing says why there are no nodes; empty if there are.
	Missing string `json:"missing,omitempty"`
}

// ProfiledNode is a node, or all nodes with one operator.
type ProfiledNode struct {
	Node     string  `json:"node,omitempty"` // empty for an operator
	Operator string  `json:"operator"`
	Provider string  `json:"provider,omitempty"`
	Count    int     `json:"count"` // nodes
	TimeNS   int64   `json:"timeNs"`
	Share    float64 `json:"share"` // of the time of all nodes
}

// Bottleneck is the node that takes most time; ok is false if there is none.
func (p Profiled) Bottleneck() (n ProfiledNode, ok bool) {
	if len(p.Nodes) == 0 {
		return ProfiledNode{}, false
	}
	return p.Nodes[0], true
}

const (
	profiledRuns   = 20
	profiledTimed  = 50 // runs without a profile
	profiledWarmup = 5
)

// Profile runs the first case on an engine, and says where the time goes, by the runtime's own profile. engine is as
// in [BisectOptions]. Errors: those of oneEngine.
func Profile(ctx context.Context, env *run.Env, ref registry.Ref, engine string) (Profiled, error) {
	temp, err := tempdir.New("profile")
	if err != nil {
		return Profiled{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	v, c, err := verify.Open(ctx, env, ref, engine, scratch)
	if err != nil {
		return Profiled{}, err
	}
	found := Profiled{
		Ref:    registry.Ref{Environment: v.Environment, Model: v.Release.Model, Tag: v.Release.Tag(), Digest: v.Release.Digest},
		Engine: c.Engine.Label(), Digest: c.Engine.Digest, Runtime: artifact.Toolchain{Name: c.Tool.Runtime.Name, Version: c.Tool.Runtime.Version},
	}
	inputs, err := caseInputs(v, []int{0}, filepath.Join(scratch, "one"))
	if err != nil {
		return Profiled{}, err
	}
	result, err := profiled(ctx, v, c, inputs[0].input)
	if err != nil {
		return Profiled{}, err
	}
	found.LoadNS, found.P50NS = result.LoadNS, performance.Summarize(result.TimingsNS, verify.EngineBatch).P50Ns
	found.take(result.Profile)
	return found, nil
}

func profiled(ctx context.Context, v verify.Session, c run.Candidate, one toolchain.Input) (_ toolchain.EngineResult, err error) {
	ctx, done := v.Env.Report().StepIn(ctx, "profile "+c.Engine.Label())
	defer func() { done("", err) }()
	execution := c.Tool.Run(toolchain.RunOptions{Warmup: profiledWarmup, Rounds: profiledTimed, Profile: profiledRuns})
	execution.Job.Inputs, execution.Job.Machine = []toolchain.Input{one}, run.Machine(v.Node)
	execution.AddCandidate(c)
	results, err := execution.Do(ctx, filepath.Join(v.Scratch, "profiled"))
	if err != nil {
		return toolchain.EngineResult{}, err
	}
	return results[0], nil
}

// copies are operators that move values between devices or layouts, by the names that runtimes give them.
var copies = []string{"MemcpyFromHost", "MemcpyToHost", "ReorderInput", "ReorderOutput", "Reorder"}

// take sums up a profile.
func (p *Profiled) take(profile *toolchain.RunProfile) {
	p.Nodes, p.Kinds = []ProfiledNode{}, []ProfiledNode{}
	if profile == nil || len(profile.Operators) == 0 {
		p.Missing = fmt.Sprintf("the runtime %s does not say what its operators take", p.Runtime.Name)
		return
	}
	p.Runs, p.RunNS, p.Load = profile.Runs, profile.RunNS, profile.Load
	var total int64
	for _, o := range profile.Operators {
		total += o.TimeNS
	}
	kinds := make(map[string]int)
	for _, o := range profile.Operators {
		n := ProfiledNode{Node: o.Node, Operator: o.Operator, Provider: o.Provider, Count: 1, TimeNS: o.TimeNS}
		if slices.Contains(copies, o.Operator) {
			p.CopiesNS += o.TimeNS
		} else {
			p.OperatorsNS += o.TimeNS
		}
		p.Nodes = append(p.Nodes, n)
		at, ok := kinds[o.Operator]
		if !ok {
			at, kinds[o.Operator] = len(p.Kinds), len(p.Kinds)
			p.Kinds = append(p.Kinds, ProfiledNode{Operator: o.Operator, Provider: o.Provider})
		}
		p.Kinds[at].Count++
		p.Kinds[at].TimeNS += o.TimeNS
		if p.Kinds[at].Provider != o.Provider {
			p.Kinds[at].Provider = ""
		}
	}
	for _, list := range [][]ProfiledNode{p.Nodes, p.Kinds} {
		for i := range list {
			list[i].Share = float64(list[i].TimeNS) / float64(max(total, 1))
		}
		slices.SortStableFunc(list, func(a, b ProfiledNode) int { return cmp.Compare(b.TimeNS, a.TimeNS) })
	}
}
