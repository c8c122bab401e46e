//go:build cgo

package validation_test

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// newPipeline makes a pipeline over a registry in memory, with the real toolchains, whose drivers
// have a fault put around them.
func newPipeline(t *testing.T, around func(toolchain.Driver) toolchain.Driver) *run.Env {
	t.Helper()
	db, blobs := mem.New(), mem.NewBlobs()
	content := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, db, name), nil }, oci.Options{})
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		Environments: registrytest.Chain(), Catalog: db, Records: db, Listing: db, Intents: db, Content: content, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &run.Env{
		Registry: svc, Parts: content, Sign: keys.Sign,
		Toolchain: func(_ context.Context, name string) (run.Toolchain, error) { return tools(t, name, around) },
		Node: func(ctx context.Context, runtimes map[string]string) (artifact.Node, error) {
			return node.Describe(ctx, node.Options{Runtimes: runtimes})
		},
	}
}

// tools are the drivers of a toolchain that is installed. ONNX's evaluator is not among them: it
// computes the golden outputs again, which is the same for engines with a fault and without.
func tools(t *testing.T, name string, around func(toolchain.Driver) toolchain.Driver) (run.Toolchain, error) {
	source, err := drivers.Find(name)
	if err != nil {
		return run.Toolchain{}, err
	}
	installer := toolchaintest.Installer(t, name)
	program := script.New(script.Installed(installer, name), driverproc.Budget{})
	made := run.Toolchain{Profile: source.Profile}
	if source.Quantizes {
		made.Quantizer = around(program)
	}
	if name == ort.Name {
		program = ort.New(ort.Options{Installs: installer})
	}
	made.Engines, made.Timing = around(program), around(program)
	return made, nil
}
