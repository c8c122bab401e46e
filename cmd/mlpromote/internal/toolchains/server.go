package toolchains

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/serving"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// RunServer is the child process that starts a model server and sends it cases. It returns the exit code.
func RunServer(ctx context.Context, in io.Reader, out io.Writer) int {
	return serving.Main(ctx, in, out)
}

// through starts the model server of a name with an engine. Its manifest is servers/NAME.yaml in the folder of manifests. Errors: CodeInvalid for a
// manifest that is not understood, or a name that a toolchain has; CodeNotFound if there is none; CodeUnavailable if its program is not there or
// does not get ready.
func (c Config) through(ctx context.Context, name string, engine []toolchain.Input, iface validators.Interface, cases toolchain.Input, scratch string) (toolchain.Served, error) {
	opened, err := c.server(ctx, name)
	if err != nil {
		return toolchain.Served{}, err
	}
	return opened.Probe(ctx, iface, engine, cases, scratch)
}

// server reads the manifest of a server and finds its program.
func (c Config) server(ctx context.Context, name string) (*manifest.OpenedServer, error) {
	s, err := c.Server(name)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, manifest.Options{Private: c.Private})
}

// Server reads the manifest of a server, and starts nothing. Errors: CodeInvalid for a manifest that is not understood, or a name that a toolchain has;
// CodeNotFound if there is none.
func (c Config) Server(name string) (manifest.Server, error) {
	if c.Manifests == "" {
		return manifest.Server{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "--through %s: no folder of manifests is named", name),
			"--toolchains DIR names it; the server is described in DIR/%s/%s.yaml (docs/how-to/servers.md)", manifest.ServerFolder, name)
	}
	known, err := manifest.Servers(c.Manifests)
	if err != nil {
		return manifest.Server{}, registry.Errorf(registry.CodeInvalid, "--toolchains: %w", err)
	}
	if !slices.Contains(known, name) {
		have := "there is none"
		if len(known) > 0 {
			have = "there are " + strings.Join(known, ", ")
		}
		return manifest.Server{}, registry.Errorf(registry.CodeNotFound, "no manifest of a server %q%s in %s: %s", name, registry.Suggest(name, known),
			filepath.Join(c.Manifests, manifest.ServerFolder), have)
	}
	path := filepath.Join(c.Manifests, manifest.ServerFolder, name+manifestSuffix)
	s, err := manifest.LoadServer(path)
	if err != nil {
		return manifest.Server{}, err
	}
	if s.Name != name {
		return manifest.Server{}, registry.Errorf(registry.CodeInvalid, "%s: name is %q: want the name of the file, %q", path, s.Name, name)
	}
	toolchains, err := c.manifests()
	if err != nil {
		return manifest.Server{}, err
	}
	if slices.Contains(append(toolchains, drivers.Names()...), name) {
		return manifest.Server{}, registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s: there is a toolchain %s, and reports of the two could not be told apart", path, name),
			"give the server another name")
	}
	return s, nil
}
