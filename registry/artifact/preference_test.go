package artifact_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
)

// specEngine is an engine as a spec lists it, named by its digest.
func specEngine(name, toolchain, level string, gpu bool) artifact.Engine {
	e := artifact.Engine{Digest: registry.Digest(name), Variant: name, Target: artifact.Target{OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level}}}
	e.Toolchain.Name = toolchain
	if gpu {
		e.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"}
	}
	return e
}

func inOrder(engines ...artifact.Engine) []artifact.Engine {
	return artifact.OrderEngines(engines, func(e artifact.Engine) artifact.Engine { return e })
}

func digestsIn(engines []artifact.Engine) string {
	var all []string
	for _, e := range engines {
		all = append(all, string(e.Digest))
	}
	return strings.Join(all, " ")
}

// Neither a precision nor a version of a toolchain decides: what the spec says does.
func TestOrderEngines(t *testing.T) {
	t.Parallel()
	precise := func(e artifact.Engine, precision, version string) artifact.Engine {
		e.Precision, e.Toolchain.Version = precision, version
		return e
	}
	fp32, small := precise(specEngine("fp32", "onnxruntime", "v3", false), "fp32", "1.30"), precise(specEngine("int8", "onnxruntime", "v3", false), "int8", "1.30")
	openvino := precise(specEngine("openvino", "openvino", "v4", false), "int8", "2026.2")
	anywhere := specEngine("anywhere", "onnxruntime", "v1", false)
	gpu, tensorrt := specEngine("gpu", "onnxruntime", "v1", true), specEngine("tensorrt", "tensorrt", "v1", true)
	vnni := specEngine("vnni", "onnxruntime", "v3", false)
	vnni.Target.CPU.Features = []string{"avx512_vnni"}
	for _, c := range []struct {
		name  string
		given []artifact.Engine
		want  string
	}{
		{"variants as the spec lists them", []artifact.Engine{fp32, small}, "fp32 int8"},
		{"and the other way round", []artifact.Engine{small, fp32}, "int8 fp32"},
		{"another toolchain with a higher version, fewer bits and a higher level", []artifact.Engine{fp32, openvino, small}, "fp32 int8 openvino"},
		{"that toolchain first", []artifact.Engine{openvino, fp32, small}, "openvino fp32 int8"},
		{"a closer target of the same toolchain", []artifact.Engine{anywhere, small, fp32, vnni}, "vnni int8 fp32 anywhere"},
		{"an accelerator before all", []artifact.Engine{fp32, openvino, gpu}, "gpu fp32 openvino"},
		{"toolchains of accelerators, as all engines name them", []artifact.Engine{anywhere, tensorrt, gpu}, "gpu tensorrt anywhere"},
		{"nothing", nil, ""},
	} {
		if got := inOrder(c.given...); digestsIn(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.name, digestsIn(got), c.want)
		}
	}
}

func TestWhyPreferred(t *testing.T) {
	t.Parallel()
	near, far := specEngine("near", "onnxruntime", "v3", false), specEngine("far", "onnxruntime", "v1", false)
	gpu, other := specEngine("gpu", "tvm", "v1", true), specEngine("other", "openvino", "v4", false)
	for _, c := range []struct {
		winner, loser artifact.Engine
		want          string
	}{
		{gpu, near, "/gpu is for an accelerator"},
		{near, other, "/near is by the toolchain that the spec names first"},
		{near, far, "/near asks for more of the processor"},
		{near, specEngine("b", "onnxruntime", "v3", false), "/near comes first in the spec"},
		{near, gpu, "/near comes first in the order of the release"}, // which the rule does not make
		{far, near, "/far comes first in the order of the release"},
	} {
		if got := artifact.WhyPreferred(c.winner, c.loser); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// The order is total whatever a release names in it, and the engines themselves stay where they are.
func TestRanked(t *testing.T) {
	t.Parallel()
	r := artifact.Release{Engines: []artifact.Engine{{Digest: "a"}, {Digest: "b"}, {Digest: "c"}}}
	for _, c := range []struct {
		order []registry.Digest
		want  string
	}{
		{[]registry.Digest{"c", "a", "b"}, "c a b"}, {nil, "a b c"}, {[]registry.Digest{"b"}, "b a c"},
		{[]registry.Digest{"x", "c", "y", "b", "z", "a"}, "c b a"}, {[]registry.Digest{"b", "c", "b"}, "c b a"},
	} {
		r.Order = c.order
		if got := digestsIn(r.Ranked()); got != c.want || digestsIn(r.Engines) != "a b c" {
			t.Errorf("order %v: got %s of %s, want %s", c.order, got, digestsIn(r.Engines), c.want)
		}
	}
	twice := artifact.Release{Engines: slices.Repeat(r.Engines, 2), Order: []registry.Digest{"c"}}
	if got := twice.Ranked(); digestsIn(got) != "c "+"c a b a b" {
		t.Errorf("engines that are there twice: %s", digestsIn(got))
	}
}

// A node type gets the first engine that it can run and that nothing speaks against.
func TestNodesGet(t *testing.T) {
	t.Parallel()
	r := artifact.Release{Engines: []artifact.Engine{specEngine("fp32", "a", "v1", false), specEngine("int8", "a", "v3", false), specEngine("gpu", "b", "v1", true)}}
	for i := range r.Engines {
		r.Engines[i].Target.V, r.Engines[i].Target.Name = artifact.TargetVersion, "x86"
	}
	r.Order = []registry.Digest{"gpu", "int8", "fp32"}
	node := func(name, level string, devices ...artifact.NodeAccelerator) registry.Named[artifact.Node] {
		return registry.Named[artifact.Node]{Name: name, Document: artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: level}, Accelerators: devices}}
	}
	types := []registry.Named[artifact.Node]{node("gpu", "v4", artifact.NodeAccelerator{Vendor: "nvidia"}), node("new", "v3"), node("old", "v1"), {Name: "other"}}
	for bad, want := range map[registry.Digest]string{
		"":     "gpu -> x86/gpu, new -> x86/int8, old -> x86/fp32, other -> no engine",
		"int8": "gpu -> x86/gpu, new -> x86/fp32, old -> x86/fp32, other -> no engine",
		"gpu":  "gpu -> x86/int8, new -> x86/int8, old -> x86/fp32, other -> no engine",
		"fp32": "gpu -> x86/gpu, new -> x86/int8, old -> no engine, other -> no engine",
	} {
		var got []string
		unmet := func(e artifact.Engine) []policy.Requirement {
			if e.Digest == bad {
				return []policy.Requirement{{Name: "no-quarantine"}}
			}
			return nil
		}
		for _, n := range policy.NodesGet(r, types, unmet) {
			got = append(got, n.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("without %q: got %s, want %s", bad, strings.Join(got, ", "), want)
		}
	}
}
