package registry_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

const prodEnvironment = "oci://local/prod/"

// restricted is a restriction of a kind, by the approver.
func restricted(t testing.TB, kind registry.RestrictionKind, text string) registry.Restriction {
	t.Helper()
	r, err := registry.ParseRestriction(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	r.Reason, r.By, r.IssuedOn = "recalled by its vendor", approver, listTime(1)
	return r
}

func listTime(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }

// listed is a claim of the approver with a list. Its previous list is the one before, if any.
func listed(counter int64, before *registry.Claim, entries ...registry.Restriction) registry.Claim {
	l := registry.RestrictionList{ResourceURI: prodEnvironment, Counter: counter, IssuedOn: listTime(int(counter)), Reason: "why", Entries: entries}
	if before != nil {
		l.Previous = before.Bundle
	}
	return claim(registry.PredicateRestrictions, digest.FromString(prodEnvironment), approver, registry.RoleApprover, l)
}

// inForce are the restrictions of a first list.
func inForce(t testing.TB, entries ...registry.Restriction) registry.Restrictions {
	t.Helper()
	in, err := registry.RestrictionsInForce(prodEnvironment, listed(1, nil, entries...))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// builtBy is provenance of an engine by this program: what quantized it and with what; nil
// calibration is not said, as before there was that field.
func builtBy(subject registry.Digest, quantizer string, calibration []registry.Digest) registry.Claim {
	internal := map[string]any{"toolchain": map[string]string{"name": "onnxruntime", "version": "1.30.0"}, "made": map[string]any{}}
	if quantizer != "" {
		name, version, _ := strings.Cut(quantizer, " ")
		internal["made"] = map[string]any{"quantizer": map[string]string{"name": name, "version": version}, "quantize": map[string]any{"method": "static"}}
	}
	if calibration != nil {
		internal["calibration"] = calibration
	}
	return claim(registry.PredicateProvenance, subject, builder, registry.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": registry.BuildType, "internalParameters": internal,
		"resolvedDependencies": []any{map[string]any{"name": "source", "digest": registry.NewDigestSet(digest.FromString("model.onnx"))}},
	}})
}

