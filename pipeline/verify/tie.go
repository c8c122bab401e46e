package verify

import (
	"cmp"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// reasonRuntime is the code of reasons about runtimes that an engine's target lets in.
const reasonRuntime = "runtime"

// judgeTied finds what is wrong with the target of an engine that another builder may have
// made: a pass here would let it reach nodes that cannot load it.
func judgeTied(c run.Candidate) ([]evidence.Reason, error) {
	profile := c.Tool.Profile
	for _, in := range c.Model.Inputs {
		if in.Name != c.Model.Entry || !profile.ONNXRuntime && c.Engine.Target.Accelerator == nil {
			continue
		}
		required, err := tie.Open(in.Path, profile.Reading.Tie)
		if err != nil {
			return nil, err
		}
		if why := cmp.Or(run.TooOld(c.Engine.Target, profile, required), run.NeedsDriver(c.Engine.Target, required)); why != "" {
			return []evidence.Reason{{Code: reasonRuntime, Message: why}}, nil
		}
	}
	return nil, nil
}
