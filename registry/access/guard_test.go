package access_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// recorder is a registry that says yes to everything and remembers that it was asked. It
// has the heads and events of two models in two environments.
type recorder struct {
	asked string
	err   error // of every call, beside the answer
}

var places = []registry.Head{
	{Environment: "staging", Model: "vision/digits"}, {Environment: "staging", Model: "text/mood"},
	{Environment: "prod", Model: "vision/digits"}, {Environment: "prod", Model: "text/mood"},
}

func (r *recorder) Environments(context.Context) (registry.Environments, error) {
	r.asked = "Environments"
	return registrytest.Chain(), r.err
}

func (r *recorder) Attest(context.Context, registry.AttestRequest) (registry.Attested, error) {
	r.asked = "Attest"
	return registry.Attested{}, r.err
}

func (r *recorder) Heads(context.Context, string, string) ([]registry.Head, error) {
	r.asked = "Heads"
	return append([]registry.Head(nil), places...), r.err
}

func (r *recorder) Resolve(context.Context, registry.ResolveQuery) (registry.Resolution, error) {
	r.asked = "Resolve"
	return registry.Resolution{}, r.err
}

func (r *recorder) History(context.Context, registry.HistoryQuery) ([]registry.Event, error) {
	r.asked = "History"
	var events []registry.Event
	for _, h := range places {
		events = append(events, registry.Event{Environment: h.Environment, Model: h.Model})
	}
	return events, r.err
}

func (r *recorder) Publish(context.Context, registry.Publication) (registry.Head, error) {
	r.asked = "Publish"
	return registry.Head{}, r.err
}

func (r *recorder) Attach(context.Context, registry.Attachment) (registry.Digest, error) {
	r.asked = "Attach"
	return "", r.err
}

func (r *recorder) Promote(context.Context, registry.PromoteRequest) (registry.Promotion, error) {
	r.asked = "Promote"
	return registry.Promotion{}, r.err
}

func (r *recorder) Rollback(context.Context, registry.RollbackRequest) (registry.Promotion, error) {
	r.asked = "Rollback"
	return registry.Promotion{}, r.err
}

func (r *recorder) SetHold(context.Context, string, string, string) error {
	r.asked = "SetHold"
	return r.err
}

func (r *recorder) Restrictions(context.Context, string) (registry.SignedRestrictions, error) {
	r.asked = "Restrictions"
	return registry.SignedRestrictions{}, r.err
}

func (r *recorder) Restrict(context.Context, string, []byte) (registry.SignedRestrictions, error) {
	r.asked = "Restrict"
	return registry.SignedRestrictions{}, r.err
}

func (r *recorder) TrustBundle(context.Context) (registry.SignedTrust, error) {
	r.asked = "TrustBundle"
	return registry.SignedTrust{}, r.err
}

func (r *recorder) PublishTrust(context.Context, []byte) (registry.SignedTrust, error) {
	r.asked = "PublishTrust"
	return registry.SignedTrust{}, r.err
}

func (r *recorder) HistoryFaults(context.Context) ([]registry.HistoryFault, error) {
	r.asked = "HistoryFaults"
	var faults []registry.HistoryFault
	for _, h := range places {
		faults = append(faults, registry.HistoryFault{Environment: h.Environment, Model: h.Model})
	}
	return faults, r.err
}

func (r *recorder) AcceptHistory(context.Context, string, string, string) error {
	r.asked = "AcceptHistory"
	return r.err
}

func (r *recorder) ReleaseHold(context.Context, registry.HoldRelease) error {
	r.asked = "ReleaseHold"
	return r.err
}

func (r *recorder) Release(context.Context, string, string, string) (registry.Release, error) {
	r.asked = "Release"
	return registry.Release{}, r.err
}

func (r *recorder) Claims(context.Context, string, registry.Release) ([]registry.Claim, registry.IgnoredEvidence, error) {
	r.asked = "Claims"
	return nil, registry.IgnoredEvidence{}, r.err
}

func (r *recorder) Engine(context.Context, string, string, registry.Digest) (registry.Engine, error) {
	r.asked = "Engine"
	return registry.Engine{}, r.err
}

func (r *recorder) Bundle(context.Context, string, string, registry.Digest) (registry.Bundle, error) {
	r.asked = "Bundle"
	return registry.Bundle{}, r.err
}

func (r *recorder) Models(context.Context, string, string, int) (registry.Page[registry.ModelHeads], error) {
	r.asked = "Models"
	var page registry.Page[registry.ModelHeads]
	for _, h := range places {
		page.Items = append(page.Items, registry.ModelHeads{Name: h.Model, Heads: []registry.Head{h}})
	}
	return page, r.err
}

