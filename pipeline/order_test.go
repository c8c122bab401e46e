//go:build cgo

package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// mixed names litert first, with int8 before fp32, and a closer target of onnxruntime behind it.
const mixed = `model: vision/digits
version: 1.0.0
source: model.onnx
cases: cases/
variants: [{name: int8, quantize: {method: dynamic}}, fp32]
targets:
  - {name: other, os: linux, cpu: {arch: amd64, level: v1}, toolchain: litert, variants: [fp32]}
  - linux/amd64/v1
  - linux/amd64/v2
`

// twoTools makes litert another name of the runtime that engines have here.
func (w *world) twoTools() {
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		if name == "litert" {
			tools.Profile.Name, tools.Engines = name, renamed{tools.Engines, name}
		}
		return tools, err
	}
}

func ranked(r artifact.Release) string {
	var labels []string
	for _, e := range r.Ranked() {
		labels = append(labels, e.Label())
	}
	return strings.Join(labels, " ")
}

// Nodes get engines in the order of the spec, whoever builds them: one machine, several, or one that goes on without an engine.
func TestOrderOfTheSpec(t *testing.T) {
	t.Parallel()
	const all = "other/fp32 linux-amd64-v2/int8 linux-amd64-v2/fp32 linux-amd64-v1/int8 linux-amd64-v1/fp32"
	w := setup(t, 1.5)
	w.twoTools()
	whole := w.built(t, mixed, build.Options{})
	if got := ranked(whole.Release); got != all {
		t.Errorf("built on one machine: %s, want %s", got, all)
	}
	if again := w.built(t, mixed, build.Options{}); !again.Unchanged {
		t.Error("the same spec is built again")
	}
	swapped := strings.Replace(mixed, "[{name: int8, quantize: {method: dynamic}}, fp32]", "[fp32, {name: int8, quantize: {method: dynamic}}]", 1)
	other := w.built(t, swapped, build.Options{})
	if got, want := ranked(other.Release), "other/fp32 linux-amd64-v2/fp32 linux-amd64-v2/int8 linux-amd64-v1/fp32 linux-amd64-v1/int8"; got != want {
		t.Errorf("with fp32 first: %s, want %s", got, want)
	}
	for i, e := range other.Release.Engines {
		if e.Digest != whole.Release.Engines[i].Digest {
			t.Errorf("%s was made anew for another order", e.Label())
		}
	}

	for _, targets := range [][]string{{"linux-amd64-v1", "other", "linux-amd64-v2"}, {"other", "linux-amd64-v2", "linux-amd64-v1"}} {
		w := setup(t, 1.5)
		w.twoTools()
		w.at("c0ffee")
		for _, target := range targets {
			w.built(t, mixed, of(target))
		}
		made, err := build.Assemble(t.Context(), w.p, w.spec(t, mixed))
		if err != nil || ranked(made.Release) != all {
			t.Errorf("parts %v: %s, error %v; want %s", targets, ranked(made.Release), err, all)
		}
	}
}

// onlyQuantized is a driver that compiles nothing but what was quantized.
type onlyQuantized struct {
	toolchain.Driver
	t *testing.T
}

func (d onlyQuantized) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if job.Verb == toolchain.VerbCompile && !quantizedInput(d.t, job) {
		return toolchain.Outcome{}, registry.Errorf(registry.CodeInternal, "signal: segmentation fault")
	}
	return d.Driver.Do(ctx, job, outDir)
}

// An engine that could not be made still says where its toolchain stands.
func TestOrderWithoutAnEngine(t *testing.T) {
	t.Parallel()
	w := setup(t, -1.5)
	w.twoTools()
	open := w.p.Toolchain
	w.p.Toolchain = func(ctx context.Context, name string) (run.Toolchain, error) {
		tools, err := open(ctx, name)
		if name == "litert" {
			tools.Engines = onlyQuantized{tools.Engines, t}
		}
		return tools, err
	}
	text := strings.Replace(mixed, "  - linux/amd64/v2\n", "  - {name: late, os: linux, cpu: {arch: amd64, level: v1}, toolchain: litert, variants: [int8]}\n", 1)
	result, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{KeepGoing: true})
	if err == nil || len(result.Failed) != 1 || result.Failed[0].Label != "other/fp32" {
		t.Fatalf("failed %+v, error %v; want other/fp32", result.Failed, err)
	}
	if got, want := ranked(result.Release), "late/int8 linux-amd64-v1/int8 linux-amd64-v1/fp32"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
