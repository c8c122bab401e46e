package spec

import (
	"maps"

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

// ProviderOptions are texts, numbers and booleans by name, as they are written.
type ProviderOptions map[string]string

// DecodeYAML reads the mapping.
func (o *ProviderOptions) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping {
		n.Problemf("options is %s: want a mapping from names to texts, numbers or booleans", n.Kind())
	}
	*o = make(ProviderOptions)
	for _, e := range n.Entries() {
		if e.Value.Kind() != strictyaml.Scalar {
			e.Value.Problemf("option %s is %s: want a text, a number or a boolean", e.Key, e.Value.Kind())
		}
		(*o)[e.Key] = e.Value.Text()
	}
}