// compiledFirst is provenance of an engine that a compiler made of what another toolchain had made of the model.
func compiledFirst(subject registry.Digest, name, version string) registry.Claim {
	return claim(registry.PredicateProvenance, subject, builder, registry.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": registry.BuildType, "internalParameters": map[string]any{
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
	foreign := claim(registry.PredicateProvenance, e.Digest, builder, registry.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": "https://example.com/other", "resolvedDependencies": []any{map[string]any{"digest": registry.NewDigestSet(digest.FromString("far"))}}}})
	foreignTool := claim(registry.PredicateProvenance, e.Digest, builder, registry.RoleBuilder, map[string]any{"buildDefinition": map[string]any{
		"buildType": "https://example.com/other", "internalParameters": map[string]any{"toolchain": map[string]string{"name": "iree", "version": "3.0"}}}})
	const unstated = "no provenance of a trusted builder"
	for _, c := range []struct {
		name   string
		kind   registry.RestrictionKind
		thing  string
		claims []registry.Claim
		want   string // part of why; empty: it is not concerned
	}{
		{"source file", registry.RestrictSource, string(digest.FromString("model.onnx")), []registry.Claim{full}, "made from this source"},
		{"sources index", registry.RestrictSource, string(r.Sources), []registry.Claim{full}, "made from this source"},
		{"reference", registry.RestrictSource, string(e.Reference), nil, "made from this source"},
		{"another source", registry.RestrictSource, string(library), []registry.Claim{full}, ""},
		{"a source, and nothing is known", registry.RestrictSource, string(library), nil, unstated},
		{"a source that another builder names", registry.RestrictSource, string(digest.FromString("far")), []registry.Claim{full, foreign}, "made from this source"},
		{"a source, and another builder says little", registry.RestrictSource, string(library), []registry.Claim{foreign}, unstated},
		{"calibration", registry.RestrictCalibration, string(calibration), []registry.Claim{full}, "quantized with this data"},
		{"other calibration", registry.RestrictCalibration, string(library), []registry.Claim{full}, ""},
		{"no calibration", registry.RestrictCalibration, string(calibration), []registry.Claim{builtBy(e.Digest, "nncf 2.14.0", []registry.Digest{})}, ""},
		{"calibration of an earlier build, quantized", registry.RestrictCalibration, string(calibration), []registry.Claim{builtBy(e.Digest, "nncf 2.14.0", nil)}, "does not say with which data"},
		{"calibration of an earlier build, not quantized", registry.RestrictCalibration, string(calibration), []registry.Claim{builtBy(e.Digest, "", nil)}, ""},
		{"calibration, one of two builders does not say", registry.RestrictCalibration, string(library),
			[]registry.Claim{full, builtBy(e.Digest, "nncf 2.14.0", nil)}, "does not say with which data"},
		{"toolchain", registry.RestrictToolchain, "onnxruntime@<1.31", []registry.Claim{full}, "made with onnxruntime 1.30.0"},
		{"toolchain of another version", registry.RestrictToolchain, "onnxruntime@<1.30", []registry.Claim{full}, ""},
		{"toolchain, nothing but the manifest", registry.RestrictToolchain, "onnxruntime@1.30.0", nil, "made with onnxruntime 1.30.0"},
		{"quantizer", registry.RestrictToolchain, "nncf@>=2,<3", []registry.Claim{full}, "made with nncf 2.14.0"},
		{"quantizer of a version that cannot be compared", registry.RestrictToolchain, "nncf@<1", []registry.Claim{builtBy(e.Digest, "nncf main", nil)}, "made with nncf main"},
		{"what compiled the model first", registry.RestrictToolchain, "litert@<2.2", []registry.Claim{compiledFirst(e.Digest, "litert", "2.1.2")}, "made with litert 2.1.2"},
		{"what compiled the model first, in another version", registry.RestrictToolchain, "litert@<2.1", []registry.Claim{compiledFirst(e.Digest, "litert", "2.1.2")}, ""},
		{"another toolchain", registry.RestrictToolchain, "openvino@>=0", []registry.Claim{full}, ""},
		{"another toolchain, and nothing is known", registry.RestrictToolchain, "openvino@>=0", nil, unstated},
		{"a toolchain that another builder names", registry.RestrictToolchain, "iree@>=0", []registry.Claim{full, foreignTool}, ""},
		{"operator", registry.RestrictOperator, string(library), nil, "carries this library"},
		{"another operator", registry.RestrictOperator, string(calibration), nil, ""},
		{"provenance of the other engine", registry.RestrictSource, string(library), []registry.Claim{builtBy(r.Engines[0].Digest, "", []registry.Digest{})}, unstated},
		{"provenance of a revoked key", registry.RestrictSource, string(library), inState([]registry.Claim{full}, builder, registry.KeyRevoked, 0), unstated},
		{"provenance of a key that is no builder's", registry.RestrictSource, string(library), []registry.Claim{signedAs(full, "verifier-key", registry.RoleVerifier)}, unstated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := e
			engine.Toolchain.Name = "onnxruntime"
			engine.Operators = []registry.Operators{{Path: "ops.so", Digest: library}}
			restriction := restricted(t, c.kind, c.thing)
			got := inForce(t, restriction).Match(r, engine, c.claims)
			if len(got) != min(1, len(c.want)) || len(got) == 1 && (!strings.Contains(got[0].Why, c.want) || !got[0].Restriction.Equal(restriction)) {
				t.Errorf("%s matches %+v, want %q", restriction, got, c.want)
			}
		})
	}
}

// signedAs is a claim by another key in another role.
func signedAs(c registry.Claim, signer string, role registry.Role) registry.Claim {
	c.Signer, c.Roles = signer, []registry.Role{role}
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
	policy := func(in registry.Restrictions) registry.Policy {
		p := registry.Environment{Name: "prod", From: "staging", Require: registry.DefaultRequire()}.Policy()
		p.Promotion.Restrictions = in
		return p
	}
	decisions := map[string]func(registry.Restrictions) registry.Decision{
		"admission": func(in registry.Restrictions) registry.Decision { return policy(in).Check(r, claims) },
		"engine":    func(in registry.Restrictions) registry.Decision { return policy(in).CheckEngine(r, bad, claims) },
		"standing": func(in registry.Restrictions) registry.Decision {
			return registry.CheckStanding(prodURI, r, claims, in)
		},
		"engine's": func(in registry.Restrictions) registry.Decision {
			return registry.CheckEngineStanding(prodURI, r, bad, claims, in)
		},
		"return":       func(in registry.Restrictions) registry.Decision { return registry.CheckReturn(prodURI, r, claims, in) },
		"not promoted": func(in registry.Restrictions) registry.Decision { return registry.CheckUnpromoted(r, bad, claims, in) },
		"beside another": func(in registry.Restrictions) registry.Decision {
			return registry.CheckEngineStanding(prodURI, r, r.Engines[0], claims, in)
		},
	}
	const want = `no-restriction of x86/int8: it was made with openvino 1.30.0, and toolchain openvino@>=1,<2 is restricted ("recalled by its vendor"): choose another version`
	for name, decide := range decisions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := decide(registry.NoRestrictions()); !d.Allowed() {
				t.Errorf("without restrictions: %s", unmet(d))
			}
			if d := decide(registry.Restrictions{}); d.Allowed() || !strings.Contains(unmet(d), "unknown what is restricted") {
				t.Errorf("while restrictions are unknown: allowed is %t, unmet %q", d.Allowed(), unmet(d))
			}
			d := decide(inForce(t, restricted(t, registry.RestrictToolchain, "openvino@>=1,<2")))
			if name == "beside another" {
				if !d.Allowed() {
					t.Errorf("the other engine: %s", unmet(d))
				}
				return
			}
			if got := unmet(d); strings.TrimSpace(got) != want {
				t.Errorf("unmet is %q, want %q", got, want)
			}
			if !slices.ContainsFunc(d.Unmet(), registry.Requirement.Objects) {
				t.Error("the requirement does not object")
			}
		})
	}
}

