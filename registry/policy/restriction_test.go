package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

const prodEnvironment = "oci://local/prod/"

// restricted is a restriction of a kind, by the approver.
func restricted(t testing.TB, kind evidence.RestrictionKind, text string) evidence.Restriction {
	t.Helper()
	r, err := evidence.ParseRestriction(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	r.Reason, r.By, r.IssuedOn = "recalled by its vendor", approver, listTime(1)
	return r
}

func listTime(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }

// listed is a claim of the approver with a list. Its previous list is the one before, if any.
func listed(counter int64, before *evidence.Claim, entries ...evidence.Restriction) evidence.Claim {
	l := evidence.RestrictionList{ResourceURI: prodEnvironment, Counter: counter, IssuedOn: listTime(int(counter)), Reason: "why", Entries: entries}
	if before != nil {
		l.Previous = before.Bundle
	}
	return claim(evidence.PredicateRestrictions, digest.FromString(prodEnvironment), approver, evidence.RoleApprover, l)
}

// inForce are the restrictions of a first list.
func inForce(t testing.TB, entries ...evidence.Restriction) restriction.Restrictions {
	t.Helper()
	in, err := restriction.RestrictionsInForce(prodEnvironment, listed(1, nil, entries...))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// builtBy is provenance of an engine by this program: what quantized it and with what; nil
// calibration is not said, as before there was that field.
func builtBy(subject registry.Digest, quantizer string, calibration []registry.Digest) evidence.Claim {
	internal := map[string]any{"toolchain": map[string]string{"name": "onnxruntime", "version": "1.30.0"}, "made": map[string]any{}}
	if quantizer != "" {
		name, version, _ := strings.Cut(quantizer, " ")
		internal["made"] = map[string]any{"quantizer": map[string]string{"name": name, "version": version}, "quantize": map[string]any{"method": "static"}}
	}
	if calibration != nil {
		internal["calibration"] = calibration
	}
	return claim(evidence.PredicateProvenance, subject, builder, evidence.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": restriction.BuildType, "internalParameters": internal,
		"resolvedDependencies": []any{map[string]any{"name": "source", "digest": evidence.NewDigestSet(digest.FromString("model.onnx"))}},
	}})
}

// compiledFirst is provenance of an engine that a compiler made of what another toolchain had made of the model.
func compiledFirst(subject registry.Digest, name, version string) evidence.Claim {
	return claim(evidence.PredicateProvenance, subject, builder, evidence.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": restriction.BuildType, "internalParameters": map[string]any{
			"toolchain": map[string]string{"name": "edgetpu", "version": "16.0"}, "calibration": []registry.Digest{},
			"made": map[string]any{"compile": map[string]any{"from": map[string]string{"name": name, "version": version}}},
		}}})
}

