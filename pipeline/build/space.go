package build

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// worthSaying is from which need on the space of a build is announced.
const worthSaying = 1 << 30

// checkSpace says what the build may take before its first step, and refuses to begin
// what cannot end.
func checkSpace(ctx context.Context, env *run.Env, build Prepared) error {
	if env.Space == nil {
		return nil
	}
	space, err := env.Space(ctx)
	if err != nil {
		return err
	}
	need := build.space()
	text := fmt.Sprintf("may take %s, %s free in %s", gibibytes(need), gibibytes(space.Free), space.Where)
	if need > space.Free {
		return registry.WithHint(registry.Errorf(registry.CodeFull, "the build %s: nothing was begun", text),
			"free space there, or name other places with TMPDIR, MLPROMOTE_CACHE and --data; mlpromote cache prune removes finished steps")
	}
	if need >= worthSaying {
		env.Step("space for the build")(text, nil)
	}
	return nil
}

// space is what the build may take: the reference, and for each way to quantize and to
// compile a model of that precision, and the layer of its image form. What engines share is stored once, and what steps,
// cache and registry share is linked where they are on one file system.
func (b Prepared) space() int64 {
	model := run.SizeOf(b.Inputs.Model)
	need := model
	seen := make(map[string]bool)
	add := func(what string, options map[string]any, precision string, size float64) {
		key, err := registry.CanonicalDigest(map[string]any{"what": what, "options": options, "precision": precision})
		if err == nil && !seen[string(key)] {
			seen[string(key)] = true
			need += int64(float64(model) * size)
		}
	}
	for _, e := range b.Plan.Engines {
		for i := range e.Compress {
			add("compress", map[string]any{"steps": e.Compress[:i+1], "student": e.Student}, validators.PrecisionFP32, 1)
		}
		if e.Quantize != nil {
			add("quantize", e.Quantize, e.Precision, sizeOf(e.Precision))
		}
		size := sizeOf(e.Precision)
		if b.Inputs.Quantized != "" && e.Quantize == nil && e.From != plan.FromSource {
			size = 1 // the model has this precision already
		}
		options := map[string]any{"quantize": e.Quantize, "compile": e.Compile}
		add("compile "+e.Toolchain.Name, options, e.Precision, size)
		add("image "+e.Toolchain.Name, options, e.Precision, size) // equal files have one layer
	}
	return need
}

// sizeOf is the size of a model of a precision, as a part of the same one in fp32.
func sizeOf(precision string) float64 {
	numbers, _ := artifact.NumberFormat(precision)
	switch numbers {
	case validators.PrecisionFP16:
		return 0.5
	case validators.PrecisionInt8:
		return 0.25
	case validators.PrecisionInt4:
		return 0.15 // with the scales of its blocks
	}
	return 1
}

func gibibytes(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
