package evidence_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

func TestFigureRoundTrip(t *testing.T) {
	t.Parallel()
	special := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.Float64(), special).Draw(t, "figure")
		written, err := registry.CanonicalJSON(struct{ F evidence.Figure }{evidence.Figure(want)})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ F evidence.Figure }
		if err := json.Unmarshal(written, &got); err != nil {
			t.Fatal(err)
		}
		if float64(got.F) != want && !(math.IsNaN(float64(got.F)) && math.IsNaN(want)) {
			t.Fatalf("%v was written as %s and read as %v", want, written, got.F)
		}
	})
}

func TestFigureJSON(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]evidence.Figure{`"nan"`: evidence.Figure(math.NaN()),
		`"inf"`: evidence.Figure(math.Inf(1)), `"-inf"`: evidence.Figure(math.Inf(-1)), `0.5`: 0.5, `-3`: -3} {
		if got, err := json.Marshal(f); err != nil || string(got) != want {
			t.Errorf("got %s, error %v, want %s", got, err, want)
		}
	}
	for _, bad := range []string{`"NaN"`, `"1"`, `"infinity"`, `true`, `[]`, `{}`, `""`, `1e999`} {
		var f evidence.Figure
		if err := json.Unmarshal([]byte(bad), &f); err == nil {
			t.Errorf("%s was read as %v", bad, f)
		}
	}
}

func TestDigestSet(t *testing.T) {
	t.Parallel()
	a, b := digest.FromString("a"), digest.FromString("b")
	set := evidence.NewDigestSet(a)
	if !set.Names(a) || set.Names(b) || set["sha256"] != a.Encoded() {
		t.Errorf("the set of %s is %v", a, set)
	}
	if evidence.NewDigestSet("") != nil {
		t.Error("the zero digest has a set")
	}
	for _, d := range []registry.Digest{"", "sha256", "sha256:", "sha256:00", "md5:x"} {
		for _, set := range []evidence.DigestSet{nil, {}, {"": ""}, {"sha256": ""}, {"sha256": "00"}, {"md5": "x"}} {
			if set.Names(d) {
				t.Errorf("%v names %q", set, d)
			}
		}
	}
}

func TestNewStatement(t *testing.T) {
	t.Parallel()
	a, b, c := digest.FromString("a"), digest.FromString("b"), digest.FromString("c")
	made, err := evidence.NewStatement(evidence.PredicateSign, map[string]int{"z": 1, "a": 2},
		evidence.StatementSubject{Name: "a", Digest: evidence.NewDigestSet(a)}, evidence.StatementSubject{Digest: evidence.NewDigestSet(b)})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1","predicate":{"a":2,"z":1},"predicateType":"https://sigstore.dev/cosign/sign/v1","subject":[{"digest":{"sha256":"` +
		a.Encoded() + `"},"name":"a"},{"digest":{"sha256":"` + b.Encoded() + `"}}]}`
	if string(made) != want {
		t.Errorf("got  %s\nwant %s", made, want)
	}
	var read evidence.Statement
	if err := json.Unmarshal(made, &read); err != nil || !read.About(a) || !read.About(b) || read.About(c) || read.About("") {
		t.Errorf("read back it is %+v, error %v", read, err)
	}
	if _, err := evidence.NewStatement(evidence.PredicateSign, math.NaN()); err == nil {
		t.Error("a statement of what is no JSON")
	}
}

func TestRoleFor(t *testing.T) {
	t.Parallel()
	known := map[string]evidence.Role{
		evidence.PredicateSign: evidence.RoleBuilder, evidence.PredicateProvenance: evidence.RoleBuilder,
		evidence.PredicateParity: evidence.RoleVerifier, evidence.PredicatePerformance: evidence.RoleVerifier, evidence.PredicateTestResult: evidence.RoleVerifier,
		evidence.PredicateApproval: evidence.RoleApprover, evidence.PredicateQuarantine: evidence.RoleApprover,
		evidence.PredicateVSA: evidence.RolePromoter,
	}
	for predicate, want := range known {
		if got, ok := evidence.RoleFor(predicate); !ok || got != want {
			t.Errorf("%s is for %q, want %q", predicate, got, want)
		}
	}
	for _, predicate := range []string{"", "https://slsa.dev/provenance/v2", evidence.PredicateParity + "/"} {
		if role, ok := evidence.RoleFor(predicate); ok || role != "" {
			t.Errorf("%q is for %q, want nobody", predicate, role)
		}
	}
}
