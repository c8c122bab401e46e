package access_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// recorder is a registry that says yes to everything and remembers that it was asked. It
// has the heads and events of two models in two environments.
type recorder struct {
	asked string
	err   error // of every call, beside the answer
}

var places = []history.Head{
	{Environment: "staging", Model: "vision/digits"}, {Environment: "staging", Model: "text/mood"},
	{Environment: "prod", Model: "vision/digits"}, {Environment: "prod", Model: "text/mood"},
}

func (r *recorder) Environments(context.Context) (policy.Environments, error) {
	r.asked = "Environments"
	return registrytest.Chain(), r.err
}

func (r *recorder) Attest(context.Context, evidence.AttestRequest) (evidence.Attested, error) {
	r.asked = "Attest"
	return evidence.Attested{}, r.err
}

func (r *recorder) Heads(context.Context, string, string) ([]history.Head, error) {
	r.asked = "Heads"
	return append([]history.Head(nil), places...), r.err
}

func (r *recorder) Resolve(context.Context, api.ResolveQuery) (api.Resolution, error) {
	r.asked = "Resolve"
	return api.Resolution{}, r.err
}

func (r *recorder) History(context.Context, history.HistoryQuery) ([]history.Event, error) {
	r.asked = "History"
	var events []history.Event
	for _, h := range places {
		events = append(events, history.Event{Environment: h.Environment, Model: h.Model})
	}
	return events, r.err
}

func (r *recorder) Publish(context.Context, api.Publication) (history.Head, error) {
	r.asked = "Publish"
	return history.Head{}, r.err
}

func (r *recorder) Attach(context.Context, api.Attachment) (registry.Digest, error) {
	r.asked = "Attach"
	return "", r.err
}

func (r *recorder) Promote(context.Context, api.PromoteRequest) (api.Promotion, error) {
	r.asked = "Promote"
	return api.Promotion{}, r.err
}

func (r *recorder) Rollback(context.Context, api.RollbackRequest) (api.Promotion, error) {
	r.asked = "Rollback"
	return api.Promotion{}, r.err
}

func (r *recorder) SetHold(context.Context, string, string, string) error {
	r.asked = "SetHold"
	return r.err
}

func (r *recorder) Restrictions(context.Context, string) (restriction.SignedRestrictions, error) {
	r.asked = "Restrictions"
	return restriction.SignedRestrictions{}, r.err
}

func (r *recorder) Restrict(context.Context, string, []byte) (restriction.SignedRestrictions, error) {
	r.asked = "Restrict"
	return restriction.SignedRestrictions{}, r.err
}

func (r *recorder) TrustBundle(context.Context) (trust.SignedTrust, error) {
	r.asked = "TrustBundle"
	return trust.SignedTrust{}, r.err
}

func (r *recorder) PublishTrust(context.Context, []byte) (trust.SignedTrust, error) {
	r.asked = "PublishTrust"
	return trust.SignedTrust{}, r.err
}

func (r *recorder) HistoryFaults(context.Context) ([]history.HistoryFault, error) {
	r.asked = "HistoryFaults"
	var faults []history.HistoryFault
	for _, h := range places {
		faults = append(faults, history.HistoryFault{Environment: h.Environment, Model: h.Model})
	}
	return faults, r.err
}

func (r *recorder) AcceptHistory(context.Context, string, string, string) error {
	r.asked = "AcceptHistory"
	return r.err
}

func (r *recorder) ReleaseHold(context.Context, api.HoldRelease) error {
	r.asked = "ReleaseHold"
	return r.err
}

func (r *recorder) Release(context.Context, string, string, string) (artifact.Release, error) {
	r.asked = "Release"
	return artifact.Release{}, r.err
}

func (r *recorder) Claims(context.Context, string, artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error) {
	r.asked = "Claims"
	return nil, evidence.IgnoredEvidence{}, r.err
}

func (r *recorder) Engine(context.Context, string, string, registry.Digest) (artifact.Engine, error) {
	r.asked = "Engine"
	return artifact.Engine{}, r.err
}

func (r *recorder) Bundle(context.Context, string, string, registry.Digest) (evidence.Bundle, error) {
	r.asked = "Bundle"
	return evidence.Bundle{}, r.err
}

func (r *recorder) Models(context.Context, string, string, int) (storage.Page[history.ModelHeads], error) {
	r.asked = "Models"
	var page storage.Page[history.ModelHeads]
	for _, h := range places {
		page.Items = append(page.Items, history.ModelHeads{Name: h.Model, Heads: []history.Head{h}})
	}
	return page, r.err
}

func (r *recorder) Releases(context.Context, string, string, string, int) (storage.Page[storage.TaggedRelease], error) {
	r.asked = "Releases"
	return storage.Page[storage.TaggedRelease]{}, r.err
}