// A restriction concerns what was made from it, and what may have been.
func TestRestrictionsMatch(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	library := digest.FromString("ops.so")
	calibration := digest.FromString("calibration")
	full := builtBy(e.Digest, "nncf 2.14.0", []registry.Digest{calibration})
	foreign := claim(evidence.PredicateProvenance, e.Digest, builder, evidence.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": "https://example.com/other", "resolvedDependencies": []any{map[string]any{"digest": evidence.NewDigestSet(digest.FromString("far"))}}}})
	foreignTool := claim(evidence.PredicateProvenance, e.Digest, builder, evidence.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": "https://example.com/other", "internalParameters": map[string]any{"toolchain": map[string]string{"name": "iree", "version": "3.0"}}}})
	const unstated = "no provenance of a trusted builder"
	for _, c := range []struct {
		name   string
		kind   evidence.RestrictionKind
		thing  string
		claims []evidence.Claim
		want   string // part of why; empty: it is not concerned
	}{
		{"source file", evidence.RestrictSource, string(digest.FromString("model.onnx")), []evidence.Claim{full}, "made from this source"},
		{"sources index", evidence.RestrictSource, string(r.Sources), []evidence.Claim{full}, "made from this source"},
		{"reference", evidence.RestrictSource, string(e.Reference), nil, "made from this source"},
		{"another source", evidence.RestrictSource, string(library), []evidence.Claim{full}, ""},
		{"a source, and nothing is known", evidence.RestrictSource, string(library), nil, unstated},
		{"a source that another builder names", evidence.RestrictSource, string(digest.FromString("far")), []evidence.Claim{full, foreign}, "made from this source"},
		{"a source, and another builder says little", evidence.RestrictSource, string(library), []evidence.Claim{foreign}, unstated},
		{"calibration", evidence.RestrictCalibration, string(calibration), []evidence.Claim{full}, "quantized with this data"},
		{"other calibration", evidence.RestrictCalibration, string(library), []evidence.Claim{full}, ""},
		{"no calibration", evidence.RestrictCalibration, string(calibration), []evidence.Claim{builtBy(e.Digest, "nncf 2.14.0", []registry.Digest{})}, ""},
		{"calibration of an earlier build, quantized", evidence.RestrictCalibration, string(calibration), []evidence.Claim{builtBy(e.Digest, "nncf 2.14.0", nil)}, "does not say with which data"},
		{"calibration of an earlier build, not quantized", evidence.RestrictCalibration, string(calibration), []evidence.Claim{builtBy(e.Digest, "", nil)}, ""},
		{"calibration, one of two builders does not say", evidence.RestrictCalibration, string(library),
			[]evidence.Claim{full, builtBy(e.Digest, "nncf 2.14.0", nil)}, "does not say with which data"},
		{"toolchain", evidence.RestrictToolchain, "onnxruntime@<1.31", []evidence.Claim{full}, "made with onnxruntime 1.30.0"},
		{"toolchain of another version", evidence.RestrictToolchain, "onnxruntime@<1.30", []evidence.Claim{full}, ""},
		{"toolchain, nothing but the manifest", evidence.RestrictToolchain, "onnxruntime@1.30.0", nil, "made with onnxruntime 1.30.0"},
		{"quantizer", evidence.RestrictToolchain, "nncf@>=2,<3", []evidence.Claim{full}, "made with nncf 2.14.0"},
		{"quantizer of a version that cannot be compared", evidence.RestrictToolchain, "nncf@<1", []evidence.Claim{builtBy(e.Digest, "nncf main", nil)}, "made with nncf main"},
		{"what compiled the model first", evidence.RestrictToolchain, "litert@<2.2", []evidence.Claim{compiledFirst(e.Digest, "litert", "2.1.2")}, "made with litert 2.1.2"},
		{"what compiled the model first, in another version", evidence.RestrictToolchain, "litert@<2.1", []evidence.Claim{compiledFirst(e.Digest, "litert", "2.1.2")}, ""},
		{"another toolchain", evidence.RestrictToolchain, "openvino@>=0", []evidence.Claim{full}, ""},
		{"another toolchain, and nothing is known", evidence.RestrictToolchain, "openvino@>=0", nil, unstated},
		{"a toolchain that another builder names", evidence.RestrictToolchain, "iree@>=0", []evidence.Claim{full, foreignTool}, ""},
		{"operator", evidence.RestrictOperator, string(library), nil, "carries this library"},
		{"another operator", evidence.RestrictOperator, string(calibration), nil, ""},
		{"provenance of the other engine", evidence.RestrictSource, string(library), []evidence.Claim{builtBy(r.Engines[0].Digest, "", []registry.Digest{})}, unstated},
		{"provenance of a revoked key", evidence.RestrictSource, string(library), inState([]evidence.Claim{full}, builder, evidence.KeyRevoked, 0), unstated},
		{"provenance of a key that is no builder's", evidence.RestrictSource, string(library), []evidence.Claim{signedAs(full, "verifier-key", evidence.RoleVerifier)}, unstated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := e
			engine.Toolchain.Name = "onnxruntime"
			engine.Operators = []artifact.Operators{{Path: "ops.so", Digest: library}}
			restriction := restricted(t, c.kind, c.thing)
			got := inForce(t, restriction).Match(r, engine, c.claims)
			if len(got) != min(1, len(c.want)) || len(got) == 1 && (!strings.Contains(got[0].Why, c.want) || !got[0].Restriction.Equal(restriction)) {
				t.Errorf("%s matches %+v, want %q", restriction, got, c.want)
			}
		})
	}
}

// signedAs is a claim by another key in another role.
func signedAs(c evidence.Claim, signer string, role evidence.Role) evidence.Claim {
	c.Signer, c.Roles = signer, []evidence.Role{role}
	return c
}

// All decisions about a release see a restriction, and refuse while restrictions are unknown.
func TestRestrictionsInDecisions(t *testing.T) {
	t.Parallel()
	r := sample()
	bad := r.Engines[1]
	bad.Toolchain.Name = "openvino"
	r.Engines[1] = bad
	claims := inProd(r)
	for i, e := range r.Engines {
		claims = append(claims, recorded(int64(5+i), builtBy(e.Digest, "", []registry.Digest{})))
	}
	demands := func(in restriction.Restrictions) policy.Policy {
		p := policy.Environment{Name: "prod", From: "staging", Require: policy.DefaultRequire()}.Policy()
		p.Promotion.Restrictions = in
		return p
	}
	decisions := map[string]func(restriction.Restrictions) policy.Decision{
		"admission": func(in restriction.Restrictions) policy.Decision { return demands(in).Check(r, claims) },
		"engine":    func(in restriction.Restrictions) policy.Decision { return demands(in).CheckEngine(r, bad, claims) },
		"standing": func(in restriction.Restrictions) policy.Decision {
			return policy.CheckStanding(prodURI, r, claims, in)
		},
		"engine's": func(in restriction.Restrictions) policy.Decision {
			return policy.CheckEngineStanding(prodURI, r, bad, claims, in)
		},
		"return":       func(in restriction.Restrictions) policy.Decision { return policy.CheckReturn(prodURI, r, claims, in) },
		"not promoted": func(in restriction.Restrictions) policy.Decision { return policy.CheckUnpromoted(r, bad, claims, in) },
		"beside another": func(in restriction.Restrictions) policy.Decision {
			return policy.CheckEngineStanding(prodURI, r, r.Engines[0], claims, in)
		},
	}
	const want = `no-restriction of x86/int8: it was made with openvino 1.30.0, and toolchain openvino@>=1,<2 is restricted ("recalled by its vendor"): choose another version`
	for name, decide := range decisions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := decide(restriction.NoRestrictions()); !d.Allowed() {
				t.Errorf("without restrictions: %s", unmet(d))
			}
			if d := decide(restriction.Restrictions{}); d.Allowed() || !strings.Contains(unmet(d), "unknown what is restricted") {
				t.Errorf("while restrictions are unknown: allowed is %t, unmet %q", d.Allowed(), unmet(d))
			}
			d := decide(inForce(t, restricted(t, evidence.RestrictToolchain, "openvino@>=1,<2")))
			if name == "beside another" {
				if !d.Allowed() {
					t.Errorf("the other engine: %s", unmet(d))
				}
				return
			}
			if got := unmet(d); strings.TrimSpace(got) != want {
				t.Errorf("unmet is %q, want %q", got, want)
			}
			if !slices.ContainsFunc(d.Unmet(), policy.Requirement.Objects) {
				t.Error("the requirement does not object")
			}
		})
	}
}

