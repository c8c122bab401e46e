package registrytest

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// lost writes the candidates of an answer: "label: chosen", "label: why not".
func lost(answer api.Resolution) string {
	var out []string
	for _, c := range answer.Candidates {
		text := strings.Join(c.Reasons, "; ")
		if c.Chosen {
			text += "chosen"
		}
		out = append(out, c.Label+": "+text)
	}
	return strings.Join(out, "\n")
}

// listed are engines as a spec lists them: onnxruntime first, with fp32 before int8; then a toolchain with a higher version, a
// closer target and fewer bits; and last one for an accelerator.
func listed() []artifact.Engine {
	closer, gpu := MakeEngine("v4", "int4"), MakeEngine("v1", "fp16")
	closer.Toolchain = artifact.Toolchain{Name: "openvino", Version: "2026.2.0"}
	gpu.Target.Name, gpu.Target.Accelerator = "gpu", &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}
	gpu.Toolchain = artifact.Toolchain{Name: "tensorrt", Version: "11.4"}
	return []artifact.Engine{MakeEngine("v1", "fp32"), MakeEngine("v3", "fp32"), MakeEngine("v3", "int8"), closer, gpu}
}

func testResolve(t *testing.T, r Registry) {
	engines := listed()
	slices.Reverse(engines)
	release := r.Build(t, Build{Engines: engines})
	gpu := Node("v4")
	gpu.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Arch: "sm_90"}}
	for _, c := range []struct {
		name string
		q    api.ResolveQuery
		want string
	}{
		{"the first toolchain, its closest target, and the first variant", api.ResolveQuery{Node: Node("v4")},
			"linux-amd64-v3/fp32: chosen\ngpu/fp16: accelerator: needs nvidia sm_90, has none\n" +
				"linux-amd64-v3/int8: linux-amd64-v3/fp32 comes first in the spec\nlinux-amd64-v1/fp32: linux-amd64-v3/fp32 asks for more of the processor\n" +
				"linux-amd64-v4/int4: linux-amd64-v3/fp32 is by the toolchain that the spec names first"},
		{"an accelerator", api.ResolveQuery{Node: gpu},
			"gpu/fp16: chosen\nlinux-amd64-v3/fp32: gpu/fp16 is for an accelerator\nlinux-amd64-v3/int8: gpu/fp16 is for an accelerator\n" +
				"linux-amd64-v1/fp32: gpu/fp16 is for an accelerator\nlinux-amd64-v4/int4: gpu/fp16 is for an accelerator"},
		{"what the machine can run", api.ResolveQuery{Node: Node("v2")},
			"linux-amd64-v1/fp32: chosen\ngpu/fp16: accelerator: needs nvidia sm_90, has none\nlinux-amd64-v3/fp32: cpu.level: needs v3, has v2\n" +
				"linux-amd64-v3/int8: cpu.level: needs v3, has v2\nlinux-amd64-v4/int4: cpu.level: needs v4, has v2"},
		{"variant", api.ResolveQuery{Node: Node("v3"), Variant: "int8", Version: "1.0.0"},
			"linux-amd64-v3/int8: chosen\ngpu/fp16: accelerator: needs nvidia sm_90, has none; variant int8 was requested\n" +
				"linux-amd64-v3/fp32: variant int8 was requested\nlinux-amd64-v1/fp32: variant int8 was requested\n" +
				"linux-amd64-v4/int4: cpu.level: needs v4, has v3; variant int8 was requested"},
	} {
		q := c.q
		q.Environment, q.Model = "staging", Model
		answer, err := r.Resolve(t.Context(), q)
		if err != nil || lost(answer) != c.want {
			t.Errorf("%s: error %v, got\n%s\nwant\n%s", c.name, err, lost(answer), c.want)
			continue
		}
		if answer.Engine.Digest != answer.Candidates[0].Engine ||
			answer.Release != release.Digest || answer.Version != "1.0.0" || !names(answer, "staging") {
			t.Errorf("%s: the answer is %+v", c.name, answer)
		}
	}
	for _, q := range []api.ResolveQuery{
		{Environment: "moon", Model: Model}, {Environment: "staging", Model: "vision/letters"},
		{Environment: "staging", Model: Model, Version: "9.9.9"}, {Environment: "prod", Model: Model},
	} {
		q.Node = Node("v3")
		_, err := r.Resolve(t.Context(), q)
		refused(t, err, registry.CodeNotFound)
	}
}

