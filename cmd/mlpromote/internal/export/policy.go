package export

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// maxDenied is the largest number of digests that a policy denies. A larger object does not fit into a cluster's
// database beside its keys.
const maxDenied = 5000

// Admission is what a cluster needs to admit what was promoted to an environment and may still be used there.
type Admission struct {
	Environment string `json:"environment"`
	Model       string `json:"model,omitempty"` // the only one; empty: all of the environment
	Host        string `json:"host"`            // of the registry, as the cluster names it
	// ResourceURI is that of the environment, which ends with a slash, or of the model.
	ResourceURI string     `json:"resource"`
	VerifierID  string     `json:"verifierId"`
	Levels      []string   `json:"levels"` // a summary has one of them
	Keys        []AdmitKey `json:"keys"`   // of promoters
	LeftOut     []LeftOut  `json:"leftOut"`
	Denied      []Denied   `json:"denied"` // by digest
	// RestrictionList is the counter of the restriction list in force; 0: there is none.
	RestrictionList int64 `json:"restrictionList"`
	// Summaries is where policy-controller finds summaries in cosign's older form, HOST[:PORT]/REPOSITORY. Empty: beside the image.
	Summaries string `json:"summaries,omitempty"`
	// Repositories are those whose content needs a summary: ENV/MODEL, or ENV for a whole environment.
	Repositories []string `json:"repositories"`
	// Partial is true if digests can be missing that the caller's token does not show.
	Partial  bool   `json:"partial,omitempty"`
	registry string // its name in resources
}

// AdmitKey is a key whose summaries are accepted.
type AdmitKey struct {
	ID    string            `json:"id"`
	Names []string          `json:"names"` // as environments.yaml names it
	State evidence.KeyState `json:"state"`
	pem   string
}

// LeftOut is an entry of a promoter that the policy does not accept.
type LeftOut struct {
	Entry string `json:"entry"`
	Why   string `json:"why"`
}

// Denied is content that a promoter allowed, and that may not be used any more.
type Denied struct {
	Digest registry.Digest `json:"digest"`
	Model  string          `json:"model"`
	Kind   string          `json:"kind"` // "release", "engine" or "image"
	Unmet  []string        `json:"unmet"`
}

// AdmissionOptions say for whom a policy is.
type AdmissionOptions struct {
	Environment, Model string
	Host               string // empty: that of the registry
	Summaries          string // as in Admission
	RefuseBreakGlass   bool
	// Partial writes the policy also if the caller may not read all that it needs.
	Partial bool
	Now     time.Time
}

// Admit reads what a cluster has to know now. Errors: CodeInvalid for an environment that nothing is promoted to,
// without a host, and without a key; CodeForbidden if the caller may not read all that it needs; those of reading
// releases and evidence, since a policy without some of the denied digests would admit them.
func Admit(ctx context.Context, in *connect.Registry, o AdmissionOptions) (Admission, error) {
	e, err := in.Envs.Find(o.Environment)
	if err != nil {
		return Admission{}, err
	}
	if !e.Protected() {
		return Admission{}, registry.Errorf(registry.CodeInvalid, "nothing is promoted to %s: want an environment with from:", e.Name)
	}
	a := Admission{
		Environment: e.Name, Model: o.Model, Host: o.Host, ResourceURI: in.Envs.EnvironmentURI(e.Name), VerifierID: evidence.VerifierID(in.Envs.Registry),
		Levels: []string{evidence.VSALevelParity, evidence.VSALevelBreakGlass}, Summaries: o.Summaries, registry: in.Envs.Registry,
		LeftOut: []LeftOut{},
	}
	if o.RefuseBreakGlass {
		a.Levels = a.Levels[:1]
	}
	if o.Model != "" {
		a.ResourceURI = in.Envs.ResourceURI(e.Name, o.Model)
	}
	if err := a.place(in, e); err != nil {
		return Admission{}, err
	}
	if err := a.addKeys(ctx, in, o.Now); err != nil {
		return Admission{}, err
	}
	return a, a.deny(ctx, in, o.Partial)
}

// place finds the host and the repositories. The other environments on the same host are among them, since
// what was promoted no further than there must not run.
func (a *Admission) place(in *connect.Registry, e policy.Environment) error {
	if a.Host == "" {
		a.Host = in.HostOf(e.Name)
	}
	if a.Host == "" {
		return registry.Errorf(registry.CodeInvalid, "export policy: %s has no host that a cluster could pull from: want --host HOST[:PORT]", in.Name)
	}
	if err := registry.ValidateHost(a.Host); err != nil {
		return err
	}
	for _, other := range in.Envs.List {
		if in.HostOf(other.Name) != in.HostOf(e.Name) {
			continue
		}
		name := other.Name
		if a.Model != "" {
			name = registry.Repository(name, a.Model)
		}
		a.Repositories = append(a.Repositories, name)
	}
	return nil
}