// What does not count as a list makes restrictions unknown.
func TestRestrictionsInForce(t *testing.T) {
	t.Parallel()
	one, two := restricted(t, evidence.RestrictToolchain, "a@<1"), restricted(t, evidence.RestrictToolchain, "b@<2")
	first := listed(1, nil, one)
	second := listed(2, &first, two)
	third := listed(3, &second)
	revoked := func(c evidence.Claim) evidence.Claim {
		return inState([]evidence.Claim{c}, approver, evidence.KeyRevoked, 0)[0]
	}
	rewritten := func(edit func(l *evidence.RestrictionList)) evidence.Claim {
		var l evidence.RestrictionList
		if err := json.Unmarshal(first.Statement.Predicate, &l); err != nil {
			t.Fatal(err)
		}
		edit(&l)
		return claim(evidence.PredicateRestrictions, digest.FromString(prodEnvironment), approver, evidence.RoleApprover, l)
	}
	elsewhere := rewritten(func(l *evidence.RestrictionList) { l.ResourceURI = "oci://local/staging/" })
	about := first
	about.Statement.Subject = []evidence.StatementSubject{{Digest: evidence.NewDigestSet(digest.FromString("oci://local/staging/"))}}
	garbled := first
	garbled.Statement.Predicate = json.RawMessage(`{"resourceUri":"oci://local/prod/","Counter":1}`)
	for _, c := range []struct {
		name  string
		lists []evidence.Claim
		want  string // things in force, or part of the error
		code  registry.Code
	}{
		{"first", []evidence.Claim{first}, "toolchain a@<1", ""},
		{"lifted and added", []evidence.Claim{second}, "toolchain b@<2", ""},
		{"empty", []evidence.Claim{third}, "", ""},
		{"signer revoked: it adds and does not lift", []evidence.Claim{revoked(second), first}, "toolchain b@<2 toolchain a@<1", ""},
		{"two signers revoked", []evidence.Claim{revoked(third), revoked(second), first}, "toolchain b@<2 toolchain a@<1", ""},
		{"first signer revoked", []evidence.Claim{revoked(first)}, "toolchain a@<1", ""},
		{"signer revoked, list before missing", []evidence.Claim{revoked(second)}, "the list before it is missing", registry.CodeTrust},
		{"signer revoked, another list before", []evidence.Claim{revoked(third), first}, "is not the one that the next list names", registry.CodeTrust},
		{"none", nil, "the list before it is missing", registry.CodeTrust},
		{"not an approver", []evidence.Claim{signedAs(first, builder, evidence.RoleBuilder)}, "is not trusted as approver for all of oci://local/prod/", registry.CodeTrust},
		{"no role", []evidence.Claim{signedAs(first, builder, "")}, "is not trusted as approver", registry.CodeTrust},
		{"of another environment", []evidence.Claim{elsewhere}, "it is for oci://local/staging/, not for oci://local/prod/", registry.CodeTrust},
		{"about another environment", []evidence.Claim{about}, "it is not about oci://local/prod/", registry.CodeTrust},
		{"a quarantine", []evidence.Claim{quarantine(digest.FromString(prodEnvironment))}, "predicate type", registry.CodeTrust},
		{"unreadable", []evidence.Claim{garbled}, `want "counter"`, registry.CodeTrust},
		{"unknown kind", []evidence.Claim{rewritten(func(l *evidence.RestrictionList) { l.Entries[0].Kind = "weather" })}, `kind "weather"`, registry.CodeTrust},
		{"unknown range", []evidence.Claim{rewritten(func(l *evidence.RestrictionList) { l.Entries[0].Versions = "~1" })}, "range of versions", registry.CodeTrust},
		{"a thing twice", []evidence.Claim{listed(1, nil, one, one)}, "is in it twice", registry.CodeTrust},
		{"no counter", []evidence.Claim{listed(0, nil, one)}, "counter 0", registry.CodeTrust},
		{"second without the first", []evidence.Claim{listed(2, nil, one)}, "want the digest of the list before", registry.CodeTrust},
		{"first with one before", []evidence.Claim{listed(1, &first, one)}, "want the digest of the list before", registry.CodeTrust},
		{"no reason", []evidence.Claim{rewritten(func(l *evidence.RestrictionList) { l.Entries[0].Reason = "" })}, "want a reason", registry.CodeTrust},
		{"too many", []evidence.Claim{rewritten(func(l *evidence.RestrictionList) {
			l.Entries = make([]evidence.Restriction, evidence.MaxRestrictions+1)
		})}, "want at most", registry.CodeTrust},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := restriction.RestrictionsInForce(prodEnvironment, c.lists...)
			if err != nil {
				if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v (%s), want %q (%s)", err, registry.CodeOf(err), c.want, c.code)
				}
				if !in.Exist() || policy.CheckStanding(prodURI, sample(), inProd(sample()), in).Allowed() {
					t.Error("with an error, a release is allowed")
				}
				return
			}
			var things []string
			for _, r := range in.Entries() {
				things = append(things, r.String())
			}
			if got := strings.Join(things, " "); c.code != "" || got != c.want || in.Exist() != (got != "") {
				t.Errorf("in force is %q, want %q", got, c.want)
			}
		})
	}
}

