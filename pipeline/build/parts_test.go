package build

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A part is stated once for a spec and a commit; a statement about anything else does not count as that.
func TestMissingPart(t *testing.T) {
	t.Parallel()
	r := targetsOf([2]string{"x", "fp32"})
	key := digest.FromString("key")
	part, other := &plan.Part{Key: key}, &plan.Part{Key: digest.FromString("other")}
	for name, c := range map[string]struct {
		claim evidence.Claim
		want  int // statements to make
	}{
		"said":                     {builderSays(t, r.Digest, part, "c0ffee", 1), 0},
		"of another spec":          {builderSays(t, r.Digest, other, "c0ffee", 1), 1},
		"from another commit":      {builderSays(t, r.Digest, part, "0ld", 1), 1},
		"about an engine":          {builderSays(t, r.Engines[0].Digest, part, "c0ffee", 1), 1},
		"of a whole release":       {builderSays(t, r.Digest, nil, "c0ffee", 1), 1},
		"another kind of document": {evidence.Claim{Subject: r.Digest, Statement: evidence.Statement{PredicateType: evidence.PredicateSign}}, 1},
	} {
		b := making{env: &run.Env{}}
		b.parts = &wantedParts{key: key, commit: "c0ffee"}
		b.Plan.Model, b.Plan.Version = "a/b", "1.0.0"
		got, err := missingPart(b, r, []evidence.Claim{c.claim})
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d statements, error %v; want %d", name, len(got), err, c.want)
		}
	}
}

// targetsOf is a release with an engine for each target and variant.
func targetsOf(labels ...[2]string) artifact.Release {
	r := artifact.Release{Model: "a/b", Version: "1.0.0", Digest: digest.FromString("release")}
	for _, l := range labels {
		r.Engines = append(r.Engines, artifact.Engine{Digest: digest.FromString(l[0] + l[1]), Target: artifact.Target{Name: l[0]}, Variant: l[1]})
	}
	return r
}

