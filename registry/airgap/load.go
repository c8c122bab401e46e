package airgap

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/layout"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// resource is what statements about a release in that environment name.
func (want Expectation) resource(r artifact.Release) string {
	return policy.Environments{Registry: want.Registry}.ResourceURI(want.Environment, r.Model)
}

// Receiver takes loaded releases.
type Receiver interface {
	Claims(ctx context.Context, environment string, r artifact.Release) ([]evidence.Claim, evidence.IgnoredEvidence, error)
	Attach(ctx context.Context, a api.Attachment) (registry.Digest, error)
	Publish(ctx context.Context, p api.Publication) (history.Head, error)
}

// Checked is a saved release that may be let in. Its file must stay open.
type Checked struct {
	file   *layout.Layout
	store  *oci.Store
	claims []evidence.Claim
	loaded Loaded
}

// Destination is the registry that a release is let into. All fields are required.
type Destination struct {
	Open     Open   // its repositories
	First    string // its first environment
	Receiver Receiver
}

// Loaded is a release that was let in.
type Loaded struct {
	Origin    Origin             `json:"origin"`
	Release   artifact.Release   `json:"-"`
	Ref       string             `json:"ref"`
	Promoter  string             `json:"promoter"` // who let it into the environment of origin
	Promoted  time.Time          `json:"promoted"`
	Attached  int                `json:"attached"` // pieces of evidence
	NotLoaded []evidence.Ignored `json:"notLoaded,omitempty"`
}

// Check reads all of a file, and changes nothing. Errors: CodeDigest, CodeTrust, CodePolicy and CodeUnsafe, with
// the object that is at fault.
func (c Checker) Check(ctx context.Context, file io.ReaderAt, size int64, want Expectation) (*Checked, error) {
	if want.Registry == "" || want.Environment == "" || c.Trust == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "load: want the environment that the file must be from, and keys to verify with")
	}
	in, err := layout.Open(ctx, file, size)
	if err != nil {
		return nil, err
	}
	var none Open = func(_ context.Context, name string) (oci.Repository, error) {
		return nil, registry.Errorf(registry.CodeInternal, "%s is not in a saved release", name)
	}
	found := &Checked{file: in, store: oci.New(none.with(in), oci.Options{})}
	release, tag := in.Release()
	if found.loaded.Release, err = found.store.Release(ctx, saved, string(release)); err != nil {
		return nil, err
	}
	if found.loaded.Origin, err = origin(in, found.loaded.Release); err != nil {
		return nil, err
	}
	if err := want.place(found.loaded, tag); err != nil {
		return nil, err
	}
	by, err := c.trusted(ctx, in, found.loaded.Release)
	if err != nil {
		return nil, err
	}
	if found.claims, err = c.claims(ctx, by, found.store, found.loaded.Release, want); err != nil {
		return nil, err
	}
	restrictions, err := by.restrictions(ctx, in, found.loaded.Release, want)
	if err != nil {
		return nil, err
	}
	if err := c.stands(&found.loaded, found.claims, restrictions, want); err != nil {
		return nil, err
	}
	if err := inspect(ctx, in, c.Inspect); err != nil {
		return nil, err
	}
	return found, nil
}

// origin reads what a file says of itself. It must be about the release that the file holds.
func origin(in *layout.Layout, r artifact.Release) (Origin, error) {
	text, err := titled(in, r, originFile)
	if err != nil {
		return Origin{}, err
	}
	var o Origin
	if err := registry.DecodeSigned(text, &o); err != nil {
		return Origin{}, registry.Errorf(registry.CodeTrust, "saved.json: %w", err)
	}
	if o.V != 1 || o.Release != r.Digest || o.Model != r.Model || o.Version != r.Tag() {
		return Origin{}, registry.Errorf(registry.CodeTrust, "saved.json names release %s, %s:%s, and the file holds %s, %s:%s: save it again",
			o.Release, o.Model, o.Version, r.Digest, r.Model, r.Tag())
	}
	return o, nil
}

// place compares what a file says of itself with what is wanted.
func (want Expectation) place(found Loaded, tag string) error {
	for _, pin := range []struct{ what, want, found string }{
		{"registry", want.Registry, found.Origin.Registry},
		{"environment", want.Environment, found.Origin.Environment},
		{"model", cmp.Or(want.Model, found.Release.Model), found.Release.Model},
		{"tag", found.Release.Tag(), tag},
	} {
		if pin.want != pin.found {
			return registry.Errorf(registry.CodeTrust, "the file is of the %s %q, want %q", pin.what, pin.found, pin.want)
		}
	}
	return nil
}