// Only the next list follows the one in force, and it changes nothing that it does not say.
func TestNextList(t *testing.T) {
	t.Parallel()
	one, two := restricted(t, evidence.RestrictToolchain, "a@<1"), restricted(t, evidence.RestrictToolchain, "b@<2")
	claimed := listed(4, &evidence.Claim{Bundle: digest.FromString("third")}, one)
	current, err := claimed.RestrictionList(prodEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	in, err := restriction.RestrictionsInForce(prodEnvironment, claimed)
	if err != nil {
		t.Fatal(err)
	}
	next := func(edit func(l *evidence.RestrictionList)) evidence.RestrictionList {
		l := evidence.RestrictionList{ResourceURI: prodEnvironment, Counter: 5, Previous: claimed.Bundle, IssuedOn: listTime(5), Reason: "why"}
		added := two
		added.IssuedOn = l.IssuedOn
		l.Entries = []evidence.Restriction{one, added}
		edit(&l)
		return l
	}
	for _, c := range []struct {
		name string
		list evidence.RestrictionList
		code registry.Code
	}{
		{"adds", next(func(*evidence.RestrictionList) {}), ""},
		{"lifts", next(func(l *evidence.RestrictionList) { l.Entries = nil }), ""},
		{"repeats", next(func(l *evidence.RestrictionList) { l.Entries = l.Entries[:1] }), ""},
		{"again", next(func(l *evidence.RestrictionList) { l.Counter = 4 }), registry.CodeConflict},
		{"older", next(func(l *evidence.RestrictionList) { l.Counter = 3 }), registry.CodeConflict},
		{"leaves one out", next(func(l *evidence.RestrictionList) { l.Counter = 6 }), registry.CodeConflict},
		{"from the beginning", next(func(l *evidence.RestrictionList) { l.Counter, l.Previous = 1, "" }), registry.CodeConflict},
		{"forked", next(func(l *evidence.RestrictionList) { l.Previous = digest.FromString("fork") }), registry.CodeConflict},
		{"another reason", next(func(l *evidence.RestrictionList) { l.Entries[0].Reason = "never mind" }), registry.CodeTrust},
		{"another approver", next(func(l *evidence.RestrictionList) { l.Entries[0].By = "somebody" }), registry.CodeTrust},
		{"new by another", next(func(l *evidence.RestrictionList) { l.Entries[1].By = "somebody" }), registry.CodeTrust},
		{"new and backdated", next(func(l *evidence.RestrictionList) { l.Entries[1].IssuedOn = listTime(2) }), registry.CodeTrust},
	} {
		if err := restriction.CheckNext(c.list, current, claimed.Bundle, in, approver); registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: error %v, want %q", c.name, err, c.code)
		}
	}
	if err := restriction.CheckNext((evidence.RestrictionList{Counter: 1}), evidence.RestrictionList{}, "", restriction.NoRestrictions(), approver); err != nil {
		t.Errorf("the first list: %v", err)
	}
}

