package manifest

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Args returns the arguments with which the program must call [Main]. The first is its own
// name.
func Args() []string { return []string{"mlpromote", "driver", "command"} }

// versionTime is how long a tool may take to print its version.
const versionTime = 30 * time.Second

// Options say how the child is started.
type Options struct {
	Executable string            // the program whose Args lead to Main; empty means this one
	Budget     driverproc.Budget // of one job; zero fields have large defaults
	// Private are folders that no tool may see: the data directory and the keys. They need not
	// exist.
	Private []string
}

// New returns the driver of a manifest. It reads the files of the tool, and runs it once to get
// its version, in the sandbox of jobs. Errors: CodeUnavailable if the tool does not exist or
// prints no version; CodeInvalid if inputs of the manifest are missing or too many, or if the
// tool could see private folders.
func New(ctx context.Context, m Manifest, o Options) (toolchain.Driver, error) {
	path, err := lookUp(m.Executable)
	if err != nil {
		return nil, registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "%s: %w", m.Name, err),
			"install it under its licence (%s), or name its path in the manifest", m.Licence)
	}
	t, err := consists{m.Folder, m.Inputs}.examine(path, o.Private)
	if err != nil {
		code := registry.CodeUnavailable
		if registry.HasCode(err, registry.CodeInvalid) {
			code = registry.CodeInvalid
		}
		return nil, registry.Errorf(code, "%s: %w", m.Name, err)
	}
	lock, err := t.digest()
	if err != nil {
		return nil, err
	}
	version, err := m.version(ctx, path, t.shown)
	if err != nil {
		return nil, err
	}
	binary, _, err := toolchain.HashFile(path)
	if err != nil {
		return nil, registry.Lastingf(registry.CodeUnavailable, "%s: %w", m.Name, err)
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return nil, registry.Lastingf(registry.CodeUnavailable, "find this program, to start it as a driver: %w", err)
		}
	}
	return driver{o, m, path, t, toolchain.Identity{
		Name: m.Name, Version: version, Lock: lock, Adopted: true, Code: driverproc.CodeDigest(m.text), LibraryDigest: binary,
		Versions: map[string]string{m.Name: version},
	}}, nil
}

// version returns the version of the tool.
func (m Manifest) version(ctx context.Context, path string, shown []string) (string, error) {
	version := m.Version.Stated
	if version == "" {
		var err error
		if version, err = m.ask(ctx, path, shown); err != nil {
			return "", err
		}
	}
	if (artifact.Constraint{Exact: version}).Validate() != nil {
		return "", registry.Lastingf(registry.CodeUnavailable,
			"%s: version %q: want numbers separated by dots", m.Name, version)
	}
	return version, nil
}

// ask runs the tool for its version. It ignores the exit status, because many tools print the
// version in their help text or in an error about a missing argument.
func (m Manifest) ask(ctx context.Context, path string, shown []string) (string, error) {
	program := driverproc.Program{Name: m.Name, Path: path, Args: append([]string{path}, m.Version.Arguments...), Reads: shown}
	out, err := driverproc.Query(ctx, program, versionTime)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	found := regexp.MustCompile(m.Version.Pattern).FindStringSubmatch(out)
	if found == nil {
		failed := ""
		if err != nil {
			failed = " (" + err.Error() + ")"
		}
		return "", registry.Lastingf(registry.CodeUnavailable, "%s: %s %s printed no version that matches %q%s: %.200q",
			m.Name, path, strings.Join(m.Version.Arguments, " "), m.Version.Pattern, failed, strings.TrimSpace(out))
	}
	return strings.Join(found[1:], "."), nil
}

// Profile returns the properties of the tool's engines.
func (m Manifest) Profile() toolchain.Profile {
	server := ""
	if m.Run != nil {
		server = m.Run.Through
	}
	return toolchain.Profile{
		Server: server, Name: m.Name, Format: m.Engine.Format, Entry: m.Engine.Entry,
		CompileOnly: m.Run == nil, OwnRunner: m.Run != nil, NativeCode: m.Engine.NativeCode, ExactRuntime: m.Engine.ExactRuntime, CompileOptions: m.options,
		NeedsDevice: m.Compile.Device,
	}
}

// options returns the arguments with the placeholders replaced by fields of the target.
func (m Manifest) options(t artifact.Target, _ string) (map[string]any, error) {
	var known []string
	for _, name := range m.TiedTo {
		value := fields[name](t)
		if value == "" {
			return nil, registry.Errorf(registry.CodeInvalid,
				"target %s: an engine of %s needs %s, which the target does not set", t.Name, m.Name, name)
		}
		if called, ok := m.Values[name]; ok {
			given := value
			if value, ok = called[given]; !ok {
				return nil, registry.Errorf(registry.CodeInvalid, "target %s: %s compiles for %s %s, not %q",
					t.Name, m.Name, name, strings.Join(slices.Sorted(maps.Keys(called)), ", "), given)
			}
		}
		known = append(known, "{"+name+"}", value)
	}
	replacer := strings.NewReplacer(known...)
	arguments := make([]string, len(m.Compile.Arguments))
	for i, a := range m.Compile.Arguments {
		arguments[i] = replacer.Replace(a)
	}
	options := map[string]any{"arguments": arguments, "outputs": m.Engine.Outputs, "licence": m.Licence}
	if len(m.Engine.Discards) > 0 {
		options["discards"] = m.Engine.Discards
	}
	if m.Tuning != "" {
		options["tuning"] = m.Tuning
	}
	return options, nil
}

// Digest returns the digest of the manifest.
func (m Manifest) Digest() registry.Digest { return digest.FromBytes(m.text) }

type driver struct {
	Options
	manifest Manifest
	path     string // of the tool
	made     *made
	identity toolchain.Identity
}

func (d driver) Identity(context.Context) (toolchain.Identity, error) { return d.identity, nil }

// Do compiles. A manifest has no other verb.
func (d driver) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if job.Verb != toolchain.VerbCompile {
		return toolchain.Outcome{}, registry.Lastingf(registry.CodeUnavailable,
			"%s is described by a manifest, which only says how to compile, not how to %s", d.manifest.Name, job.Verb)
	}
	program := driverproc.Program{Name: d.manifest.Name, Path: d.Executable, Args: Args(), Library: d.path, Reads: d.made.shown}
	outcome, err := driverproc.Do(ctx, program, d.Budget, job, outDir)
	if file := d.made.changed(); err == nil && file != "" {
		return toolchain.Outcome{}, registry.Errorf(registry.CodeUnavailable,
			"%s: %s changed while the tool ran, so its result has no known version: build again", d.manifest.Name, file)
	}
	return outcome, err
}
