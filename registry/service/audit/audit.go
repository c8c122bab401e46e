// Package audit compares the history with the content, and lists evidence again that repositories lost.
package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/service/lookup"
	"mlpromote.dev/mlpromote/registry/storage"
)

// audit compares the history with the content of an environment for a model. It reads the
// content before the history, so that a concurrent event still explains it.
type audit struct {
	*backend.Backend
	environment policy.Environment
	model       string
	head        registry.Digest
	releases    []*audited
	// promoting is true if a summary without an event may belong to another promotion whose intent
	// a later one replaced. Promotions within the catalog are visible by their tag.
	promoting bool

	// State from the history, set by look.
	underWay map[registry.Digest]bool   // releases for which a promotion has begun
	moved    map[registry.Digest]int64  // newest event that moved the head to a release
	versions map[string]registry.Digest // releases that the head was moved to, by version
	accepted map[registry.Digest]bool   // what acceptances name
	named    map[registry.Digest]bool   // evidence that events name, in any environment
}

// audited is a release that the audit checks against the history.
type audited struct {
	digest registry.Digest
	tags   []string         // of the release in the environment, as far as they are known
	claims []evidence.Claim // evidence that exists
}

// newAudit returns an audit with the head added.
func newAudit(s *backend.Backend, e policy.Environment, standing history.ModelState) *audit {
	a := &audit{Backend: s, environment: e, model: standing.Model, head: standing.Head.Release}
	if a.head != "" {
		a.add(a.head, "")
	}
	return a
}

// add returns the entry of a digest, with the tag added if one is given.
func (a *audit) add(d registry.Digest, tag string) *audited {
	i := slices.IndexFunc(a.releases, func(r *audited) bool { return r.digest == d })
	if i < 0 {
		i = len(a.releases)
		a.releases = append(a.releases, &audited{digest: d})
	}
	if tag != "" {
		a.releases[i].tags = append(a.releases[i].tags, tag)
	}
	return a.releases[i]
}

// addTagged adds the releases that have a tag. If the tags are on another registry, it adds the
// releases that the history names.
func (a *audit) addTagged(ctx context.Context) error {
	releases, err := tagged(ctx, a.Backend, a.environment.Name, a.model)
	for _, r := range releases {
		a.add(r.Release, r.Tag)
	}
	return err
}

// readSummaries reads the summaries about the releases without any so far.
func (a *audit) readSummaries(ctx context.Context) error {
	if !a.environment.Protected() {
		return nil
	}
	for _, r := range a.releases {
		if r.claims != nil {
			continue
		}
		claims, err := a.summaries(ctx, r.digest)
		if err != nil {
			return err
		}
		r.claims = claims
	}
	return nil
}

// summaries reads the summaries about a release by trusted promoters.
func (a *audit) summaries(ctx context.Context, release registry.Digest) ([]evidence.Claim, error) {
	var claims []evidence.Claim
	for b, err := range a.Content.Evidence(ctx, registry.Repository(a.environment.Name, a.model), release) {
		if err != nil {
			return nil, err
		}
		if b.PredicateType != evidence.PredicateVSA {
			continue
		}
		claim, err := a.Verify(ctx, b.Data, a.Resource(a.environment.Name, a.model))
		if registry.HasCode(err, registry.CodeTrust) {
			continue
		}
		if err != nil {
			return nil, err
		}
		claim.Bundle, claim.Subject = b.Digest, release
		claims = append(claims, claim)
	}
	return claims, lookup.PlaceInHistory(ctx, a.Backend, a.model, claims)
}

