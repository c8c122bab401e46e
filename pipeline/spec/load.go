package spec

import (
	"maps"
	"path"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Loading says how nodes load the engines of a variant or target, where that is not as the runtime
// does by itself.
type Loading struct {
	Options  Settings `yaml:"options" doc:"Options of the runtime by its own names, such as graph_optimization_level: disable_all"`
	Env      Settings `yaml:"env" doc:"Environment variables of the process that loads the engine, such as OMP_NUM_THREADS: 1"`
	Required bool     `yaml:"required" doc:"Nodes keep to this: a plain load that fails or gives wrong values is then no failure of the engine"`
}

// Settings are texts, numbers and booleans by name, as they are written.
type Settings map[string]string

// DecodeYAML reads the mapping.
func (s *Settings) DecodeYAML(n *strictyaml.Node) { (*ProviderOptions)(s).DecodeYAML(n) }

// over gives the settings of l, and those of base that l does not have. Both can be nil.
func (l *Loading) over(base *Loading) Loading {
	merged := Loading{Options: Settings{}, Env: Settings{}}
	for _, from := range []*Loading{base, l} {
		if from == nil {
			continue
		}
		maps.Copy(merged.Options, from.Options)
		maps.Copy(merged.Env, from.Env)
		merged.Required = merged.Required || from.Required
	}
	return merged
}

// LoadProfile returns how nodes load a variant's engine for a target: what the variant says, and
// else what the target says. It is nil where neither says anything. Errors: CodeInvalid for
// options that the target's toolchain does not have.
func (t Target) LoadProfile(v Variant) (*artifact.LoadProfile, error) {
	if t.Load == nil && v.Load == nil {
		return nil, nil
	}
	said := v.Load.over(t.Load)
	profile, err := artifact.NewLoadProfile(t.Toolchain.Name, said.Options, said.Env, said.Required)
	if err != nil || profile.IsZero() {
		return nil, err
	}
	return &profile, nil
}

// checkLoad checks the load profile of every engine, once for each key that it comes from.
func (c checker) checkLoad() {
	noted := make(map[string]bool)
	note := func(err error, place ...any) {
		if err != nil && !noted[err.Error()] {
			noted[err.Error()] = true
			c.report(err, place...)
		}
	}
	for i, t := range c.Targets {
		if t.Load != nil {
			_, err := t.LoadProfile(Variant{})
			note(err, "targets", i, "load")
		}
		for _, name := range t.Variants {
			for j, v := range c.Variants {
				if v.Name == name && v.Load != nil {
					_, err := t.LoadProfile(v)
					note(err, "variants", j, "load")
				}
			}
		}
	}
	for i, asset := range c.Assets {
		if path.Base(asset.Written) == artifact.LoadProfileFile {
			c.problem(at("assets", i), "asset %q has the name of the file with the load profile: rename it", asset.Written)
		}
	}
}
