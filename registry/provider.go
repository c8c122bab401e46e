package registry

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Provider is an execution provider of ONNX Runtime that an engine is for, with what is
// asked of it. In JSON one that is asked for nothing is its name alone.
type Provider struct {
	Name    string            `json:"name"`              // "CPUExecutionProvider"
	Options map[string]string `json:"options,omitempty"` // as ONNX Runtime takes them: "num_of_threads": "4"
}

// ProvidersOf are providers of these names that are asked for nothing.
func ProvidersOf(names ...string) []Provider {
	var all []Provider
	for _, name := range names {
		all = append(all, Provider{Name: name})
	}
	return all
}

// Bounds of what is asked of a provider.
const (
	maxProviderOptions = 32
	maxProviderOption  = 256 // bytes of a value
)

var (
	// providerName is what ONNX Runtime calls an execution provider.
	providerName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,40}ExecutionProvider$`)
	providerOption = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,63}$`)
)

// hostOptions are those whose value is an address in the memory of the process, or code to
// load: https://onnxruntime.ai/docs/execution-providers, for CUDA, TensorRT and OpenVINO.
var hostOptions = []string{
	"user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache", "context", "trt_extra_plugin_lib_paths",
}

// Validate checks that the provider can be asked for that, as far as it can be known
// without it: what its options mean it says itself. Errors: CodeInvalid.
func (p Provider) Validate() error {
	if !providerName.MatchString(p.Name) {
		return Errorf(CodeInvalid, "execution provider %q: want ONNX Runtime's name of it, such as CPUExecutionProvider", p.Name)
	}
	if len(p.Options) > maxProviderOptions {
		return Errorf(CodeInvalid, "%s has %d options: want at most %d", p.Name, len(p.Options), maxProviderOptions)
	}
	for _, key := range sortedKeys(p.Options) {
		value := p.Options[key]
		odd := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
		switch {
		case p.Name == "CPUExecutionProvider":
			return Errorf(CodeInvalid, "%s has option %s, and takes none: remove its options", p.Name, key)
		case !providerOption.MatchString(key):
			return Errorf(CodeInvalid, "%s: option %q: want a name of letters, digits, '_' and '.', at most 64", p.Name, key)
		case slices.Contains(hostOptions, key):
			return Errorf(CodeInvalid, "%s: option %s is an address or code of one process: no engine may ask for it", p.Name, key)
		case value == "" || len(value) > maxProviderOption || odd:
			return Errorf(CodeInvalid, "%s: option %s is %q: want 1 to %d printable characters", p.Name, key, value, maxProviderOption)
		case strings.ContainsAny(value, `/\`):
			return Errorf(CodeInvalid, "%s: option %s is %q, which names a file: an engine brings no files for its provider, and a node has none", p.Name, key, value)
		}
	}
	return nil
}

// String is the provider for people: "OpenVINOExecutionProvider (num_of_threads=4)".
func (p Provider) String() string {
	if len(p.Options) == 0 {
		return p.Name
	}
	var asked []string
	for _, key := range sortedKeys(p.Options) {
		asked = append(asked, key+"="+p.Options[key])
	}
	return p.Name + " (" + strings.Join(asked, ", ") + ")"
}

// plainProvider is a Provider as encoding/json reads and writes it by itself.
type plainProvider Provider

// MarshalJSON writes a name, or name and options.
func (p Provider) MarshalJSON() ([]byte, error) {
	if len(p.Options) == 0 {
		return json.Marshal(p.Name)
	}
	return json.Marshal(plainProvider(p))
}

// UnmarshalJSON reads what MarshalJSON writes, and nothing that could be written shorter.
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
		return Errorf(CodeInvalid, "execution provider %q: want its name alone, since it has no options", read.Name)
	}
	*p = Provider(read)
	return p.Validate()
}