// readEvidence reads all evidence about the added releases. It skips other registries, which
// anyone may write to, so the history need not name their content.
func (a *audit) readEvidence(ctx context.Context) error {
	if a.environment.External() {
		return nil
	}
	for _, r := range a.releases {
		release, err := a.Content.Release(ctx, registry.Repository(a.environment.Name, a.model), string(r.digest))
		if r.digest != a.head && (registry.HasCode(err, registry.CodeTrust) || registry.HasCode(err, registry.CodeInvalid)) {
			continue // a tagged manifest that is not a release: no decision used evidence about it
		}
		if err != nil {
			return err
		}
		claims, _, err := lookup.Claims(ctx, a.Backend, a.environment.Name, release)
		if err != nil {
			return err
		}
		r.claims, _ = evidence.Accept(release, claims)
	}
	return nil
}

// faults returns what the history does not explain. It checks each finding again, because the
// event may have been in progress.
func (a *audit) faults(ctx context.Context) ([]history.HistoryFault, error) {
	if err := a.look(ctx); err != nil {
		return nil, err
	}
	var faults []history.HistoryFault
	for _, r := range a.releases {
		fault, err := a.fault(ctx, *r)
		if err == nil && fault != nil {
			if err = a.look(ctx); err == nil {
				err = lookup.PlaceInHistory(ctx, a.Backend, a.model, r.claims)
			}
			if err == nil {
				fault, err = a.fault(ctx, *r)
			}
		}
		if err != nil {
			return nil, err
		}
		if fault != nil {
			faults = append(faults, *fault)
		}
	}
	return faults, nil
}

// look reads the intents and then the history of the model, by environment as it is indexed.
func (a *audit) look(ctx context.Context) error {
	pending, err := a.Intents.Pending(ctx)
	if err != nil {
		return err
	}
	a.underWay, a.moved = make(map[registry.Digest]bool), make(map[registry.Digest]int64)
	a.versions = make(map[string]registry.Digest)
	a.accepted, a.named = make(map[registry.Digest]bool), make(map[registry.Digest]bool)
	for _, i := range pending {
		if i.Environment == a.environment.Name && i.Model == a.model {
			a.underWay[i.Release] = true
		}
	}
	for _, e := range a.Environments.List {
		for event, err := range a.Catalog.History(ctx, history.HistoryQuery{Environment: e.Name, Model: a.model}) {
			if err != nil {
				return err
			}
			a.read(event)
		}
	}
	return nil
}

// read processes an event.
func (a *audit) read(e history.Event) {
	for _, d := range e.Evidence {
		a.named[d] = true
	}
	if e.Environment != a.environment.Name {
		return
	}
	switch e.Kind {
	case history.EventPublish, history.EventPromote, history.EventRollback:
		a.moved[e.Release] = e.Seq
		a.versions[e.Version] = e.Release
	case history.EventAccept:
		for _, d := range e.Evidence {
			a.accepted[d] = true
		}
	}
}

// names reports whether an event names a claim. Events of removed environments are found only
// through the catalog's list.
func (a *audit) names(c evidence.Claim) bool { return a.named[c.Bundle] || c.Recorded != 0 }