// builderSays is a builder's provenance of a subject: of the part, if it is one, and of the commit.
func builderSays(t *testing.T, subject registry.Digest, part *plan.Part, commit string, row int64) evidence.Claim {
	t.Helper()
	predicate, err := json.Marshal(map[string]any{"buildDefinition": map[string]any{
		"externalParameters": map[string]any{"part": part},
		"internalParameters": map[string]any{"origin": evidence.Origin{Git: evidence.GitOrigin{Commit: commit}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return evidence.Claim{Subject: subject, Recorded: row, Statement: evidence.Statement{PredicateType: evidence.PredicateProvenance, Predicate: predicate}}
}

// What makes an index a part is the first statement of a builder about it, for this spec and from this commit, that the history has.
func TestStatementOfAPart(t *testing.T) {
	t.Parallel()
	r := targetsOf([2]string{"x", "fp32"})
	w := wantedParts{key: digest.FromString("key"), commit: "c0ffee"}
	part := &plan.Part{Key: w.key}
	says := func(row int64) evidence.Claim { return builderSays(t, r.Digest, part, "c0ffee", row) }
	elsewhere := says(1)
	elsewhere.Subject = r.Engines[0].Digest
	signature := says(1)
	signature.Statement.PredicateType = evidence.PredicateSign
	for name, c := range map[string]struct {
		claims   []evidence.Claim
		recorded int64 // 0: none counts
		reason   string
	}{
		"nothing":                        {nil, 0, "no trusted builder says"},
		"one":                            {[]evidence.Claim{says(5)}, 5, ""},
		"the first of several":           {[]evidence.Claim{says(5), says(3), says(4)}, 3, ""},
		"about an engine":                {[]evidence.Claim{elsewhere}, 0, "no trusted builder says"},
		"another statement":              {[]evidence.Claim{signature}, 0, "no trusted builder says"},
		"of a whole release":             {[]evidence.Claim{builderSays(t, r.Digest, nil, "c0ffee", 5)}, 0, "for another spec"},
		"for another spec":               {[]evidence.Claim{builderSays(t, r.Digest, &plan.Part{Key: digest.FromString("other")}, "c0ffee", 5)}, 0, "for another spec"},
		"from another commit":            {[]evidence.Claim{builderSays(t, r.Digest, part, "0ld", 5)}, 0, "it was built from commit 0ld, and not from c0ffee"},
		"from no commit":                 {[]evidence.Claim{builderSays(t, r.Digest, part, "", 5)}, 0, "it was built from commit (not known), and not from c0ffee"},
		"that the history does not have": {[]evidence.Claim{says(0)}, 0, "the history does not have"},
		"one that counts before another": {[]evidence.Claim{says(5), builderSays(t, r.Digest, part, "0ld", 3)}, 5, ""},
		"one that counts behind another": {[]evidence.Claim{builderSays(t, r.Digest, part, "0ld", 3), says(5)}, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, reason := w.statement(r, c.claims)
			if got.recorded != c.recorded || (reason == "") != (c.recorded > 0) || !strings.Contains(reason, c.reason) {
				t.Errorf("got row %d, %q; want row %d, %q", got.recorded, reason, c.recorded, c.reason)
			}
		})
	}
}

// The engines of a part are those that its builder says and the spec asks for, each with the builder's signature and provenance.
func TestEnginesOfAPart(t *testing.T) {
	t.Parallel()
	r := targetsOf([2]string{"x", "fp32"}, [2]string{"x", "int8"})
	w := wantedParts{common: plan.Plan{Model: "a/b", Version: "1.0.0"}}
	var part plan.Part
	for _, e := range r.Engines {
		part.Engines = append(part.Engines, plan.Engine{Target: e.Target, Variant: e.Variant})
		w.asked = append(w.asked, plan.Requested{Target: e.Target, Variant: e.Variant})
	}
	joined, err := w.common.Join(w.asked, part)
	if err != nil {
		t.Fatal(err)
	}
	r.Plan = joined.Digest
	claim := func(engine int, predicate string) evidence.Claim {
		return evidence.Claim{Subject: r.Engines[engine].Digest, Statement: evidence.Statement{PredicateType: predicate}}
	}
	all := []evidence.Claim{claim(0, evidence.PredicateSign), claim(0, evidence.PredicateProvenance), claim(1, evidence.PredicateSign), claim(1, evidence.PredicateProvenance)}
	without := func(i int) []evidence.Claim { return slices.Delete(slices.Clone(all), i, i+1) }
	for name, c := range map[string]struct {
		change func(w *wantedParts, p *foundPart)
		claims []evidence.Claim
		want   string // part of the reason; empty: none
	}{
		"as asked":                     {nil, all, ""},
		"no signature of the first":    {nil, without(0), "x/fp32 has no signature"},
		"no provenance of the first":   {nil, without(1), "x/fp32 has no provenance"},
		"no signature of the second":   {nil, without(2), "x/int8 has no signature"},
		"no provenance of the second":  {nil, without(3), "x/int8 has no provenance"},
		"no statements":                {nil, nil, "has no "},
		"another plan":                 {func(_ *wantedParts, p *foundPart) { p.release.Plan = r.Digest }, all, "its plan is not that of this spec"},
		"an engine less":               {func(_ *wantedParts, p *foundPart) { p.release.Engines = p.release.Engines[:1] }, all, "does not have the engines that its builder says"},
		"an engine of another variant": {func(_ *wantedParts, p *foundPart) { p.release.Engines[1].Variant = "int4" }, all, "x/int4 is not what its builder says"},
		"an engine of another make":    {func(_ *wantedParts, p *foundPart) { p.release.Engines[1].Precision = "int4" }, all, "x/int8 is not what its builder says"},
		"one that the spec does not ask for": {func(w *wantedParts, _ *foundPart) { w.asked = w.asked[:1] }, all,
			"x/int8 is not what the spec asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted, found := w, foundPart{release: r, said: part}
			wanted.asked, found.release.Engines = slices.Clone(w.asked), slices.Clone(r.Engines)
			if c.change != nil {
				c.change(&wanted, &found)
			}
			got := wanted.checkEngines(found, c.claims)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Of the engines for one label the first counts, of parts that were measured by one run of the reference.
func TestChosenParts(t *testing.T) {
	t.Parallel()
	made := func(name, sources string, engines ...[2]string) foundPart {
		r := targetsOf(engines...)
		r.Digest, r.Sources = digest.FromString(name), digest.FromString(sources)
		for i := range r.Engines {
			r.Engines[i].Digest = digest.FromString(engines[i][0] + engines[i][1] + name[:1])
		}
		return foundPart{release: r}
	}
	x, y := [2]string{"x", "fp32"}, [2]string{"y", "fp32"}
	for name, c := range map[string]struct {
		parts  []foundPart
		chosen string // labels, with the number of the part
		aside  []string
	}{
		"two targets":        {[]foundPart{made("a1", "s", x), made("b1", "s", y)}, "x/fp32 0 y/fp32 1", nil},
		"the same again":     {[]foundPart{made("a1", "s", x), made("a2", "s", x)}, "x/fp32 0", nil},
		"other bytes":        {[]foundPart{made("a1", "s", x), made("b1", "s", x, y)}, "x/fp32 0 y/fp32 1", []string{"x/fp32 it was built again with other bytes"}},
		"another run":        {[]foundPart{made("a1", "s", x), made("b1", "other", y)}, "x/fp32 0", []string{" it has another run of the reference model"}},
		"nothing":            {nil, "", nil},
		"another run, first": {[]foundPart{made("a1", "other", x), made("b1", "s", x), made("c1", "other", y)}, "x/fp32 0 y/fp32 2", []string{" it has another run of the reference model"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, aside := choose(c.parts)
			var got []string
			for _, label := range []string{"x/fp32", "y/fp32"} {
				if e, ok := all[label]; ok {
					at := slices.IndexFunc(c.parts, func(p foundPart) bool { return p.release.Digest == e.part.release.Digest })
					got = append(got, label+" "+string(rune('0'+at)))
				}
			}
			if strings.Join(got, " ") != c.chosen || len(aside) != len(c.aside) {
				t.Fatalf("got %q, aside %+v; want %q, aside %q", got, aside, c.chosen, c.aside)
			}
			for i, a := range aside {
				if !strings.HasPrefix(a.Label+" "+a.Reason, c.aside[i]) {
					t.Errorf("aside %+v, want %q", a, c.aside[i])
				}
			}
		})
	}
}
