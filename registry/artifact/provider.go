package artifact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Provider is an ONNX Runtime execution provider that an engine is for, with its options. In
// JSON, a provider without options is only its name.
type Provider struct {
	Name    string            `json:"name"`              // "CPUExecutionProvider"
	Options map[string]string `json:"options,omitempty"` // as ONNX Runtime takes them: "num_of_threads": "4"
}

// ProvidersOf returns providers with these names and without options.
func ProvidersOf(names ...string) []Provider {
	var all []Provider
	for _, name := range names {
		all = append(all, Provider{Name: name})
	}
	return all
}

// Limits of provider options.
const (
	maxProviderOptions = 32
	maxProviderOption  = 256 // bytes of a value
)

var (
	// providerName matches ONNX Runtime's names of execution providers.
	providerName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,40}ExecutionProvider$`)
	providerOption = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,63}$`)
)

// hostOptions are options whose value is a memory address of the process, or code to load. See
// https://onnxruntime.ai/docs/execution-providers, for CUDA, TensorRT and OpenVINO.
var hostOptions = []string{
	"user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache",
	"context", "trt_extra_plugin_lib_paths",
}

// Validate checks the name and the form of the options. Only the provider itself can check what
// the options mean. Errors: CodeInvalid.
func (p Provider) Validate() error {
	if !providerName.MatchString(p.Name) {
		return registry.Errorf(registry.CodeInvalid,
			"execution provider %q: want a name that ONNX Runtime uses, such as CPUExecutionProvider", p.Name)
	}
	if len(p.Options) > maxProviderOptions {
		return registry.Errorf(registry.CodeInvalid, "%s has %d options: want at most %d", p.Name, len(p.Options), maxProviderOptions)
	}
	for _, key := range registry.SortedKeys(p.Options) {
		value := p.Options[key]
		odd := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
		switch {
		case p.Name == "CPUExecutionProvider":
			return registry.Errorf(registry.CodeInvalid, "%s has option %s, but takes no options: remove them", p.Name, key)
		case !providerOption.MatchString(key):
			return registry.Errorf(registry.CodeInvalid, "%s: option %q: want a name of letters, digits, '_' and '.', at most 64", p.Name, key)
		case slices.Contains(hostOptions, key):
			return registry.Errorf(registry.CodeInvalid,
				"%s: option %s is a memory address or code of one process: remove it, engines cannot set it", p.Name,
				key)
		case value == "" || len(value) > maxProviderOption || odd:
			return registry.Errorf(registry.CodeInvalid, "%s: option %s is %q: want 1 to %d printable characters", p.Name, key, value,
				maxProviderOption)
		case strings.ContainsAny(value, `/\`):
			return registry.Errorf(registry.CodeInvalid,
				"%s: option %s is %q, which is a file path: remove it, engines cannot bring files for their provider",
				p.Name, key, value)
		}
	}
	return nil
}

// String returns the provider for people: "OpenVINOExecutionProvider (num_of_threads=4)".
func (p Provider) String() string {
	if len(p.Options) == 0 {
		return p.Name
	}
	var asked []string
	for _, key := range registry.SortedKeys(p.Options) {
		asked = append(asked, key+"="+p.Options[key])
	}
	return p.Name + " (" + strings.Join(asked, ", ") + ")"
}

// plainProvider is a Provider with the default JSON encoding.
type plainProvider Provider

// MarshalJSON writes the name, or the name and the options.
func (p Provider) MarshalJSON() ([]byte, error) {
	if len(p.Options) == 0 {
		return json.Marshal(p.Name)
	}
	return json.Marshal(plainProvider(p))
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses longer forms of the same provider.
// Errors: CodeInvalid for options that [Provider.Validate] refuses.
func (p *Provider) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*p = Provider{}
		return json.Unmarshal(data, &p.Name)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	var read plainProvider
	if err := strict.Decode(&read); err != nil {
		return err
	}
	if len(read.Options) == 0 {
		return registry.Errorf(registry.CodeInvalid, "execution provider %q: want only its name, because it has no options", read.Name)
	}
	*p = Provider(read)
	return p.Validate()
}