// fault returns what the history does not explain about a release.
func (a *audit) fault(ctx context.Context, r audited) (*history.HistoryFault, error) {
	f := history.HistoryFault{Environment: a.environment.Name, Model: a.model, Release: r.digest}
	var details []string
	note := func(d registry.Digest, format string, args ...any) {
		f.Manifests = append(f.Manifests, d)
		details = append(details, fmt.Sprintf(format, args...))
	}
	if a.environment.Protected() && !a.accepted[r.digest] {
		for _, tag := range r.tags {
			promoted, known := a.versions[tag]
			switch {
			case a.moved[r.digest] == 0:
				note(r.digest, "the tag %s names release %s, but no event of the history promoted it", tag, r.digest)
			case known && promoted != r.digest:
				note(r.digest, "the tag %s names release %s, but the history promoted %s as that version", tag, r.digest, promoted)
			}
		}
	}
	for _, c := range r.claims {
		why, err := a.summaryFault(ctx, r, c)
		if err != nil {
			return nil, err
		}
		if why != "" {
			note(c.Bundle, "%s", why)
		}
	}
	unnamed, err := a.unnamed(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, c := range unnamed {
		note(c.Bundle, "the evidence %s (%s about %s) exists, but no event of the history names it", c.Bundle,
			c.Statement.PredicateType, c.Subject)
	}
	if len(details) == 0 {
		return nil, nil
	}
	const shown = 4
	f.Detail = strings.Join(details[:min(shown, len(details))], "; ")
	if more := len(details) - shown; more > 0 {
		f.Detail += fmt.Sprintf("; and %d more", more)
	}
	return &f, nil
}

// summaryFault returns what is wrong with a summary of a trusted promoter, or "". A summary
// names the newest event at its signing, and a later event applied it. A summary left by a
// crash or a refusal is explained by an intent or by a later promotion.
func (a *audit) summaryFault(ctx context.Context, r audited, c evidence.Claim) (string, error) {
	v, ok := c.Summary()
	if !ok || c.Subject != r.digest || !c.SignedAs(evidence.RolePromoter) ||
		v.ResourceURI != a.Resource(a.environment.Name, a.model) ||
		a.accepted[c.Bundle] {
		return "", nil
	}
	hash := v.Promotion.HistoryHead.SHA256()
	signed, err := lookup.EventNumber(ctx, a.Backend, "", hash)
	if err != nil {
		return "", err
	}
	if hash != "" && signed == 0 {
		return fmt.Sprintf(
			"the summary %s of %s was signed when the newest event had the hash %s, but the history has no such event",
			c.Bundle, v.Promotion.Tag, hash), nil
	}
	// Without a tag in the catalog the release was not promoted: tag and head move together.
	placed := len(r.tags) > 0 || r.digest == a.head || a.environment.External()
	if !placed || a.promoting || a.names(c) || a.underWay[r.digest] || a.moved[r.digest] > signed {
		return "", nil
	}
	return fmt.Sprintf("the summary %s of %s exists, but no event of the history names it", c.Bundle, v.Promotion.Tag), nil
}

// unnamed lists the evidence about a release that the history should name but does not. In a
// protected environment all evidence comes with an event, except what a running promotion has
// copied. Elsewhere this holds for evidence of verifiers and approvers unless it was pushed.
// The next build attaches signatures of builds again.
func (a *audit) unnamed(ctx context.Context, r audited) ([]evidence.Claim, error) {
	if a.environment.External() || len(a.underWay) > 0 || len(r.tags) == 0 && r.digest != a.head {
		return nil, nil
	}
	var unnamed []evidence.Claim
	for _, c := range r.claims {
		named := func(same evidence.Claim) bool { return a.names(same) && c.Restates(same) }
		if c.Statement.PredicateType == evidence.PredicateVSA || slices.ContainsFunc(r.claims, named) {
			continue
		}
		if !a.environment.Protected() {
			pushed, err := a.mayBePushed(ctx, c)
			if err != nil {
				return nil, err
			}
			if pushed {
				continue
			}
		}
		unnamed = append(unnamed, c)
	}
	return unnamed, nil
}

// mayBePushed reports whether evidence may have been added without an event.
func (a *audit) mayBePushed(ctx context.Context, c evidence.Claim) (bool, error) {
	if role, _ := evidence.RoleFor(c.Statement.PredicateType); a.Manifests == nil || role == evidence.RoleBuilder {
		return true, nil
	}
	m, err := a.Manifests.Manifest(ctx, registry.Repository(a.environment.Name, a.model), c.Bundle)
	return m.Pusher != "", err
}

// tagged lists the tagged releases of an environment.
func tagged(ctx context.Context, s *backend.Backend, environment, model string) ([]storage.TaggedRelease, error) {
	var releases []storage.TaggedRelease
	for after := ""; ; {
		page, err := lookup.Releases(ctx, s, environment, model, after, storage.MaxPage)
		if err != nil {
			return nil, err
		}
		releases = append(releases, page.Items...)
		if after = page.Next; after == "" {
			return releases, nil
		}
	}
}
