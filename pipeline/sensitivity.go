package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// Sensitivity is what int8 costs an engine that does not keep its limits, and what to do
// about it.
type Sensitivity struct {
	Variant string                 `json:"variant"`
	SNRdB   registry.Figure        `json:"snrDb"` // of the outputs with everything quantized; it and those of Nodes are what ONNX Runtime computes
	Nodes   []GraphNodeSensitivity `json:"nodes"` // costliest first
	Of      int                    `json:"of"`    // nodes that could be quantized; at most as many were tried
	// Unfinished is true where the time ran out: nodes are missing, or Exclude is, or it is
	// longer than it has to be.
	Unfinished bool `json:"unfinished,omitempty"`
	// Exclude are the nodes that have to stay in full precision so that the engine keeps its
	// limits of parity, those that the spec excludes already among them: it was built so
	// and compared on all cases. Empty where no part of the tried nodes suffices.
	Exclude []string `json:"exclude,omitempty"`
	// Unsuited is true where more than two thirds of the nodes would have to stay in full
	// precision: then little of the model is int8, and Exclude is empty.
	Unsuited bool `json:"unsuited,omitempty"`
	// Quantize is the spec's quantize of the variant with Exclude in it, as YAML.
	Quantize string `json:"quantize,omitempty"`
}

// GraphNodeSensitivity is a node, and the signal to noise ratio of the outputs when it alone is
// quantized.
type GraphNodeSensitivity struct {
	Node     string          `json:"node"`
	Operator string          `json:"operator"`
	SNRdB    registry.Figure `json:"snrDb"`
}

// costless is the ratio in dB from which on a node costs nothing.
const costless = 120

// Costs reports whether the node alone changes what the model gives.
func (n GraphNodeSensitivity) Costs() bool { return n.SNRdB < costless }

// hints adds to the failures of engines, in their order, what their sensitivity says to do:
// once for engines of which it says the same.
func hints(found []VerifiedEngine, failures []error) {
	said := make(map[string]bool)
	for i, e := range found {
		if e.Sensitivity == nil {
			continue
		}
		if hint := e.Sensitivity.hint(); !said[hint] {
			failures[i], said[hint] = registry.WithHint(failures[i], "%s", hint), true
		}
	}
}

// hint says what to do about the variant.
func (s *Sensitivity) hint() string {
	does := "leaving out single nodes does not suffice: try method dynamic, tool nncf with accuracy_aware, or fp16"
	switch {
	case s.Quantize != "" && !s.Unsuited:
		return fmt.Sprintf("variant %s keeps its limits with these nodes in full precision: write quantize: %s", s.Variant, s.Quantize)
	case s.Quantize == "" && s.Unfinished:
		does = "the time did not suffice to find the nodes that have to stay in full precision: give it more, such as --sensitivity 30m"
	case s.Unsuited:
		does = "this model does not take int8: more than two thirds of its graph nodes would have to stay in full precision: use fp16 or fp32, or try tool nncf with accuracy_aware"
	}
	return fmt.Sprintf("variant %s: %s", s.Variant, does)
}

// howMade is what provenance says of how an engine was compressed, quantized and compiled.
type howMade struct {
	Student    []plan.File         `json:"student,omitempty"`
	Compressor *registry.Toolchain `json:"compressor,omitempty"`
	Compress   []map[string]any    `json:"compress,omitempty"`
	Quantizer  *registry.Toolchain `json:"quantizer,omitempty"`
	Quantize   map[string]any      `json:"quantize,omitempty"`
	Compile    map[string]any      `json:"compile,omitempty"`
	From       string              `json:"from,omitempty"` // what was compiled: [plan.FromSource]; empty for the ONNX reference
}

// explain says of every failing int8 engine what its layers cost. Engines that were made
// alike share the answer. What cannot be found out is left out: the failure stands anyway.
func (v verification) explain(ctx context.Context, found []VerifiedEngine) error {
	if v.p.Sensitivity <= 0 {
		return nil
	}
	answers := make(map[registry.Digest]*Sensitivity)
	calibration := sync.OnceValues(func() (material, error) { return v.calibration(ctx) })
	for i := range found {
		c := v.candidates[i]
		if !failsInNumbers(found[i].Parity) || c.engine.Precision != validators.PrecisionInt8 {
			continue
		}
		made, ok := v.howMade(c.engine.Digest)
		if !ok || made.isCompressed() || made.Quantizer == nil || made.Quantizer.Name != onnxRuntime || v.tools[onnxRuntime].Quantizer == nil {
			continue
		}
		key, err := registry.CanonicalDigest(map[string]any{"made": made, "tool": c.tool.identity})
		if err != nil {
			return err
		}
		if _, ok := answers[key]; !ok {
			done := v.p.step("find what int8 costs " + c.engine.Label())
			answers[key], err = v.sensitivity(ctx, c, made, calibration)
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
func failsInNumbers(r registry.ParityReport) bool {
	numbers := []string{validators.ReasonLimit, validators.ReasonAccuracy,
		validators.ReasonNewNaN, validators.ReasonNewInf}
	return r.Verdict == registry.VerdictFail && slices.ContainsFunc(r.Reasons, func(why registry.Reason) bool {
		return slices.Contains(numbers, why.Code)
	})
}

// howMade reads a trusted builder's provenance of an engine.
func (v verification) howMade(engine registry.Digest) (howMade, bool) {
	accepted, _ := registry.Accept(v.release, v.claims)
	for _, c := range accepted {
		if c.Subject != engine || c.Statement.PredicateType != registry.PredicateProvenance {
			continue
		}
		var said struct {
			BuildDefinition struct {
				InternalParameters struct {
					Made howMade `json:"made"`
				} `json:"internalParameters"`
			} `json:"buildDefinition"`
		}
		err := registry.DecodeSigned(c.Statement.Predicate, &said)
		return said.BuildDefinition.InternalParameters.Made, err == nil
	}
	return howMade{}, false
}

// sensitivity finds out as much as it can in the time that there is.
func (v verification) sensitivity(ctx context.Context, c candidate, made howMade, calibration fetchOnce) (*Sensitivity, error) {
	limited, cancel := context.WithTimeout(ctx, v.p.Sensitivity)
	defer cancel()
	s := &Sensitivity{Variant: c.engine.Variant}
	err := v.findSensitivity(limited, c, made, calibration, s)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		s.Unfinished, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (v verification) findSensitivity(ctx context.Context, c candidate, made howMade, calibration fetchOnce, s *Sensitivity) error {
	a, err := v.analysis(c, made, calibration)
	if err != nil {
		return err
	}
	// Half of the time is for single nodes, so that some is left to try lists of them.
	outcome, _, err := a.quantize(ctx, map[string]any{"sensitivity": v.p.Sensitivity.Seconds() / 2},
		v.cases.inputs(toolchain.RoleCases)...)
	if err != nil {
		return err
	}
	var result struct {
		Sensitivity struct {
			SNR   registry.Figure `json:"snr_db"`
			Of    int             `json:"of"`
			Nodes []struct {
				Node     string          `json:"node"`
				Operator string          `json:"operator"`
				SNR      registry.Figure `json:"snr_db"`
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
	if s.Exclude != nil {
		s.Quantize = specQuantize(made.Quantize, c.engine.Target, s.Exclude).Flow()
	}
	return err
}