func TestParseRestrictionRefuses(t *testing.T) {
	t.Parallel()
	sha := string(digest.FromString("x"))
	for _, c := range []struct {
		kind evidence.RestrictionKind
		text string
	}{
		{evidence.RestrictSource, ""}, {evidence.RestrictSource, "model.onnx"}, {evidence.RestrictSource, "md5:d41d8cd98f00b204e9800998ecf8427e"},
		{evidence.RestrictToolchain, sha}, {evidence.RestrictToolchain, "onnxruntime"}, {evidence.RestrictToolchain, "onnxruntime@"},
		{evidence.RestrictToolchain, "@<1"}, {evidence.RestrictToolchain, "a b@<1"}, {"", sha}, {"release", sha},
	} {
		if _, err := evidence.ParseRestriction(c.kind, c.text); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s %q: error %v, want it refused", c.kind, c.text, err)
		}
	}
	for _, name := range []string{"azAZ09._-", strings.Repeat("a", 128)} {
		if _, err := evidence.ParseRestriction(evidence.RestrictToolchain, name+"@<1"); err != nil {
			t.Errorf("toolchain %q: %v", name, err)
		}
	}
	if r, err := evidence.ParseRestriction(evidence.RestrictToolchain, strings.Repeat("a", 129)+"@<1"); err == nil {
		t.Errorf("a name of 129 letters is read as %s", r)
	}
	if r, err := evidence.ParseRestriction(evidence.RestrictToolchain, "onnxruntime@>=1.22, <1.24"); err != nil ||
		r.String() != "toolchain onnxruntime@>=1.22,<1.24" {
		t.Errorf("with a blank: %s, error %v", r, err)
	}
}