// call is a call of a method, and what it takes: a permission for vision/digits in an
// environment. An empty permission is any, in an empty environment anywhere.
type call struct {
	method      string
	permission  storage.Permission
	environment string
	do          func(ctx context.Context, r api.Interface) error
}

const model = "vision/digits"

func calls(t *testing.T) []call {
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	attach := func(predicateType, environment string) func(ctx context.Context, r api.Interface) error {
		role, _ := evidence.RoleFor(predicateType)
		bundle := registrytest.Registry{Keys: keys}.Bundle(t, string(role), predicateType, struct{}{}, "sha256:"+registry.Digest(hex64))
		return func(ctx context.Context, r api.Interface) error {
			_, err := r.Attach(ctx, api.Attachment{Environment: environment, Model: model, Bundle: bundle})
			return err
		}
	}
	promote := func(from, to string) func(ctx context.Context, r api.Interface) error {
		return func(ctx context.Context, r api.Interface) error {
			_, err := r.Promote(ctx, api.PromoteRequest{Model: model, From: from, To: to})
			return err
		}
	}
	return []call{
		{"Environments", "", "", func(ctx context.Context, r api.Interface) error {
			_, err := r.Environments(ctx)
			return err
		}},
		{"Heads", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Heads(ctx, "prod", model)
			return err
		}},
		{"Heads", storage.PermissionRead, "", func(ctx context.Context, r api.Interface) error {
			_, err := r.Heads(ctx, "", "")
			return err
		}},
		{"Resolve", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: model})
			return err
		}},
		{"History", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.History(ctx, history.HistoryQuery{Environment: "prod", Model: model})
			return err
		}},
		{"History", storage.PermissionRead, "", func(ctx context.Context, r api.Interface) error {
			_, err := r.History(ctx, history.HistoryQuery{})
			return err
		}},
		{"Publish", storage.PermissionPush, "staging", func(ctx context.Context, r api.Interface) error {
			_, err := r.Publish(ctx, api.Publication{Model: model})
			return err
		}},
		{"Attach", storage.PermissionPush, "staging", attach(evidence.PredicateSign, "staging")},
		{"Attach", storage.PermissionPush, "prod", attach(evidence.PredicateProvenance, "prod")},
		{"Attach", storage.PermissionVerify, "staging", attach(evidence.PredicateTestResult, "staging")},
		{"Attach", storage.PermissionVerify, "staging", attach(evidence.PredicateParity, "staging")},
		{"Attach", storage.PermissionVerify, "prod", attach(evidence.PredicatePerformance, "prod")},
		{"Attach", storage.PermissionApprove, "staging", attach(evidence.PredicateApproval, "staging")},
		{"Attach", storage.PermissionApprove, "prod", attach(evidence.PredicateQuarantine, "prod")},
		{"Attach", storage.PermissionPromote, "prod", attach(evidence.PredicateVSA, "prod")},
		{"Attest", storage.PermissionAttest, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Attest(ctx, evidence.AttestRequest{Environment: "prod", Model: model})
			return err
		}},
		{"Promote", storage.PermissionPromote, "prod", promote("staging", "prod")},
		{"Promote", storage.PermissionPromote, "prod", promote("", "")},
		{"Rollback", storage.PermissionPromote, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Rollback(ctx, api.RollbackRequest{Environment: "prod", Model: model, Reason: "x"})
			return err
		}},
		{"SetHold", storage.PermissionPromote, "prod", func(ctx context.Context, r api.Interface) error {
			return r.SetHold(ctx, "prod", model, "x")
		}},
		{"Restrictions", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Restrictions(ctx, "prod")
			return err
		}},
		{"Restrict", storage.PermissionApprove, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Restrict(ctx, "prod", []byte("list"))
			return err
		}},
		{"TrustBundle", "", "", func(ctx context.Context, r api.Interface) error {
			_, err := r.TrustBundle(ctx)
			return err
		}},
		{"PublishTrust", storage.PermissionAdminister, "", func(ctx context.Context, r api.Interface) error {
			_, err := r.PublishTrust(ctx, []byte("bundle"))
			return err
		}},
		{"HistoryFaults", storage.PermissionRead, "", func(ctx context.Context, r api.Interface) error {
			_, err := r.HistoryFaults(ctx)
			return err
		}},
		{"AcceptHistory", storage.PermissionAdminister, "prod", func(ctx context.Context, r api.Interface) error {
			return r.AcceptHistory(ctx, "prod", model, "x")
		}},
		{"ReleaseHold", storage.PermissionPromote, "prod", func(ctx context.Context, r api.Interface) error {
			return r.ReleaseHold(ctx, api.HoldRelease{Environment: "prod", Model: model, Reason: "x"})
		}},
		{"Release", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Release(ctx, "prod", model, "1.0.0")
			return err
		}},
		{"Claims", storage.PermissionRead, "staging", func(ctx context.Context, r api.Interface) error {
			_, _, err := r.Claims(ctx, "staging", artifact.Release{Model: model})
			return err
		}},
		{"Engine", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Engine(ctx, "prod", model, "sha256:"+registry.Digest(hex64))
			return err
		}},
		{"Bundle", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Bundle(ctx, "prod", model, "sha256:"+registry.Digest(hex64))
			return err
		}},
		{"Models", storage.PermissionRead, "", func(ctx context.Context, r api.Interface) error {
			_, err := r.Models(ctx, "", "", 0)
			return err
		}},
		{"Releases", storage.PermissionRead, "prod", func(ctx context.Context, r api.Interface) error {
			_, err := r.Releases(ctx, "prod", model, "", 0)
			return err
		}},
	}
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// as is a context of a principal with one grant.
func as(t *testing.T, permission storage.Permission, environment, model string) context.Context {
	return storage.WithPrincipal(t.Context(), storage.Principal{
		Name:   "token:test",
		Grants: []storage.Grant{{Permissions: []storage.Permission{permission}, Environment: environment, Model: model}},
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
		for _, permission := range storage.Permissions() {
			holds := c.permission == "" || permission == c.permission || permission == storage.PermissionAdminister
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
	for m := range reflect.TypeFor[api.Interface]().Methods() {
		if !methods[m.Name] {
			t.Errorf("no row says what %s takes", m.Name)
		}
	}
}

// A promotion along an edge that the chain does not have reaches nothing, whatever the principal may.
func TestGuardRefusesUnknownEdge(t *testing.T) {
	t.Parallel()
	r := new(recorder)
	_, err := access.Guard(r).Promote(as(t, storage.PermissionAdminister, "**", "**"),
		api.PromoteRequest{Model: model, From: "nowhere", To: "elsewhere"})
	if err == nil || r.asked == "Promote" {
		t.Errorf("got error %v, and the registry was asked for %q; want a refusal before", err, r.asked)
	}
}

// TestGuardKnowsNobody asks without a principal, with one that has no name, and with the
// reason why there is none.
func TestGuardKnowsNobody(t *testing.T) {
	t.Parallel()
	everything := []storage.Grant{{Permissions: storage.Permissions(), Environment: "**", Model: "**"}}
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
	check(storage.WithPrincipal(t.Context(), storage.Principal{Grants: everything}), "one without a name", registry.CodeUnauthenticated)
	check(access.WithRefusal(t.Context(), why), "one who was refused", registry.CodeUnavailable)
	check(access.WithRefusal(as(t, storage.PermissionAdminister, "**", "**"), why), "one who is known too", registry.CodeUnavailable)
}

// long is a registry with a long history, of which only the last event is for everybody.
type long struct {
	recorder
	asked int
}

const longest = 20_000

func (l *long) History(_ context.Context, q history.HistoryQuery) ([]history.Event, error) {
	l.asked++
	var events []history.Event
	for seq := q.After + 1; seq <= longest && len(events) < q.Limit; seq++ {
		e := history.Event{Seq: seq, Environment: "prod", Model: "text/mood"}
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
	events, err := access.Guard(l).History(as(t, storage.PermissionRead, "prod", "vision/*"), history.HistoryQuery{Limit: 1})
	if err != nil || len(events) != 1 || events[0].Seq != longest || l.asked > 2*longest/storage.MaxPage {
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
		ctx := as(t, storage.PermissionRead, c.environment, c.model)
		heads, err := g.Heads(ctx, "", "")
		if err != nil || len(heads) != c.want {
			t.Errorf("%s in %s: heads %v, error %v, want %d", c.model, c.environment, heads, err, c.want)
		}
		for _, h := range heads {
			if p, _ := storage.PrincipalOf(ctx); !p.May(storage.PermissionRead, h.Environment, h.Model) {
				t.Errorf("%s in %s is shown", h.Model, h.Environment)
			}
		}
		if events, err := g.History(ctx, history.HistoryQuery{}); err != nil || len(events) != c.want {
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
		ctx := as(t, storage.PermissionAdminister, "**", "**")
		if _, err := access.Guard(r).Attach(ctx, api.Attachment{Environment: "prod", Model: model,
			Bundle: []byte(bundle)}); registry.CodeOf(err) != registry.CodeTrust || r.asked != "" {
			t.Errorf("%s: error %v, want CodeTrust", bundle, err)
		}
	}
}

// What failed does not look as if it were done, and a list that failed not as if it were whole.
func TestGuardPassesErrorsOn(t *testing.T) {
	t.Parallel()
	ctx := as(t, storage.PermissionAdminister, "**", "**")
	for _, c := range calls(t) {
		if err := c.do(ctx, access.Guard(&recorder{err: errUnreachable})); !errors.Is(err, errUnreachable) {
			t.Errorf("%s: error %v, want that of the registry", c.method, err)
		}
	}
}