// The image form of the engine that a node gets is what its query asks for; a release of an earlier version has none.
func testResolveImage(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	q := api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3"), As: api.AsImage}
	answer, err := r.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := release.Engine(answer.Engine.Digest)
	ref, err := registry.ParseRef(answer.Ref)
	if err != nil || e.Image.Digest == "" || ref.Digest != e.Image.Digest || ref.Repository() != "prod/"+Model || answer.Engine.Image != e.Image {
		t.Errorf("the answer is %+v, error %v, want the image %s", answer, err, e.Image.Digest)
	}
	q.As = api.AsEngine
	if answer, err = r.Resolve(t.Context(), q); err != nil || !names(answer, "prod") || answer.Engine.Image != e.Image {
		t.Errorf("the engine: %+v, error %v", answer, err)
	}
	r.AttachTo(t, "prod", release, e.Digest, evidence.PredicateQuarantine, struct{}{})
	q.As, q.Variant = api.AsImage, e.Variant
	answer, err = r.Resolve(t.Context(), q)
	if e.Variant == "int8" { // no other engine has it
		refused(t, err, registry.CodeNoEngine, "quarantine")
	} else if err != nil || answer.Engine.Digest == e.Digest {
		t.Errorf("after the quarantine: %+v, error %v", answer, err)
	}

	old := r.Promoted(t, Build{Version: "1.1.0", Salt: "old", WithoutImages: true})
	q = api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}
	if answer, err := r.Resolve(t.Context(), q); err != nil || answer.Release != old.Digest || answer.Engine.Image != (artifact.Image{}) {
		t.Errorf("a release without image forms: %+v, error %v", answer, err)
	}
	q.As = api.AsImage
	_, err = r.Resolve(t.Context(), q)
	refused(t, err, registry.CodeNotFound, "1.1.0", "has no image forms")
	if hints := registry.Hints(err); len(hints) != 1 || !strings.Contains(hints[0], "build it again") {
		t.Errorf("hints %q, want what to do", hints)
	}
}

// About an image form, only signatures are attached: what counts for its engine counts for it.
func testAttachToImage(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	image := release.Engines[0].Image.Digest
	for predicate, role := range map[string]string{evidence.PredicateQuarantine: "approver", evidence.PredicateProvenance: "builder"} {
		_, err := r.Attach(t.Context(), api.Attachment{Environment: "staging", Model: Model, Release: release.Digest, Subject: image,
			Bundle: r.Bundle(t, role, predicate, struct{}{}, image)})
		refused(t, err, registry.CodeInvalid, "is the image form of engine "+string(release.Engines[0].Digest))
	}
	r.AttachTo(t, "staging", release, image, evidence.PredicateSign, struct{}{})
}