// What does not count as a list makes restrictions unknown.
func TestRestrictionsInForce(t *testing.T) {
	t.Parallel()
	one, two := restricted(t, registry.RestrictToolchain, "a@<1"), restricted(t, registry.RestrictToolchain, "b@<2")
	first := listed(1, nil, one)
	second := listed(2, &first, two)
	third := listed(3, &second)
	revoked := func(c registry.Claim) registry.Claim {
		return inState([]registry.Claim{c}, approver, registry.KeyRevoked, 0)[0]
	}
	rewritten := func(edit func(l *registry.RestrictionList)) registry.Claim {
		var l registry.RestrictionList
		if err := json.Unmarshal(first.Statement.Predicate, &l); err != nil {
			t.Fatal(err)
		}
		edit(&l)
		return claim(registry.PredicateRestrictions, digest.FromString(prodEnvironment), approver, registry.RoleApprover, l)
	}
	elsewhere := rewritten(func(l *registry.RestrictionList) { l.ResourceURI = "oci://local/staging/" })
	about := first
	about.Statement.Subject = []registry.StatementSubject{{Digest: registry.NewDigestSet(digest.FromString("oci://local/staging/"))}}
	garbled := first
	garbled.Statement.Predicate = json.RawMessage(`{"resourceUri":"oci://local/prod/","Counter":1}`)
	for _, c := range []struct {
		name  string
		lists []registry.Claim
		want  string // things in force, or part of the error
		code  registry.Code
	}{
		{"first", []registry.Claim{first}, "toolchain a@<1", ""},
		{"lifted and added", []registry.Claim{second}, "toolchain b@<2", ""},
		{"empty", []registry.Claim{third}, "", ""},
		{"signer revoked: it adds and does not lift", []registry.Claim{revoked(second), first}, "toolchain b@<2 toolchain a@<1", ""},
		{"two signers revoked", []registry.Claim{revoked(third), revoked(second), first}, "toolchain b@<2 toolchain a@<1", ""},
		{"first signer revoked", []registry.Claim{revoked(first)}, "toolchain a@<1", ""},
		{"signer revoked, list before missing", []registry.Claim{revoked(second)}, "the list before it is missing", registry.CodeTrust},
		{"signer revoked, another list before", []registry.Claim{revoked(third), first}, "is not the one that the next list names", registry.CodeTrust},
		{"none", nil, "the list before it is missing", registry.CodeTrust},
		{"not an approver", []registry.Claim{signedAs(first, builder, registry.RoleBuilder)}, "is not trusted as approver for all of oci://local/prod/", registry.CodeTrust},
		{"no role", []registry.Claim{signedAs(first, builder, "")}, "is not trusted as approver", registry.CodeTrust},
		{"of another environment", []registry.Claim{elsewhere}, "it is for oci://local/staging/, not for oci://local/prod/", registry.CodeTrust},
		{"about another environment", []registry.Claim{about}, "it is not about oci://local/prod/", registry.CodeTrust},
		{"a quarantine", []registry.Claim{quarantine(digest.FromString(prodEnvironment))}, "predicate type", registry.CodeTrust},
		{"unreadable", []registry.Claim{garbled}, `want "counter"`, registry.CodeTrust},
		{"unknown kind", []registry.Claim{rewritten(func(l *registry.RestrictionList) { l.Entries[0].Kind = "weather" })}, `kind "weather"`, registry.CodeTrust},
		{"unknown range", []registry.Claim{rewritten(func(l *registry.RestrictionList) { l.Entries[0].Versions = "~1" })}, "range of versions", registry.CodeTrust},
		{"a thing twice", []registry.Claim{listed(1, nil, one, one)}, "is in it twice", registry.CodeTrust},
		{"no counter", []registry.Claim{listed(0, nil, one)}, "counter 0", registry.CodeTrust},
		{"second without the first", []registry.Claim{listed(2, nil, one)}, "want the digest of the list before", registry.CodeTrust},
		{"first with one before", []registry.Claim{listed(1, &first, one)}, "want the digest of the list before", registry.CodeTrust},
		{"no reason", []registry.Claim{rewritten(func(l *registry.RestrictionList) { l.Entries[0].Reason = "" })}, "want a reason", registry.CodeTrust},
		{"too many", []registry.Claim{rewritten(func(l *registry.RestrictionList) {
			l.Entries = make([]registry.Restriction, registry.MaxRestrictions+1)
		})}, "want at most", registry.CodeTrust},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := registry.RestrictionsInForce(prodEnvironment, c.lists...)
			if err != nil {
				if registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v (%s), want %q (%s)", err, registry.CodeOf(err), c.want, c.code)
				}
				if !in.Exist() || registry.CheckStanding(prodURI, sample(), inProd(sample()), in).Allowed() {
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
	one, two := restricted(t, registry.RestrictToolchain, "a@<1"), restricted(t, registry.RestrictToolchain, "b@<2")
	claimed := listed(4, &registry.Claim{Bundle: digest.FromString("third")}, one)
	current, err := claimed.RestrictionList(prodEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	in, err := registry.RestrictionsInForce(prodEnvironment, claimed)
	if err != nil {
		t.Fatal(err)
	}
	next := func(edit func(l *registry.RestrictionList)) registry.RestrictionList {
		l := registry.RestrictionList{ResourceURI: prodEnvironment, Counter: 5, Previous: claimed.Bundle, IssuedOn: listTime(5), Reason: "why"}
		added := two
		added.IssuedOn = l.IssuedOn
		l.Entries = []registry.Restriction{one, added}
		edit(&l)
		return l
	}
	for _, c := range []struct {
		name string
		list registry.RestrictionList
		code registry.Code
	}{
		{"adds", next(func(*registry.RestrictionList) {}), ""},
		{"lifts", next(func(l *registry.RestrictionList) { l.Entries = nil }), ""},
		{"repeats", next(func(l *registry.RestrictionList) { l.Entries = l.Entries[:1] }), ""},
		{"again", next(func(l *registry.RestrictionList) { l.Counter = 4 }), registry.CodeConflict},
		{"older", next(func(l *registry.RestrictionList) { l.Counter = 3 }), registry.CodeConflict},
		{"leaves one out", next(func(l *registry.RestrictionList) { l.Counter = 6 }), registry.CodeConflict},
		{"from the beginning", next(func(l *registry.RestrictionList) { l.Counter, l.Previous = 1, "" }), registry.CodeConflict},
		{"forked", next(func(l *registry.RestrictionList) { l.Previous = digest.FromString("fork") }), registry.CodeConflict},
		{"another reason", next(func(l *registry.RestrictionList) { l.Entries[0].Reason = "never mind" }), registry.CodeTrust},
		{"another approver", next(func(l *registry.RestrictionList) { l.Entries[0].By = "somebody" }), registry.CodeTrust},
		{"new by another", next(func(l *registry.RestrictionList) { l.Entries[1].By = "somebody" }), registry.CodeTrust},
		{"new and backdated", next(func(l *registry.RestrictionList) { l.Entries[1].IssuedOn = listTime(2) }), registry.CodeTrust},
	} {
		if err := c.list.CheckNext(current, claimed.Bundle, in, approver); registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("%s: error %v, want %q", c.name, err, c.code)
		}
	}
	if err := (registry.RestrictionList{Counter: 1}).CheckNext(registry.RestrictionList{}, "", registry.NoRestrictions(), approver); err != nil {
		t.Errorf("the first list: %v", err)
	}
}

func TestParseRestrictionRefuses(t *testing.T) {
	t.Parallel()
	sha := string(digest.FromString("x"))
	for _, c := range []struct {
		kind registry.RestrictionKind
		text string
	}{
		{registry.RestrictSource, ""}, {registry.RestrictSource, "model.onnx"}, {registry.RestrictSource, "md5:d41d8cd98f00b204e9800998ecf8427e"},
		{registry.RestrictToolchain, sha}, {registry.RestrictToolchain, "onnxruntime"}, {registry.RestrictToolchain, "onnxruntime@"},
		{registry.RestrictToolchain, "@<1"}, {registry.RestrictToolchain, "a b@<1"}, {"", sha}, {"release", sha},
	} {
		if _, err := registry.ParseRestriction(c.kind, c.text); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s %q: error %v, want it refused", c.kind, c.text, err)
		}
	}
	for _, name := range []string{"azAZ09._-", strings.Repeat("a", 128)} {
		if _, err := registry.ParseRestriction(registry.RestrictToolchain, name+"@<1"); err != nil {
			t.Errorf("toolchain %q: %v", name, err)
		}
	}
	if r, err := registry.ParseRestriction(registry.RestrictToolchain, strings.Repeat("a", 129)+"@<1"); err == nil {
		t.Errorf("a name of 129 letters is read as %s", r)
	}
	if r, err := registry.ParseRestriction(registry.RestrictToolchain, "onnxruntime@>=1.22, <1.24"); err != nil ||
		r.String() != "toolchain onnxruntime@>=1.22,<1.24" {
		t.Errorf("with a blank: %s, error %v", r, err)
	}
}

func TestRestrictionTexts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*registry.Restriction){
		"no reason": func(r *registry.Restriction) { r.Reason = "" }, "a reason that draws on a terminal": func(r *registry.Restriction) { r.Reason = "a\x1b[2J" },
		"no approver": func(r *registry.Restriction) { r.By = "" }, "an approver that draws on a terminal": func(r *registry.Restriction) { r.By = "a\x1b[2J" },
		"no time": func(r *registry.Restriction) { r.IssuedOn = time.Time{} },
	} {
		r := restricted(t, registry.RestrictToolchain, "a@<1")
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
		thing registry.Restriction
		valid bool
	}{
		"a source":                     {registry.Restriction{Kind: registry.RestrictSource, Digest: d}, true},
		"a source and a toolchain":     {registry.Restriction{Kind: registry.RestrictSource, Digest: d, Toolchain: "a"}, false},
		"a source and versions":        {registry.Restriction{Kind: registry.RestrictSource, Digest: d, Versions: "<1"}, false},
		"a toolchain":                  {registry.Restriction{Kind: registry.RestrictToolchain, Toolchain: "a", Versions: "<1"}, true},
		"a toolchain and a digest":     {registry.Restriction{Kind: registry.RestrictToolchain, Toolchain: "a", Versions: "<1", Digest: d}, false},
		"a toolchain without versions": {registry.Restriction{Kind: registry.RestrictToolchain, Toolchain: "a"}, false},
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
		l := registry.RestrictionList{ResourceURI: prodEnvironment, Counter: c.counter, Previous: c.previous, IssuedOn: listTime(1), Reason: "why"}
		if _, err := registry.NewRestrictionList(l); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want valid %t", name, err, c.valid)
		}
	}
}

// A list that anybody wrote never makes anything allowed that its bytes do not say, and reading
// it never fails in another way than by an error.
func FuzzRestrictionList(f *testing.F) {
	good := listed(1, nil, restricted(f, registry.RestrictToolchain, "a@<1"))
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
		if _, err := registry.NewRestrictionList(l); err != nil {
			t.Errorf("%s cannot be written again: %v", predicate, err)
		}
		if in, err := registry.RestrictionsInForce(prodEnvironment, c); err != nil || len(in.Entries()) != len(l.Entries) {
			t.Errorf("%s: in force are %v, error %v", predicate, in.Entries(), err)
		}
	})
}
