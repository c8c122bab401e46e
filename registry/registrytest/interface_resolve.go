package registrytest

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// lost writes the candidates of an answer: "label: chosen", "label: why not".
func lost(answer registry.Resolution) string {
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

func testResolve(t *testing.T, r Registry) {
	older := MakeEngine("v3", "int8")
	older.Toolchain.Version = "1.29.0"
	b := Build{Engines: append(Engines(), older)}
	release := r.Build(t, b)
	for _, c := range []struct {
		name string
		q    registry.ResolveQuery
		want string
	}{
		{"closest target, lowest precision, newest toolchain", registry.ResolveQuery{Node: Node("v4")},
			"linux-amd64-v3/int8: chosen\nlinux-amd64-v3/int8: linux-amd64-v3/int8 has the newer toolchain\nlinux-amd64-v3/fp32: linux-amd64-v3/int8 has a lower precision\nlinux-amd64-v1/fp32: linux-amd64-v3/int8 matches this node more closely"},
		{"what the machine can run", registry.ResolveQuery{Node: Node("v2")},
			"linux-amd64-v1/fp32: chosen\nlinux-amd64-v3/int8: cpu.level: needs v3, has v2\nlinux-amd64-v3/int8: cpu.level: needs v3, has v2\nlinux-amd64-v3/fp32: cpu.level: needs v3, has v2"},
		{"variant", registry.ResolveQuery{Node: Node("v3"), Variant: "fp32", Version: "1.0.0"},
			"linux-amd64-v3/fp32: chosen\nlinux-amd64-v3/int8: variant fp32 was requested\nlinux-amd64-v3/int8: variant fp32 was requested\nlinux-amd64-v1/fp32: linux-amd64-v3/fp32 matches this node more closely"},
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
	for _, q := range []registry.ResolveQuery{
		{Environment: "moon", Model: Model}, {Environment: "staging", Model: "vision/letters"},
		{Environment: "staging", Model: Model, Version: "9.9.9"}, {Environment: "prod", Model: Model},
	} {
		q.Node = Node("v3")
		_, err := r.Resolve(t.Context(), q)
		refused(t, err, registry.CodeNotFound)
	}
}

func testResolveNothing(t *testing.T, r Registry) {
	release := r.Build(t, Build{})
	old := Node("v3")
	old.Runtimes = map[string]string{"onnxruntime": "1.20.0"}
	container := registry.Runtime{V: 1, Name: "container", Runtimes: map[string]string{"onnxruntime": "1.30.1"}}
	for says, q := range map[string]registry.ResolveQuery{
		"os: needs linux, has windows":                    {Node: registry.Node{V: 1, OS: "windows", CPU: Node("v3").CPU, Runtimes: Node("v3").Runtimes}},
		"runtimes.onnxruntime: needs >= 1.30, has 1.20.0": {Node: old},
		"runtimes.onnxruntime: needs >= 1.30, has none":   {Node: Node("v3"), Runtime: &registry.Runtime{}},
		"variant int4 was requested":                      {Node: Node("v3"), Variant: "int4"},
		"os: needs linux, has none":                       {},
		"cpu.level: needs v1, has none": {Node: registry.Node{V: 1,
			OS: "linux", CPU: registry.NodeCPU{Arch: "amd64"}, Runtimes: Node("v3").Runtimes}},
	} {
		q.Environment, q.Model = "staging", Model
		answer, err := r.Resolve(t.Context(), q)
		refused(t, err, registry.CodeNoEngine, says, "linux-amd64-v3/int8", "linux-amd64-v1/fp32")
		if answer.Engine != nil || answer.Ref != "" || answer.Release != release.Digest ||
			len(answer.Candidates) != 3 || !strings.Contains(lost(answer), says) {
			t.Errorf("%s: the answer is %+v", says, answer)
		}
	}
	if answer, err := r.Resolve(t.Context(), registry.ResolveQuery{Environment: "staging",
		Model: Model, Node: old, Runtime: &container}); err != nil || answer.Engine == nil {
		t.Errorf("with the runtime of a container: %+v, error %v", answer, err)
	}
}

// In a protected environment an engine is an answer only if nothing speaks against it.
func testResolveProtected(t *testing.T, r Registry) {
	release := r.Promoted(t, Build{})
	q := registry.ResolveQuery{Environment: "prod", Model: Model, Node: Node("v3")}
	answer, err := r.Resolve(t.Context(), q)
	must(t, err)
	if answer.Engine.Label() != "linux-amd64-v3/int8" || !names(answer, "prod") {
		t.Fatalf("the answer is %+v", answer)
	}
	later := Report(release, *answer.Engine, registry.VerdictFail)
	later.FinishedOn = later.FinishedOn.AddDate(0, 0, 1)
	r.AttachTo(t, "prod", release, answer.Engine.Digest, registry.PredicateParity, later)
	answer, err = r.Resolve(t.Context(), q)
	must(t, err)
	if answer.Engine.Label() != "linux-amd64-v3/fp32" || !strings.Contains(lost(answer),
		`linux-amd64-v3/int8: no-failure of linux-amd64-v3/int8: the parity verdict is "fail"`) {
		t.Errorf("after a later fail the answer is\n%s", lost(answer))
	}
	for _, e := range release.Engines {
		r.AttachTo(t, "prod", release, e.Digest, registry.PredicateQuarantine, struct{}{})
	}
	answer, err = r.Resolve(t.Context(), q)
	refused(t, err, registry.CodeNoEngine, "in quarantine")
	if answer.Engine != nil || slices.ContainsFunc(answer.Candidates, func(c registry.Candidate) bool { return c.Chosen }) {
		t.Errorf("the answer is %+v", answer)
	}
}

// names reports whether the reference of an answer is that of its engine in the
// environment, on whatever host that is.
func names(answer registry.Resolution, environment string) bool {
	ref, err := registry.ParseRef(answer.Ref)
	ref.Host = ""
	return err == nil && ref == registry.Ref{Environment: environment, Model: Model, Digest: answer.Engine.Digest}
}