// claims verifies all evidence in the file, for the place that it must be from. Evidence by signers who are
// not trusted counts for nothing.
func (c Checker) claims(ctx context.Context, by Trusted, store *oci.Store, r artifact.Release, want Expectation) ([]evidence.Claim, error) {
	resource := want.resource(r)
	var claims []evidence.Claim
	for _, subject := range r.Subjects() {
		for b, err := range store.Evidence(ctx, saved, subject.Digest) {
			if err != nil {
				return nil, err
			}
			claim, err := by.Verify(ctx, b.Data, resource)
			if registry.HasCode(err, registry.CodeTrust) {
				continue
			}
			if err != nil {
				return nil, registry.Errorf(registry.CodeOf(err), "verify evidence %s of the file: %w", b.Digest, err)
			}
			// A file has no history. It is only known that the evidence exists by now.
			claim.Bundle, claim.Subject, claim.RecordedAt, claim.WithoutHistory = b.Digest, subject.Digest, c.Now(), true
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// stands checks that a trusted promoter let the release into its environment, that nothing
// in the file speaks against it, and how long ago that was.
func (c Checker) stands(found *Loaded, claims []evidence.Claim, in restriction.Restrictions, want Expectation) error {
	resource := want.resource(found.Release)
	decision := policy.CheckStanding(resource, found.Release, claims, in)
	var reasons []error
	for _, req := range decision.Unmet() {
		code := registry.CodeTrust
		if req.Objects() {
			code = registry.CodePolicy
		}
		reasons = append(reasons, registry.Errorf(code, "%s of %s: %s: %s", found.Release.Model, found.Release.Tag(), req.Subject, req.Detail))
	}
	claim, summary, ok := policy.FindVSA(claims, found.Release, resource)
	if !ok && len(reasons) == 0 {
		reasons = append(reasons, registry.Errorf(registry.CodeTrust, "no promoter let the release into %s", resource))
	}
	if len(reasons) > 0 {
		return errors.Join(reasons...)
	}
	found.Promoter, found.Promoted = claim.Signer, summary.TimeVerified
	now := c.Now()
	switch age := now.Sub(summary.TimeVerified); {
	case registry.ClaimsFuture(summary.TimeVerified, now):
		return registry.Errorf(registry.CodeTrust, "a promoter claims to have verified the release on %s, and now it is %s: look at the clocks",
			summary.TimeVerified.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case want.MaxAge > 0 && age > want.MaxAge:
		return registry.Errorf(registry.CodeTrust, "a promoter verified the release on %s, %s ago, want at most %s: promote it again, and save it again",
			summary.TimeVerified.UTC().Format(time.RFC3339), age.Round(time.Second), want.MaxAge)
	}
	return nil
}

// inspect looks at the bytes of every part, as a service does with what is pushed.
func inspect(ctx context.Context, in *layout.Layout, by gate.Inspect) error {
	g := gate.New(in.OpenBlob, by)
	for _, d := range in.Manifests() {
		raw, err := in.Manifest(d)
		if err == nil {
			err = g.Manifest(ctx, d, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Load copies the release into the first environment, attaches its evidence, and moves the head last.
// Evidence by keys that the receiving registry does not trust stays behind, and so do summaries:
// they are about the sending registry. An interrupted load can be repeated.
func (c *Checked) Load(ctx context.Context, to Destination) (Loaded, error) {
	found, r := c.loaded, c.loaded.Release
	found.Ref = registry.Ref{Environment: to.First, Model: r.Model, Tag: r.Tag(), Digest: r.Digest}.String()
	store := oci.New(to.Open.with(c.file), oci.Options{})
	if err := store.Copy(ctx, saved, registry.Repository(to.First, r.Model), r, nil); err != nil {
		return found, err
	}
	there, _, err := to.Receiver.Claims(ctx, to.First, r)
	if err != nil {
		return found, err
	}
	for _, claim := range inOrder(c.claims) {
		if recorded(there, claim) {
			continue
		}
		b, err := store.Bundle(ctx, saved, claim.Bundle)
		if err != nil {
			return found, err
		}
		_, err = to.Receiver.Attach(ctx, api.Attachment{
			Environment: to.First, Model: r.Model, Release: r.Digest, Subject: claim.Subject, Bundle: b.Data, Figures: b.Figures,
		})
		switch {
		case registry.HasCode(err, registry.CodeTrust), registry.HasCode(err, registry.CodePolicy):
			found.NotLoaded = append(found.NotLoaded, evidence.Ignored{Bundle: claim.Bundle, Subject: claim.Subject, Reason: err.Error()})
		case err != nil:
			return found, err
		default:
			found.Attached++
		}
	}
	_, err = to.Receiver.Publish(ctx, api.Publication{Model: r.Model, Release: r.Digest})
	return found, err
}

// recorded reports whether the receiving side has a piece of evidence already, from an earlier load.
func recorded(there []evidence.Claim, claim evidence.Claim) bool {
	return slices.ContainsFunc(there, func(c evidence.Claim) bool {
		return c.Bundle == claim.Bundle && c.Subject == claim.Subject && c.Recorded > 0
	})
}

// inOrder returns the claims to attach, reports in the order in which they were finished.
func inOrder(claims []evidence.Claim) []evidence.Claim {
	out := slices.DeleteFunc(slices.Clone(claims), func(c evidence.Claim) bool { return c.Statement.PredicateType == evidence.PredicateVSA })
	slices.SortStableFunc(out, func(a, b evidence.Claim) int { return finished(a).Compare(finished(b)) })
	return out
}

// finished is when a report was finished; zero for other statements, which so come first.
func finished(c evidence.Claim) time.Time {
	var head evidence.ReportHead
	if registry.DecodeSigned(c.Statement.Predicate, &head) != nil {
		return time.Time{}
	}
	return head.FinishedOn
}
