package diagnose

import (
	"context"
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// LayerCosts are what the quantization of each layer costs the outputs of a model, measured by ONNX Runtime
// on the cases of the release.
type LayerCosts struct {
	SNRdB evidence.Figure `json:"snrDb"` // with everything quantized
	Nodes []LayerCost     `json:"nodes"` // in the order of the graph
	// Unfinished is true where the time ran out: nodes lack some figures.
	Unfinished bool `json:"unfinished,omitempty"`
}

// LayerCost is the ratio of signal to noise of the outputs, in dB, with parts of the model quantized. A nil
// figure was not measured.
type LayerCost struct {
	Node       string           `json:"node"`
	Operator   string           `json:"operator"`
	Cumulative *evidence.Figure `json:"cumulativeDb,omitempty"` // it, and all before it
	Alone      *evidence.Figure `json:"aloneDb,omitempty"`      // it alone
	Without    *evidence.Figure `json:"withoutDb,omitempty"`    // all but it; absent too where it is the only one
}

// hasLayerCosts refuses an engine whose layers were not quantized by what can quantize each alone. Errors: CodeInvalid.
func hasLayerCosts(c run.Candidate, made run.Recipe) error {
	method, _ := made.Quantize["method"].(string)
	if made.IsCompressed() || made.Quantizer == nil || made.Quantizer.Name != run.OnnxRuntime || method != plan.MethodStatic && method != plan.MethodDynamic {
		return registry.Errorf(registry.CodeInvalid,
			"%s: the cost of each layer can be found for engines that %s quantized to int8, and no others: leave out --layers",
			c.Engine.Label(), run.OnnxRuntime)
	}
	return nil
}

// layerCosts measures an engine that ONNX Runtime's quantizer made int8. Errors: CodeInvalid for another one.
func layerCosts(ctx context.Context, v verify.Session, c run.Candidate, made run.Recipe, limit time.Duration) (_ *LayerCosts, err error) {
	ctx, done := v.Env.Report().StepIn(ctx, "find what the layers of "+c.Engine.Label()+" cost")
	defer func() { done("", err) }()
	a, err := verify.NewAnalysis(v, c, made, func() (run.Material, error) { return verify.Calibration(ctx, v) })
	if err != nil {
		return nil, err
	}
	outcome, _, err := a.Quantize(ctx, map[string]any{"layers": limit.Seconds()}, v.Cases.Inputs(toolchain.RoleCases)...)
	if err != nil {
		return nil, err
	}
	var said struct {
		Layers struct {
			SNR   evidence.Figure `json:"snr_db"`
			Nodes []struct {
				Node       string           `json:"node"`
				Operator   string           `json:"operator"`
				Cumulative *evidence.Figure `json:"cumulative_db"`
				Alone      *evidence.Figure `json:"alone_db"`
				Without    *evidence.Figure `json:"without_db"`
			} `json:"nodes"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(outcome.Result, &said); err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "result of quantize: %w", err)
	}
	costs := &LayerCosts{SNRdB: said.Layers.SNR, Nodes: []LayerCost{}}
	for _, n := range said.Layers.Nodes {
		costs.Nodes = append(costs.Nodes, LayerCost(n))
		costs.Unfinished = costs.Unfinished || n.Cumulative == nil || n.Alone == nil || n.Without == nil && len(said.Layers.Nodes) > 1
	}
	return costs, nil
}
