package artifact

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// LoadProfile says how a runtime loads an engine: with which options, and in which environment.
// The zero LoadProfile is the runtime's own defaults, which is what a plain load does. It is
// version 1 of the document load-profile.json, and is stored as [registry.CanonicalJSON].
type LoadProfile struct {
	V       int    `json:"v"`
	Runtime string `json:"runtime"` // the toolchain whose runtime takes the options: "onnxruntime"
	// Options are by the runtime's own names, with values as text:
	// "graph_optimization_level": "disable_all". [LoadOptions] lists those of a runtime.
	Options map[string]string `json:"options"`
	// Env is what must be set in the environment of the process before it loads the runtime.
	Env map[string]string `json:"env"`
	// Required is true if the engine keeps its limits only with this profile: nodes must load it
	// with the profile, and a plain load that gives wrong values is no failure.
	Required bool `json:"required,omitempty"`
}

// LoadProfileFile is the name of the file of an engine with its load profile.
const LoadProfileFile = "load-profile.json"

// The version of load profiles, and limits on what is read.
const (
	loadProfileVersion = 1
	maxLoadProfile     = 16 << 10 // bytes of a document
	maxLoadEntries     = 32       // options, and variables
	maxLoadValue       = 128      // bytes
)

var (
	loadRuntime = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	loadOption  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,79}$`)
	// loadValue matches numbers, words and lists of them. No file path matches: a profile must
	// not make a process read or write a file.
	loadValue    = regexp.MustCompile(`^[A-Za-z0-9_+-][A-Za-z0-9_.,:;=+-]*$`)
	loadVariable = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// IsZero reports whether the profile is the runtime's own defaults.
func (p LoadProfile) IsZero() bool {
	return p.V == 0 && p.Runtime == "" && len(p.Options) == 0 && len(p.Env) == 0 && !p.Required
}

// NewLoadProfile returns the profile with these options and variables for a runtime. Without
// any of them it is the zero LoadProfile. Errors: those of [LoadProfile.Validate]; CodeInvalid
// for a profile that is required and sets nothing.
func NewLoadProfile(runtime string, options, env map[string]string, required bool) (LoadProfile, error) {
	if len(options)+len(env) == 0 && !required {
		return LoadProfile{}, nil
	}
	p := LoadProfile{V: loadProfileVersion, Runtime: runtime, Options: map[string]string{}, Env: map[string]string{}, Required: required}
	maps.Copy(p.Options, options)
	maps.Copy(p.Env, env)
	return p, p.Validate()
}

// ParseLoadProfile reads a document that [LoadProfile.Document] wrote. Errors: CodeInvalid for
// anything else, also for the same content in other bytes, and for what
// [LoadProfile.Validate] refuses.
func ParseLoadProfile(data []byte) (LoadProfile, error) {
	if len(data) > maxLoadProfile {
		return LoadProfile{}, registry.Errorf(registry.CodeInvalid, "load profile: %d bytes: want at most %d", len(data), maxLoadProfile)
	}
	var p LoadProfile
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&p); err != nil {
		return LoadProfile{}, registry.Errorf(registry.CodeInvalid, "load profile: %w", err)
	}
	if _, err := strict.Token(); err != io.EOF {
		return LoadProfile{}, registry.Errorf(registry.CodeInvalid, "load profile: something follows the document")
	}
	if err := p.Validate(); err != nil {
		return LoadProfile{}, err
	}
	canonical, err := registry.CanonicalJSON(p)
	if err == nil && !bytes.Equal(canonical, data) {
		err = registry.Errorf(registry.CodeInvalid, "load profile: it is not written canonically (RFC 8785): want %.200s", canonical)
	}
	if err != nil {
		return LoadProfile{}, err
	}
	return p, nil
}

// Document returns the bytes of load-profile.json. Errors: those of [LoadProfile.Validate].
func (p LoadProfile) Document() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return registry.CanonicalJSON(p)
}

// Digest returns the digest of the document. Errors: those of [LoadProfile.Validate].
func (p LoadProfile) Digest() (registry.Digest, error) {
	document, err := p.Document()
	if err != nil {
		return "", err
	}
	return digest.FromBytes(document), nil
}

// Validate checks version, names and values. Only the runtime itself can check what a value
// means. Errors: CodeInvalid; for an unknown option of a known runtime it lists the known ones.
func (p LoadProfile) Validate() error {
	switch {
	case p.V != loadProfileVersion:
		return registry.Errorf(registry.CodeInvalid, "load profile: version %d: want %d", p.V, loadProfileVersion)
	case len(p.Runtime) > 64 || !loadRuntime.MatchString(p.Runtime):
		return registry.Errorf(registry.CodeInvalid, "load profile: runtime %.80q: want a name such as onnxruntime", p.Runtime)
	case p.Options == nil || p.Env == nil:
		return registry.Errorf(registry.CodeInvalid, `load profile: options or env is missing: want an object, {} for none`)
	case len(p.Options)+len(p.Env) == 0:
		return registry.Errorf(registry.CodeInvalid, "load profile: it sets no option and no variable: leave the profile out")
	case len(p.Options) > maxLoadEntries || len(p.Env) > maxLoadEntries:
		return registry.Errorf(registry.CodeInvalid, "load profile: %d options and %d variables: want at most %d of each",
			len(p.Options), len(p.Env), maxLoadEntries)
	}
	for _, name := range registry.SortedKeys(p.Options) {
		if err := p.checkOption(name, p.Options[name]); err != nil {
			return err
		}
	}
	for _, name := range registry.SortedKeys(p.Env) {
		if err := CheckLoadVariable(name, p.Env[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkOption checks an option of the runtime.
func (p LoadProfile) checkOption(name, value string) error {
	if !loadOption.MatchString(name) {
		return registry.Errorf(registry.CodeInvalid, "load profile: option %.100q: want a name of letters, digits, '_' and '.', at most 80", name)
	}
	known := LoadOptions(p.Runtime)
	if len(known) > 0 && !slices.Contains(known, name) {
		return registry.Errorf(registry.CodeInvalid, "load profile: %s has no option %s: want some of %s", p.Runtime, name, strings.Join(known, ", "))
	}
	if err := checkLoadValue("option "+name, value); err != nil {
		return err
	}
	runtime, _ := toolchains.Find(p.Runtime)
	if want, ok := runtime.Options[name]; ok && !want.Takes(value) {
		return registry.Errorf(registry.CodeInvalid, "load profile: option %s is %q: want %s", name, value, want.Text)
	}
	return nil
}

// CheckLoadVariable checks an environment variable of a profile. Only those of runtimes and their libraries
// of kernels pass, and of those none that names a file or a library: such a variable could run
// other code in every process that follows the profile. Errors: CodeInvalid.
func CheckLoadVariable(name, value string) error {
	if !loadVariable.MatchString(name) {
		return registry.Errorf(registry.CodeInvalid, "load profile: variable %.80q: want upper-case letters, digits and '_', at most 64", name)
	}
	if !slices.ContainsFunc(loadVariablePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return registry.Errorf(registry.CodeInvalid, "load profile: variable %s: want one of a runtime, which begins with %s",
			name, strings.Join(loadVariablePrefixes, ", "))
	}
	for _, word := range loadVariableWords {
		if strings.Contains(name, word) {
			return registry.Errorf(registry.CodeInvalid, "load profile: variable %s can name a file or code (it contains %s): remove it", name, word)
		}
	}
	return checkLoadValue("variable "+name, value)
}

func checkLoadValue(what, value string) error {
	if len(value) > maxLoadValue || !loadValue.MatchString(value) {
		return registry.Errorf(registry.CodeInvalid,
			"load profile: %s is %.150q: want 1 to %d letters, digits and . , : ; = + - _, and no file path", what, value, maxLoadValue)
	}
	return nil
}

// String returns the profile for people: "graph_optimization_level=disable_all, OMP_NUM_THREADS=1
// in the environment", or "runtime default".
func (p LoadProfile) String() string {
	var said []string
	for _, name := range registry.SortedKeys(p.Options) {
		said = append(said, name+"="+p.Options[name])
	}
	for _, name := range registry.SortedKeys(p.Env) {
		said = append(said, name+"="+p.Env[name]+" in the environment")
	}
	if len(said) == 0 {
		return LoadDefault
	}
	return strings.Join(said, ", ")
}