func (r *recorder) Releases(context.Context, string, string, string, int) (registry.Page[registry.TaggedRelease], error) {
	r.asked = "Releases"
	return registry.Page[registry.TaggedRelease]{}, r.err
}

// call is a call of a method, and what it takes: a permission for vision/digits in an
// environment. An empty permission is any, in an empty environment anywhere.
type call struct {
	method      string
	permission  registry.Permission
	environment string
	do          func(ctx context.Context, r registry.Interface) error
}

const model = "vision/digits"

func calls(t *testing.T) []call {
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	attach := func(predicateType, environment string) func(ctx context.Context, r registry.Interface) error {
		role, _ := registry.RoleFor(predicateType)
		bundle := registrytest.Registry{Keys: keys}.Bundle(t, string(role), predicateType, struct{}{}, "sha256:"+registry.Digest(hex64))
		return func(ctx context.Context, r registry.Interface) error {
			_, err := r.Attach(ctx, registry.Attachment{Environment: environment, Model: model, Bundle: bundle})
			return err
		}
	}
	promote := func(from, to string) func(ctx context.Context, r registry.Interface) error {
		return func(ctx context.Context, r registry.Interface) error {
			_, err := r.Promote(ctx, registry.PromoteRequest{Model: model, From: from, To: to})
			return err
		}
	}
	return []call{
		{"Environments", "", "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Environments(ctx)
			return err
		}},
		{"Heads", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Heads(ctx, "prod", model)
			return err
		}},
		{"Heads", registry.PermissionRead, "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Heads(ctx, "", "")
			return err
		}},
		{"Resolve", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Resolve(ctx, registry.ResolveQuery{Environment: "prod", Model: model})
			return err
		}},
		{"History", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.History(ctx, registry.HistoryQuery{Environment: "prod", Model: model})
			return err
		}},
		{"History", registry.PermissionRead, "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.History(ctx, registry.HistoryQuery{})
			return err
		}},
		{"Publish", registry.PermissionPush, "staging", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Publish(ctx, registry.Publication{Model: model})
			return err
		}},
		{"Attach", registry.PermissionPush, "staging", attach(registry.PredicateSign, "staging")},
		{"Attach", registry.PermissionPush, "prod", attach(registry.PredicateProvenance, "prod")},
		{"Attach", registry.PermissionVerify, "staging", attach(registry.PredicateTestResult, "staging")},
		{"Attach", registry.PermissionVerify, "staging", attach(registry.PredicateParity, "staging")},
		{"Attach", registry.PermissionVerify, "prod", attach(registry.PredicatePerformance, "prod")},
		{"Attach", registry.PermissionApprove, "staging", attach(registry.PredicateApproval, "staging")},
		{"Attach", registry.PermissionApprove, "prod", attach(registry.PredicateQuarantine, "prod")},
		{"Attach", registry.PermissionPromote, "prod", attach(registry.PredicateVSA, "prod")},
		{"Attest", registry.PermissionAttest, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Attest(ctx, registry.AttestRequest{Environment: "prod", Model: model})
			return err
		}},
		{"Promote", registry.PermissionPromote, "prod", promote("staging", "prod")},
		{"Promote", registry.PermissionPromote, "prod", promote("", "")},
		{"Rollback", registry.PermissionPromote, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Rollback(ctx, registry.RollbackRequest{Environment: "prod", Model: model, Reason: "x"})
			return err
		}},
		{"SetHold", registry.PermissionPromote, "prod", func(ctx context.Context, r registry.Interface) error {
			return r.SetHold(ctx, "prod", model, "x")
		}},
		{"Restrictions", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Restrictions(ctx, "prod")
			return err
		}},
		{"Restrict", registry.PermissionApprove, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Restrict(ctx, "prod", []byte("list"))
			return err
		}},
		{"TrustBundle", "", "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.TrustBundle(ctx)
			return err
		}},
		{"PublishTrust", registry.PermissionAdminister, "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.PublishTrust(ctx, []byte("bundle"))
			return err
		}},
		{"HistoryFaults", registry.PermissionRead, "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.HistoryFaults(ctx)
			return err
		}},
		{"AcceptHistory", registry.PermissionAdminister, "prod", func(ctx context.Context, r registry.Interface) error {
			return r.AcceptHistory(ctx, "prod", model, "x")
		}},
		{"ReleaseHold", registry.PermissionPromote, "prod", func(ctx context.Context, r registry.Interface) error {
			return r.ReleaseHold(ctx, registry.HoldRelease{Environment: "prod", Model: model, Reason: "x"})
		}},
		{"Release", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Release(ctx, "prod", model, "1.0.0")
			return err
		}},
		{"Claims", registry.PermissionRead, "staging", func(ctx context.Context, r registry.Interface) error {
			_, _, err := r.Claims(ctx, "staging", registry.Release{Model: model})
			return err
		}},
		{"Engine", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Engine(ctx, "prod", model, "sha256:"+registry.Digest(hex64))
			return err
		}},
		{"Bundle", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Bundle(ctx, "prod", model, "sha256:"+registry.Digest(hex64))
			return err
		}},
		{"Models", registry.PermissionRead, "", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Models(ctx, "", "", 0)
			return err
		}},
		{"Releases", registry.PermissionRead, "prod", func(ctx context.Context, r registry.Interface) error {
			_, err := r.Releases(ctx, "prod", model, "", 0)
			return err
		}},
	}
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// as is a context of a principal with one grant.
func as(t *testing.T, permission registry.Permission, environment, model string) context.Context {
	return registry.WithPrincipal(t.Context(), registry.Principal{
		Name:   "token:test",
		Grants: []registry.Grant{{Permissions: []registry.Permission{permission}, Environment: environment, Model: model}},
	})
}

