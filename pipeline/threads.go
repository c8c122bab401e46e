package pipeline

import "mlpromote.dev/mlpromote/registry"

// hintThreads adds to the failures of engines, in their order, that threads of some runtimes wait for one another without
// sleeping, so that a machine that does other work runs them many times slower, and what keeps it from that.
func (v verification) hintThreads(engines []VerifiedEngine, failures []error) {
	for i, c := range v.candidates {
		profile, option := c.tool.Profile, c.tool.Profile.Spinning
		if failures[i] == nil || option == "" || !engines[i].late {
			continue
		}
		if load := c.engine.Load; load != nil && load.Options[option] != "" {
			continue
		}
		failures[i] = registry.WithHint(failures[i],
			"%s: %s takes many times as long on a machine that does other work: write load: {options: {%s: 1}} in its target (docs/toolchains/%s.md)",
			c.engine.Label(), profile.Name, option, profile.Name)
	}
}
