package verify

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Costless is the ratio in dB from which on a node costs nothing.
const Costless = 120

// Costs reports whether the node alone changes the outputs of the model.
func (n GraphNodeSensitivity) Costs() bool { return n.SNRdB < Costless }

// hints adds to the failures of engines, in their order, what their sensitivity says to do:
// once for engines of which it says the same.
func hints(found []VerifiedEngine, failures []error) {
	said := make(map[string]bool)
	for i, e := range found {
		if e.Sensitivity == nil {
			continue
		}
		if hint := e.Sensitivity.quantization().Hint(); !said[hint] {
			failures[i], said[hint] = registry.WithHint(failures[i], "%s", hint), true
		}
		likely, next := e.Sensitivity.quantization().Remedy()
		failures[i] = remedy.With(failures[i], e.Label, likely, next)
	}
}

// leavesNothing reports whether Exclude has all nodes that make int8 worth its errors. It is not known if some were not tried.
func (s *Sensitivity) leavesNothing() bool {
	heavy := 0
	for _, n := range s.Nodes {
		if !slices.Contains(heavyOperators, n.Operator) {
			continue
		}
		if heavy++; !slices.Contains(s.Exclude, n.Node) {
			return false
		}
	}
	return heavy > 0 && len(s.Nodes) >= s.Of
}

// quantization describes the variant for its remedy.
func (s *Sensitivity) quantization() remedy.Quantization {
	return remedy.Quantization{Variant: s.Variant, Unlike: s.Unlike, Quantize: s.Quantize, Exclude: s.Exclude, Unsuited: s.Unsuited, Unfinished: s.Unfinished}
}

// explain says of every failing int8 engine what its layers cost. Engines that were made
// alike share the answer. What cannot be found out is left out: the failure stands anyway.
func explain(ctx context.Context, v Session, found []VerifiedEngine) error {
	if v.Env.Sensitivity <= 0 || v.Env.Server != "" {
		return nil
	}
	answers := make(map[registry.Digest]*Sensitivity)
	calibration := sync.OnceValues(func() (run.Material, error) { return Calibration(ctx, v) })
	for i := range found {
		c := v.candidates[i]
		if !failsInNumbers(found[i].Parity) || c.Engine.Precision != validators.PrecisionInt8 {
			continue
		}
		made, ok := HowMade(v, c.Engine.Digest)
		if !ok || made.IsCompressed() || made.Quantizer == nil || made.Quantizer.Name != run.OnnxRuntime || v.Tools[run.OnnxRuntime].Quantizer == nil {
			continue
		}
		key, err := registry.CanonicalDigest(map[string]any{"made": made, "tool": c.Tool.Identity})
		if err != nil {
			return err
		}
		if _, ok := answers[key]; !ok {
			done := v.Env.Step("find what int8 costs " + c.Engine.Label())
			answers[key], err = sensitivity(ctx, v, c, made, calibration)
			done("", err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		found[i].Sensitivity = answers[key]
	}
	return nil
}

// failsInNumbers reports whether an engine fails by what it computes. Who ran it, and on what
// runtime, is not changed by leaving nodes in full precision.
func failsInNumbers(r evidence.ParityReport) bool {
	numbers := []string{validators.ReasonLimit, validators.ReasonAccuracy,
		validators.ReasonNewNaN, validators.ReasonNewInf}
	return r.Verdict == evidence.VerdictFail && slices.ContainsFunc(r.Reasons, func(why evidence.Reason) bool {
		return slices.Contains(numbers, why.Code)
	})
}

// HowMade reads a trusted builder's provenance of an engine.
func HowMade(v Session, engine registry.Digest) (run.Recipe, bool) {
	accepted, _ := evidence.Accept(v.Release, v.Claims)
	for _, c := range accepted {
		if c.Subject != engine || c.Statement.PredicateType != evidence.PredicateProvenance {
			continue
		}
		var said struct {
			BuildDefinition struct {
				InternalParameters struct {
					Made run.Recipe `json:"made"`
				} `json:"internalParameters"`
			} `json:"buildDefinition"`
		}
		err := registry.DecodeSigned(c.Statement.Predicate, &said)
		return said.BuildDefinition.InternalParameters.Made, err == nil
	}
	return run.Recipe{}, false
}

// sensitivity finds out as much as it can in the time that there is.
func sensitivity(ctx context.Context, v Session, c run.Candidate, made run.Recipe, calibration fetchOnce) (*Sensitivity, error) {
	limited, cancel := context.WithTimeout(ctx, v.Env.Sensitivity)
	defer cancel()
	s := &Sensitivity{Variant: c.Engine.Variant}
	err := findSensitivity(limited, v, c, made, calibration, s)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		s.Unfinished, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func pathsOf(inputs []toolchain.Input) (paths []string) {
	for _, in := range inputs {
		paths = append(paths, in.Path)
	}
	return paths
}

func findSensitivity(ctx context.Context, v Session, c run.Candidate, made run.Recipe, calibration fetchOnce, s *Sensitivity) error {
	a, err := NewAnalysis(v, c, made, calibration)
	if err != nil {
		return err
	}
	if data, err := calibration(); err == nil { // methods without one have none
		if s.Unlike, err = cases.Unlike(pathsOf(data.Inputs(toolchain.RoleCases)), pathsOf(v.Cases.Inputs(toolchain.RoleCases)), v.Iface); err != nil {
			return err
		}
	}
	// Half of the time is for single nodes, so that some is left to try lists of them.
	outcome, _, err := a.Quantize(ctx, map[string]any{"sensitivity": v.Env.Sensitivity.Seconds() / 2},
		v.Cases.Inputs(toolchain.RoleCases)...)
	if err != nil {
		return err
	}
	var result struct {
		Sensitivity struct {
			SNR   evidence.Figure `json:"snr_db"`
			Of    int             `json:"of"`
			Nodes []struct {
				Node     string          `json:"node"`
				Operator string          `json:"operator"`
				SNR      evidence.Figure `json:"snr_db"`
			} `json:"nodes"`
		} `json:"sensitivity"`
	}
	if err := json.Unmarshal(outcome.Result, &result); err != nil {
		return registry.Errorf(registry.CodeInternal, "result of quantize: %w", err)
	}
	s.SNRdB, s.Of = result.Sensitivity.SNR, result.Sensitivity.Of
	for _, n := range result.Sensitivity.Nodes {
		s.Nodes = append(s.Nodes, GraphNodeSensitivity{n.Node, n.Operator, n.SNR})
	}
	s.Unfinished = len(s.Nodes) < s.Of
	err = a.propose(ctx, s)
	if s.leavesNothing() {
		s.Unsuited, s.Exclude = true, nil
	}
	if s.Exclude != nil {
		s.Quantize = specQuantize(made.Quantize, c.Engine.Target, s.Exclude).Flow()
	}
	return err
}