// TestGuard asks for every method with every permission, and with the same for another
// environment and another model. A method without a row fails it.
func TestGuard(t *testing.T) {
	t.Parallel()
	rows := calls(t)
	methods := make(map[string]bool)
	for _, c := range rows {
		methods[c.method] = true
		for _, permission := range registry.Permissions() {
			holds := c.permission == "" || permission == c.permission || permission == registry.PermissionAdminister
			where := c.environment
			if where == "" {
				where = "prod"
			}
			for _, place := range []struct {
				environment, model string
				fits               bool
			}{
				{where, model, true}, {"**", "**", true}, {where, "vision/*", true},
				{"lab", model, c.environment == ""}, {where, "text/*", c.environment == ""}, {where, "", false},
			} {
				switch c.method { // about an environment, and no model
				case "Restrictions":
					place.fits = place.environment != "lab" && place.model != ""
				case "Restrict":
					place.fits = place.model == "**"
				case "PublishTrust": // about everything
					place.fits = place.environment == "**" && place.model == "**"
				}
				r := new(recorder)
				err := c.do(as(t, permission, place.environment, place.model), access.Guard(r))
				want := holds && place.fits
				if want && (err != nil || r.asked != c.method) {
					t.Errorf("%s with %s of %s in %s: %v, the registry was asked for %q", c.method, permission, place.model, place.environment, err, r.asked)
				}
				if !want && (registry.CodeOf(err) != registry.CodeForbidden || r.asked == c.method) {
					t.Errorf("%s with %s of %q in %s: error %v, want CodeForbidden; the registry was called with %q",
						c.method, permission, place.model, place.environment, err, r.asked)
				}
			}
		}
	}
	for m := range reflect.TypeFor[registry.Interface]().Methods() {
		if !methods[m.Name] {
			t.Errorf("no row says what %s takes", m.Name)
		}
	}
}

// A promotion along an edge that the chain does not have reaches nothing, whatever the principal may.
func TestGuardRefusesUnknownEdge(t *testing.T) {
	t.Parallel()
	r := new(recorder)
	_, err := access.Guard(r).Promote(as(t, registry.PermissionAdminister, "**", "**"),
		registry.PromoteRequest{Model: model, From: "nowhere", To: "elsewhere"})
	if err == nil || r.asked == "Promote" {
		t.Errorf("got error %v, and the registry was asked for %q; want a refusal before", err, r.asked)
	}
}

// TestGuardKnowsNobody asks without a principal, with one that has no name, and with the
// reason why there is none.
func TestGuardKnowsNobody(t *testing.T) {
	t.Parallel()
	everything := []registry.Grant{{Permissions: registry.Permissions(), Environment: "**", Model: "**"}}
	why := registry.Errorf(registry.CodeUnavailable, "the database does not answer")
	check := func(ctx context.Context, name string, code registry.Code) {
		for _, row := range calls(t) {
			r := new(recorder)
			if err := row.do(ctx, access.Guard(r)); registry.CodeOf(err) != code || r.asked != "" {
				t.Errorf("%s as %s: error %v, want %s; the registry was asked for %q", row.method, name, err, code, r.asked)
			}
		}
	}
	check(t.Context(), "nobody", registry.CodeUnauthenticated)
	check(registry.WithPrincipal(t.Context(), registry.Principal{Grants: everything}), "one without a name", registry.CodeUnauthenticated)
	check(access.WithRefusal(t.Context(), why), "one who was refused", registry.CodeUnavailable)
	check(access.WithRefusal(as(t, registry.PermissionAdminister, "**", "**"), why), "one who is known too", registry.CodeUnavailable)
}

