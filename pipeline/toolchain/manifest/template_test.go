package manifest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// layers writes a model as the engine of the template takes it.
const layers = `
import json, sys
from network import Network
w = {k: v.tolist() for k, v in Network(b"of a stand-in\n" + open(sys.argv[1], "rb").read()).weights.items()}
last = {"Output": "y", "Weights": list(map(list, zip(*w["w3"]))), "Bias": w["b3"]}
second = {"Weights": w["w2"], "Bias": w["b2"], "Relu": True, "Next": last}
json.dump({"Input": "x", "Weights": w["w1"], "Bias": w["b1"], "Relu": True, "Next": second}, open(sys.argv[2], "w"))
`

// The template of a runner in Go keeps every promise of the protocol. Its compiler here knows two models.
func TestTemplateInGo(t *testing.T) {
	t.Parallel()
	of := &conformance.Subject{CommandLine: true, Scratch: t.TempDir(), Validate: toolchaintest.ValidateSchema}
	if err := of.UseSample(); err != nil {
		t.Fatal(err)
	}
	dir := tool(t, map[string]string{"acc": `#!/bin/sh
[ "$1" = --version ] && { echo "acc 2.1"; exit; }
dir=$(dirname "$0")
for name in model other; do cmp -s "$1" "$dir/$name.onnx" && { cp "$dir/$name.json" "$3"; exit; }; done
exit 1
`})
	for name, path := range map[string]string{"model": of.Model, "other": of.Other} {
		copied(t, path, dir)
		cmd := exec.CommandContext(t.Context(), python(t), "-c", layers, path, filepath.Join(dir, name+".json"))
		cmd.Dir = standIns
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	runner := filepath.Join(t.TempDir(), "runner")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", runner, ".")
	build.Dir, build.Env = "../../../examples/toolchains/runner-go", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	m := describe(t, dir, "")
	m.Run = &manifest.Run{Program: runner}
	of.Profile = m.Profile()
	compiler, _ := open(t, m)
	driver, err := manifest.NewRunner(t.Context(), m, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	of.New = fixed(toolchain.Split(compiler, nil, driver))
	if of.Options, err = of.Profile.CompileOptions(artifact.Target{Name: "t"}, "fp32"); err != nil {
		t.Fatal(err)
	}
	for _, check := range conformance.Checks() {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			err := check.Run(t.Context(), of)
			if _, skipped := errors.AsType[conformance.Skipped](err); skipped && check.Speaks {
				return
			}
			if err != nil {
				t.Errorf("want that %s: %v", check.Promise, err)
			}
		})
	}
}