func TestRestrictionTexts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evidence.Restriction){
		"no reason": func(r *evidence.Restriction) { r.Reason = "" }, "a reason that draws on a terminal": func(r *evidence.Restriction) { r.Reason = "a\x1b[2J" },
		"no approver": func(r *evidence.Restriction) { r.By = "" }, "an approver that draws on a terminal": func(r *evidence.Restriction) { r.By = "a\x1b[2J" },
		"no time": func(r *evidence.Restriction) { r.IssuedOn = time.Time{} },
	} {
		r := restricted(t, evidence.RestrictToolchain, "a@<1")
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// A restriction is about a digest or a toolchain, and not about both.
func TestRestrictionThings(t *testing.T) {
	t.Parallel()
	d := digest.FromString("model.onnx")
	for name, c := range map[string]struct {
		thing evidence.Restriction
		valid bool
	}{
		"a source":                     {evidence.Restriction{Kind: evidence.RestrictSource, Digest: d}, true},
		"a source and a toolchain":     {evidence.Restriction{Kind: evidence.RestrictSource, Digest: d, Toolchain: "a"}, false},
		"a source and versions":        {evidence.Restriction{Kind: evidence.RestrictSource, Digest: d, Versions: "<1"}, false},
		"a toolchain":                  {evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "a", Versions: "<1"}, true},
		"a toolchain and a digest":     {evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "a", Versions: "<1", Digest: d}, false},
		"a toolchain without versions": {evidence.Restriction{Kind: evidence.RestrictToolchain, Toolchain: "a"}, false},
	} {
		r := c.thing
		r.Reason, r.By, r.IssuedOn = "recalled", approver, listTime(1)
		if err := r.Validate(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
}

// Lists are counted up to the largest number that every JSON reader reads exactly.
func TestRestrictionListIsValid(t *testing.T) {
	t.Parallel()
	const largest = 1<<53 - 1
	before := digest.FromString("the list before")
	for name, c := range map[string]struct {
		counter  int64
		previous registry.Digest
		valid    bool
	}{
		"first": {1, "", true}, "largest": {largest, before, true}, "beyond it": {largest + 1, before, false},
		"without the list before": {2, "", false}, "after a list that has no digest": {2, "sha256:00", false},
	} {
		l := evidence.RestrictionList{ResourceURI: prodEnvironment, Counter: c.counter, Previous: c.previous, IssuedOn: listTime(1), Reason: "why"}
		if _, err := evidence.NewRestrictionList(l); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
}

// A list that anybody wrote never makes anything allowed that its bytes do not say, and reading
// it never fails in another way than by an error.
func FuzzRestrictionList(f *testing.F) {
	good := listed(1, nil, restricted(f, evidence.RestrictToolchain, "a@<1"))
	f.Add([]byte(good.Statement.Predicate))
	f.Add([]byte(`{"resourceUri":"oci://local/prod/","counter":1,"issuedOn":"2026-01-02T01:00:00Z","reason":"r","entries":[{}]}`))
	f.Add([]byte(`{"counter":9007199254740993}`))
	f.Fuzz(func(t *testing.T, predicate []byte) {
		c := good
		c.Statement.Predicate = predicate
		l, err := c.RestrictionList(prodEnvironment)
		if err != nil {
			return
		}
		if err := l.Validate(); err != nil || l.ResourceURI != prodEnvironment {
			t.Errorf("%s was read, and is not valid: %v", predicate, err)
		}
		if _, err := evidence.NewRestrictionList(l); err != nil {
			t.Errorf("%s cannot be written again: %v", predicate, err)
		}
		if in, err := restriction.RestrictionsInForce(prodEnvironment, c); err != nil || len(in.Entries()) != len(l.Entries) {
			t.Errorf("%s: in force are %v, error %v", predicate, in.Entries(), err)
		}
	})
}