// long is a registry with a long history, of which only the last event is for everybody.
type long struct {
	recorder
	asked int
}

const longest = 20_000

func (l *long) History(_ context.Context, q registry.HistoryQuery) ([]registry.Event, error) {
	l.asked++
	var events []registry.Event
	for seq := q.After + 1; seq <= longest && len(events) < q.Limit; seq++ {
		e := registry.Event{Seq: seq, Environment: "prod", Model: "text/mood"}
		if seq == longest {
			e.Model = "vision/digits"
		}
		events = append(events, e)
	}
	return events, nil
}

// Who may see little does not make the registry look at each event by itself.
func TestGuardLooksPastMany(t *testing.T) {
	t.Parallel()
	l := new(long)
	events, err := access.Guard(l).History(as(t, registry.PermissionRead, "prod", "vision/*"), registry.HistoryQuery{Limit: 1})
	if err != nil || len(events) != 1 || events[0].Seq != longest || l.asked > 2*longest/registry.MaxPage {
		t.Errorf("seen is %v, error %v, after %d questions", events, err, l.asked)
	}
}

func TestGuardFiltersLists(t *testing.T) {
	t.Parallel()
	g := access.Guard(new(recorder))
	for _, c := range []struct {
		environment, model string
		want               int
	}{{"**", "**", 4}, {"prod", "**", 2}, {"*", "vision/*", 2}, {"staging", "text/mood", 1}, {"lab", "**", 0}, {"**", "*", 0}} {
		ctx := as(t, registry.PermissionRead, c.environment, c.model)
		heads, err := g.Heads(ctx, "", "")
		if err != nil || len(heads) != c.want {
			t.Errorf("%s in %s: heads %v, error %v, want %d", c.model, c.environment, heads, err, c.want)
		}
		for _, h := range heads {
			if p, _ := registry.PrincipalOf(ctx); !p.May(registry.PermissionRead, h.Environment, h.Model) {
				t.Errorf("%s in %s is shown", h.Model, h.Environment)
			}
		}
		if events, err := g.History(ctx, registry.HistoryQuery{}); err != nil || len(events) != c.want {
			t.Errorf("%s in %s: %d events, error %v, want %d", c.model, c.environment, len(events), err, c.want)
		}
		if faults, err := g.HistoryFaults(ctx); err != nil || len(faults) != c.want {
			t.Errorf("%s in %s: %d faults, error %v, want %d", c.model, c.environment, len(faults), err, c.want)
		}
		page, err := g.Models(ctx, "", "", 0)
		if err != nil || len(page.Items) != c.want {
			t.Errorf("%s in %s: %d models, error %v, want %d", c.model, c.environment, len(page.Items), err, c.want)
		}
		if page.Partial != (c.want < len(places)) {
			t.Errorf("%s in %s: the page is partial: %t, with %d of %d models", c.model, c.environment, page.Partial, c.want, len(places))
		}
	}
}

// Bundles that say nothing, or what nobody may say, are refused whoever brings them.
func TestGuardRefusesStrangeBundles(t *testing.T) {
	t.Parallel()
	for _, bundle := range []string{
		"", "{", "null", "[]", `{"dsseEnvelope":null}`, `{"dsseEnvelope":{"payload":"!"}}`, `{"dsseEnvelope":{"payload":"e30="}}`,
		`{"dsse_envelope":{"payload":"eyJwcmVkaWNhdGVUeXBlIjoiaHR0cHM6Ly9tbHByb21vdGUuZGV2L3Bhcml0eS92MSJ9"}}`, // another spelling of the key
		`{"dsseEnvelope":{"payload":"eyJwcmVkaWNhdGVUeXBlIjoiaHR0cHM6Ly9leGFtcGxlLmNvbS94In0="}}`,              // https://example.com/x
	} {
		r := new(recorder)
		ctx := as(t, registry.PermissionAdminister, "**", "**")
		if _, err := access.Guard(r).Attach(ctx, registry.Attachment{Environment: "prod", Model: model,
			Bundle: []byte(bundle)}); registry.CodeOf(err) != registry.CodeTrust || r.asked != "" {
			t.Errorf("%s: error %v, want CodeTrust", bundle, err)
		}
	}
}

// What failed does not look as if it were done, and a list that failed not as if it were whole.
func TestGuardPassesErrorsOn(t *testing.T) {
	t.Parallel()
	ctx := as(t, registry.PermissionAdminister, "**", "**")
	for _, c := range calls(t) {
		if err := c.do(ctx, access.Guard(&recorder{err: errUnreachable})); !errors.Is(err, errUnreachable) {
			t.Errorf("%s: error %v, want that of the registry", c.method, err)
		}
	}
}