func testResolveNothing(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	old := Node("v3")
	old.Runtimes = map[string]string{"onnxruntime": "1.20.0"}
	container := artifact.Runtime{V: 1, Name: "container", Runtimes: map[string]string{"onnxruntime": "1.30.1"}}
	for says, q := range map[string]api.ResolveQuery{
		"os: needs linux, has windows":                    {Node: artifact.Node{V: 1, OS: "windows", CPU: Node("v3").CPU, Runtimes: Node("v3").Runtimes}},
		"runtimes.onnxruntime: needs >= 1.30, has 1.20.0": {Node: old},
		"runtimes.onnxruntime: needs >= 1.30, has none":   {Node: Node("v3"), Runtime: &artifact.Runtime{}},
		"variant int4 was requested":                      {Node: Node("v3"), Variant: "int4"},
		"os: needs linux, has none":                       {},
		"cpu.level: needs v1, has none": {Node: artifact.Node{V: 1,
			OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64"}, Runtimes: Node("v3").Runtimes}},
	} {
		q.Environment, q.Model = "staging", Model
		answer, err := r.Resolve(t.Context(), q)
		refused(t, err, registry.CodeNoEngine, says, "linux-amd64-v3/int8", "linux-amd64-v1/fp32")
		if answer.Engine != nil || answer.Ref != "" || answer.Release != release.Digest ||
			len(answer.Candidates) != 3 || !strings.Contains(lost(answer), says) {
			t.Errorf("%s: the answer is %+v", says, answer)
		}
	}
	if answer, err := r.Resolve(t.Context(), api.ResolveQuery{Environment: "staging",
		Model: Model, Node: old, Runtime: &container}); err != nil || answer.Engine == nil {
		t.Errorf("with the runtime of a container: %+v, error %v", answer, err)
	}
}

// In a protected environment an engine is an answer only if nothing speaks against it.
func testResolveProtected(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	q := api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}
	answer, err := r.Resolve(t.Context(), q)
	must(t, err)
	if answer.Engine.Label() != "linux-amd64-v3/int8" || !names(answer, "prod") {
		t.Fatalf("the answer is %+v", answer)
	}
	later := Report(release, *answer.Engine, evidence.VerdictFail)
	later.FinishedOn = later.FinishedOn.AddDate(0, 0, 1)
	r.AttachTo(t, "prod", release, answer.Engine.Digest, evidence.PredicateParity, later)
	answer, err = r.Resolve(t.Context(), q)
	must(t, err)
	if answer.Engine.Label() != "linux-amd64-v3/fp32" || !strings.Contains(lost(answer),
		`linux-amd64-v3/int8: no-failure of linux-amd64-v3/int8: the parity verdict is "fail"`) {
		t.Errorf("after a later fail the answer is\n%s", lost(answer))
	}
	for _, e := range release.Engines {
		r.AttachTo(t, "prod", release, e.Digest, evidence.PredicateQuarantine, struct{}{})
	}
	answer, err = r.Resolve(t.Context(), q)
	refused(t, err, registry.CodeNoEngine, "in quarantine")
	if answer.Engine != nil || slices.ContainsFunc(answer.Candidates, func(c api.Candidate) bool { return c.Chosen }) {
		t.Errorf("the answer is %+v", answer)
	}
}

// An engine that failed with one runtime and passed with another is promoted, and kept from nodes with the first, and from those that do
// not say which they have.
func testResolveWithheld(t *testing.T, r Registry) {
	release := r.Build(t, Build{Engines: Engines()[2:]})
	r.Sign(t, release)
	e := release.Engines[0]
	failed := r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, Report(release, e, evidence.VerdictFail))
	pass := r.Seeing(t, Report(release, e, evidence.VerdictPass))
	pass.Runtime.Version, pass.Node.Runtimes = "1.31.0", map[string]string{"onnxruntime": "1.31.0"}
	r.AttachTo(t, "staging", release, e.Digest, evidence.PredicateParity, pass)
	p, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model})
	must(t, err)
	if w := p.Decision.Withheld; len(w) != 1 || w[0].Engine != e.Label() || w[0].Report != failed ||
		!strings.Contains(w[0].Nodes, "runtimes.onnxruntime 1.30.0") {
		t.Errorf("withheld is %+v", w)
	}
	if again, err := r.Promote(t.Context(), api.PromoteRequest{Model: Model}); err != nil || !again.Unchanged || len(again.Decision.Withheld) != 1 {
		t.Errorf("promoted again: %+v, error %v", again, err)
	}
	for says, runtimes := range map[string]map[string]string{
		"": {"onnxruntime": "1.31.0"},
		"the parity verdict is \"fail\"; the node is like the machine of that report": {"onnxruntime": "1.30.0"},
	} {
		q := api.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}
		q.Node.Runtimes = runtimes
		if answer, err := r.Resolve(t.Context(), q); (err == nil) != (says == "") || !strings.Contains(lost(answer), says) {
			t.Errorf("a node with %v: error %v\n%s", runtimes, err, lost(answer))
		}
		q.Node.CPU.Features = nil
		if _, err := r.Resolve(t.Context(), q); (err == nil) != (says == "") {
			t.Errorf("a node with %v that states no features: error %v", runtimes, err)
		}
	}
}

// names reports whether the reference of an answer is that of its engine in the
// environment, on whatever host that is.
func names(answer api.Resolution, environment string) bool {
	ref, err := registry.ParseRef(answer.Ref)
	ref.Host = ""
	return err == nil && ref == registry.Ref{Environment: environment, Model: Model, Digest: answer.Engine.Digest}
}
