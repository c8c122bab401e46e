// Package toolchains connects toolchains with the pipeline: what is installed, what takes the place of an install,
// what manifests describe, and the build cache.
package toolchains

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/ci"
	"mlpromote.dev/mlpromote/pipeline/origin"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/node"
)

// Config says where toolchains are, and what they must not read.
type Config struct {
	Manifests string   // folder of manifests of compilers; empty: none
	Private   []string // folders that specs and manifests must not name
	Getenv    func(name string) string
	UI        *ui.UI // shows what is installed
}

// Types of installs and of cached steps, for verbs that print them.
type (
	// Installer installs and finds toolchains.
	Installer = install.Installer
	// Found is an existing install.
	Found = install.Found
	// Status is the status of a toolchain on a machine.
	Status = install.Status
	// Kept is a cached build step.
	Kept = toolchain.Kept
)

// StateInstalled is the state of a toolchain that is installed.
const StateInstalled = install.StateInstalled

// Pipeline is a pipeline with the drivers and the description of this machine, and without a registry. m
// remembers what drivers do; nil remembers nothing. own are what takes the place of installs. missing is called
// for a toolchain that is not installed.
func (c Config) Pipeline(m *BuildCache, own Replacements, missing WhenMissing) *run.Env {
	var steps toolchain.Steps
	if m != nil {
		steps = m.steps
	}
	return &run.Env{
		Toolchain: c.drivers(missing, steps, own), ImporterOf: drivers.Importer, Node: Describe, Progress: c.UI.Progress, Warn: c.UI.Warn,
		Score: own.python(c.Getenv("MLPROMOTE_PYTHON")).Score, Origin: c.origin, Through: c.through,
	}
}

// origin reads the repository of a spec, and the CI job.
func (c Config) origin(ctx context.Context, spec string, used []string) (*evidence.Origin, error) {
	job, err := ci.Job(ctx, c.Getenv)
	if err != nil {
		return nil, err
	}
	return &evidence.Origin{Git: origin.Read(ctx, origin.Query{Spec: spec, Used: used}), CI: job}, nil
}

// Root is where finished steps, and installs unless MLPROMOTE_INSTALLS names another folder, are shared between
// projects.
func (c Config) Root() (string, error) {
	return installed.Root(c.Getenv("MLPROMOTE_CACHE"))
}

// Installer returns what installs toolchains.
func (c Config) Installer() (*install.Installer, error) {
	folder, err := installed.Folder(c.Getenv("MLPROMOTE_INSTALLS"), c.Getenv("MLPROMOTE_CACHE"))
	return &install.Installer{Folder: folder, Python: c.Getenv("MLPROMOTE_PYTHON")}, err
}

// Describe reads this machine; what is given is what our own toolchains bring.
func Describe(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
	return node.Describe(ctx, node.Options{Runtimes: runtimes})
}