// addKeys takes the keys whose summaries count, and says why it leaves out the others.
func (a *Admission) addKeys(ctx context.Context, in *connect.Registry, now time.Time) error {
	keys, err := in.RoleKeys(ctx, a.ResourceURI, evidence.RolePromoter)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, k := range keys {
		for _, name := range k.Names {
			known[name] = true
		}
		if why := refuses(k, now); why != "" {
			a.LeftOut = append(a.LeftOut, LeftOut{strings.Join(k.Names, ", "), why})
			continue
		}
		a.Keys = append(a.Keys, AdmitKey{ID: k.ID, Names: k.Names, State: k.State, pem: string(k.PEM)})
	}
	for _, e := range in.Envs.Trust {
		if known[e.String()] || !slices.Contains(e.Grants(), evidence.RolePromoter) || !e.Reaches(a.ResourceURI) {
			continue
		}
		a.LeftOut = append(a.LeftOut, LeftOut{e.String(), entryLeftOut(e, a.ResourceURI)})
	}
	if len(a.Keys) > 0 {
		return nil
	}
	why := ""
	for _, l := range a.LeftOut {
		why += "; " + l.Entry + ": " + l.Why
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid,
		"export policy: no key of a promoter covers %s, so nothing could be admitted%s", a.ResourceURI, registry.PlainText(why)),
		"the trusted keys are read here, also for a service: --policy-dir names a folder with its environments.yaml and public keys")
}

func refuses(k signer.RoleKey, now time.Time) string {
	switch {
	case k.State != evidence.KeyTrusted && k.State != evidence.KeyRetired:
		return "the key is revoked"
	case now.Before(k.Window.From):
		return "its window has not begun"
	}
	return ""
}

func entryLeftOut(e trust.TrustEntry, resource string) string {
	switch {
	case e.Identity != nil:
		return "it is an identity, and the policy has keys alone"
	case !e.Covers(resource):
		return "it does not cover all of " + resource + ": export a policy for one model"
	}
	return "its file is missing"
}

// deny lists what may not be used any more.
func (a *Admission) deny(ctx context.Context, in *connect.Registry, partial bool) error {
	restrictions, counter, err := restrictionsIn(ctx, in, a.Environment)
	if err != nil {
		return err
	}
	a.RestrictionList = counter
	candidates, err := a.candidates(ctx, in)
	if err != nil {
		return err
	}
	if a.Partial && !partial {
		unread, way := "all models of "+a.Environment, "use a token with read for them, or --model NAME"
		if a.Model != "" {
			unread, way = a.Model+" in "+a.Environment, "use a token with read for "+a.Model+" in all of them"
		}
		return registry.WithHint(registry.Errorf(registry.CodeForbidden,
			"export policy: the token may not read %s and the environments before it: "+
				"the policy would admit digests from there that may not be used", unread),
			"%s; --partial writes the policy without them", way)
	}
	found := denials{objected: map[registry.Digest]*Denied{}, allowed: map[registry.Digest]bool{}}
	for _, c := range candidates {
		if err := a.denyRelease(ctx, in, c, restrictions, &found); err != nil {
			return err
		}
	}
	a.Denied = found.list()
	if len(a.Denied) > maxDenied {
		return registry.Errorf(registry.CodeInvalid,
			"export policy: %d digests to deny, want at most %d: export a policy for each model", len(a.Denied), maxDenied)
	}
	return nil
}

// denyRelease looks at a release, if the environment has it.
func (a *Admission) denyRelease(ctx context.Context, in *connect.Registry, c candidate, restrictions restriction.Restrictions, found *denials) error {
	r, err := in.Release(ctx, a.Environment, c.model, string(c.release))
	if registry.HasCode(err, registry.CodeNotFound) && !c.tagged {
		return nil // it was never copied there, or is deleted
	}
	if err != nil {
		return fmt.Errorf("%s/%s@%s: %w", a.Environment, c.model, c.release, err)
	}
	claims, _, err := in.Claims(ctx, a.Environment, r)
	if err != nil {
		return fmt.Errorf("%s/%s@%s: %w", a.Environment, c.model, c.release, err)
	}
	summary := func(c evidence.Claim) bool { return c.Statement.PredicateType == evidence.PredicateVSA }
	if !c.tagged && !slices.ContainsFunc(claims, summary) {
		return nil // no cluster admits it; and the next moment may bring the summary, if a promotion is at work
	}
	found.look(in.Envs.ResourceURI(a.Environment, c.model), r, claims, restrictions)
	return nil
}

// denials are digests that must not be used. Several releases can have the same engine: it may be used if one of them
// may be used with it.
type denials struct {
	objected map[registry.Digest]*Denied
	allowed  map[registry.Digest]bool
}

// look decides about a release and its engines. The release itself is denied already if one of its engines is: a
// cluster that is given the index picks an engine of it.
func (f *denials) look(resource string, r artifact.Release, claims []evidence.Claim, in restriction.Restrictions) {
	f.decide(r.Digest, r.Model, "release", policy.CheckStanding(resource, r, claims, in))
	for _, e := range r.Engines {
		decision := policy.CheckEngineStanding(resource, r, e, claims, in)
		f.decide(e.Digest, r.Model, "engine", decision)
		if e.Image.Digest != "" {
			f.decide(e.Image.Digest, r.Model, "image", decision)
		}
	}
}

// list is what no release may be used with, by digest.
func (f *denials) list() []Denied {
	all := []Denied{}
	for d, denied := range f.objected {
		if !f.allowed[d] {
			all = append(all, *denied)
		}
	}
	slices.SortFunc(all, func(x, y Denied) int { return strings.Compare(string(x.Digest), string(y.Digest)) })
	return all
}

func (f *denials) decide(d registry.Digest, model, kind string, decision policy.Decision) {
	if decision.Allowed() {
		f.allowed[d] = true
		return
	}
	denied := f.objected[d]
	if denied == nil {
		denied = &Denied{Digest: d, Model: model, Kind: kind}
		f.objected[d] = denied
	}
	for _, unmet := range decision.Unmet() {
		if !slices.Contains(denied.Unmet, unmet.Name) {
			denied.Unmet = append(denied.Unmet, unmet.Name)
		}
	}
	slices.Sort(denied.Unmet)
}
