package policy_test

import (
	"maps"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// engine names an engine of a target, variant and toolchain version. Its digest is that of all three.
func engine(target, variant, version string) artifact.Engine {
	return artifact.Engine{
		Digest: digest.FromString(target + variant + version), Size: 7, Variant: variant, Precision: variant,
		Target:    artifact.Target{V: 1, Name: target, OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64"}},
		Toolchain: artifact.Toolchain{Name: "ort", Version: version},
	}
}

func TestReleaseTags(t *testing.T) {
	t.Parallel()
	d := digest.FromString("release")
	a, b, c := engine("x86", "int8", "1.30.0"), engine("x86", "fp32", "1.30.0"), engine("x86", "int8", "1.31.0")
	for name, test := range map[string]struct {
		release artifact.Release
		want    map[string]registry.Digest
	}{
		"no label shared": {
			artifact.Release{Digest: d, Version: "1.0.0", Revision: 1, Engines: []artifact.Engine{a, b}},
			map[string]registry.Digest{"current": d, "1.0.0": d, "1.0.0.x86.int8": a.Digest, "1.0.0.x86.fp32": b.Digest},
		},
		"label shared, second revision": {
			artifact.Release{Digest: d, Version: "1.0.0", Revision: 2, Engines: []artifact.Engine{a, b, c}},
			map[string]registry.Digest{
				"current": d, "1.0.0-r2": d, "1.0.0-r2.x86.fp32": b.Digest,
				"1.0.0-r2.x86.int8.ort-1.30.0": a.Digest, "1.0.0-r2.x86.int8.ort-1.31.0": c.Digest,
			},
		},
	} {
		if got := test.release.Tags(); !maps.Equal(got, test.want) {
			t.Errorf("%s: got tags %v, want %v", name, got, test.want)
		}
	}
}

func TestReleaseSubjects(t *testing.T) {
	t.Parallel()
	a, b := engine("x86", "int8", "1"), engine("arm", "fp32", "1")
	r := artifact.Release{Digest: digest.FromString("release"), Size: 5, Engines: []artifact.Engine{a, b}}
	want := []artifact.Subject{
		{Name: "release", Digest: r.Digest, Size: 5, Index: true},
		{Name: "x86/int8", Digest: a.Digest, Size: 7},
		{Name: "arm/fp32", Digest: b.Digest, Size: 7},
	}
	got := r.Subjects()
	if len(got) != len(want) {
		t.Fatalf("got %d subjects, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("subject %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if found, ok := r.Engine(b.Digest); !ok || found.Label() != "arm/fp32" {
		t.Errorf("engine %s is %+v", b.Digest, found)
	}
	if _, ok := r.Engine(r.Digest); ok {
		t.Error("the release is an engine of itself")
	}
}
