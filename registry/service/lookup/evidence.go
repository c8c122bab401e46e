package lookup

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/service/backend"
)

// ReleaseEvidence is the evidence of a repository about a release.
type ReleaseEvidence struct {
	Claims  []evidence.Claim // by subject as the release lists them, then by bundle
	Ignored evidence.IgnoredEvidence
	Present map[registry.Digest]bool // every bundle, including ignored ones
	// unlisted are bundles that only the catalog has, kept all that it has.
	unlisted, Kept map[registry.Digest]bool
	Lost           []evidence.AdverseEvidence // unlisted ones, up to maxLost bytes
	left           int
}

// maxLost bounds the bytes of evidence that resolve hands to a node because its repository lost it. What is beyond counts,
// and is found by nodes when the repository lists it again.
const maxLost = 1 << 20

// Listed drops the claims that only the catalog has, which cannot be copied from the repository. They count without that.
func (e ReleaseEvidence) Listed() []evidence.Claim {
	return slices.DeleteFunc(slices.Clone(e.Claims), func(c evidence.Claim) bool { return e.unlisted[c.Bundle] })
}

// lose notes evidence that only the catalog has.
func (e *ReleaseEvidence) lose(environment, model string, subject registry.Digest, b evidence.Bundle) {
	if size := len(b.Data) + len(b.Manifest); b.Unlisted && size <= e.left {
		e.left -= size
		e.Lost = append(e.Lost, evidence.AdverseEvidence{Environment: environment, Model: model, Subject: subject, Bundle: b.Digest,
			PredicateType: b.PredicateType, Document: b.Document, Manifest: b.Manifest, Data: b.Data})
	}
}

// Evidence verifies every bundle about the release in a repository, one at a time, for a
// resource. For a promotion that is the resource of the destination. Bundles that do not verify
// are ignored. A bundle with changed bytes, or one that could not be checked, is an error, because
// it could be evidence against the release.
func Evidence(ctx context.Context, s *backend.Backend, repository, resource string, r artifact.Release) (ReleaseEvidence, error) {
	found := ReleaseEvidence{left: maxLost, Present: make(map[registry.Digest]bool), unlisted: make(map[registry.Digest]bool), Kept: make(map[registry.Digest]bool)}
	for _, subject := range r.Subjects() {
		all, err := evidenceAbout(ctx, s, repository, resource, r.Model, subject.Digest, &found)
		if err != nil {
			return ReleaseEvidence{}, err
		}
		claims, err := dropCopies(ctx, s, r.Model, all, &found.Ignored)
		if err != nil {
			return ReleaseEvidence{}, err
		}
		slices.SortFunc(claims, func(a, b evidence.Claim) int { return cmp.Compare(a.Bundle, b.Bundle) })
		found.Claims = append(found.Claims, claims...)
	}
	return found, PlaceInHistory(ctx, s, r.Model, found.Claims)
}

// documented has the claims of one document: one for each manifest that holds it, in order of
// the manifests' digests.
type documented []evidence.Claim

// evidenceAbout returns the claims about one subject by document, and adds the rest to found.
// It verifies a document in several manifests only once.
func evidenceAbout(
	ctx context.Context, s *backend.Backend,
	repository, resource, model string,
	subject registry.Digest,
	found *ReleaseEvidence,
) ([]documented, error) {
	var all []documented
	var document registry.Digest
	var verified evidence.Claim
	var refusal error
	var begun bool // all has claims of the document
	environment, _, _ := strings.Cut(repository, "/")
	for b, err := range s.Content.Evidence(ctx, repository, subject) {
		if err != nil {
			return nil, err
		}
		found.Present[b.Digest], found.unlisted[b.Digest], found.Kept[b.Digest] = true, b.Unlisted, len(b.Kept) > 0
		if document == "" || document != b.Document {
			document, begun = b.Document, false
			verified, refusal = VerifyAbout(ctx, s, b.Data, cmp.Or(b.PredicateType, "unknown"), resource, model)
		}
		switch claim := verified; {
		case refusal != nil && registry.CodeOf(refusal) != registry.CodeTrust:
			return nil, registry.Errorf(registry.CodeOf(refusal), "verify evidence %s: %w", b.Digest, refusal)
		case keptElsewhere(repository, b) && (refusal != nil || !countsHere(s, repository, claim)):
			// It was never attached here, and would not be.
		case refusal != nil:
			found.Ignored.Ignore(evidence.Ignored{Bundle: b.Digest, Subject: subject, Reason: refusal.Error()})
		default:
			claim.Bundle, claim.Subject = b.Digest, subject
			found.lose(environment, model, subject, b)
			if !begun {
				all, begun = append(all, nil), true
			}
			all[len(all)-1] = append(all[len(all)-1], claim)
		}
	}
	return all, nil
}

// dropCopies keeps one claim per document, and all claims that the history names. Anyone who
// may push can put someone else's bundle into any number of manifests, and a promotion would
// copy all of them.
func dropCopies(
	ctx context.Context, s *backend.Backend,
	model string,
	all []documented,
	ignored *evidence.IgnoredEvidence,
) ([]evidence.Claim, error) {
	var kept []evidence.Claim
	for _, same := range all {
		if len(same) == 1 {
			kept = append(kept, same...)
			continue
		}
		var bundles []registry.Digest
		for _, c := range same {
			bundles = append(bundles, c.Bundle)
		}
		named, err := s.Records.Recorded(ctx, model, bundles)
		if err != nil {
			return nil, err
		}
		isNamed := func(c evidence.Claim) bool { return named[c.Bundle].Seq > 0 }
		first := max(0, slices.IndexFunc(same, isNamed))
		for i, c := range same {
			if i == first || isNamed(c) {
				kept = append(kept, c)
				continue
			}
			ignored.Ignore(
				evidence.Ignored{
					Bundle:  c.Bundle,
					Subject: c.Subject,
					Reason:  "it is the same bundle as " + string(same[first].Bundle),
				},
			)
		}
	}
	return kept, nil
}

// VerifyAbout verifies a bundle for a resource of a model. An approval is judged by the trust of the
// resource that it names, wherever it is stored: an approver of prod approves releases in staging,
// where the approver need not be trusted. annotated is the predicate type in the
// bundle's manifest, or "" if it has none. Errors: as [storage.VerifyEvidence].
func VerifyAbout(ctx context.Context, s *backend.Backend, data []byte, annotated, resource, model string) (evidence.Claim, error) {
	claim, err := s.Verify(ctx, data, resource)
	unknown := registry.HasCode(err, registry.CodeTrust) && mayBeApproval(annotated)
	uri, isApproval := claim.ApprovedResource()
	if err == nil && (!isApproval || uri == resource) || err != nil && !unknown {
		return claim, err
	}
	for _, e := range s.Environments.List {
		named := s.Resource(e.Name, model)
		if !e.Protected() || named == resource || isApproval && named != uri {
			continue
		}
		there, refusal := s.Verify(ctx, data, named)
		if refusal != nil && !registry.HasCode(refusal, registry.CodeTrust) {
			return evidence.Claim{}, refusal
		}
		if about, ok := there.ApprovedResource(); refusal == nil && ok && about == named {
			return there, nil
		}
	}
	claim.Roles = nil // those for another resource say nothing about the one that is named
	return claim, err
}

// mayBeApproval reports whether a bundle that is annotated with a predicate type, or with none, may
// hold an approval of either kind.
func mayBeApproval(annotated string) bool {
	return annotated == "" || annotated == evidence.PredicateApproval || annotated == evidence.PredicateBreakGlass
}

// Union returns the source's evidence and the evidence that was added at the destination since an
// earlier promotion of the release. A quarantine counts wherever it is.
func Union(here, there []evidence.Claim) []evidence.Claim {
	all := slices.Clone(here)
	for _, c := range there {
		if !slices.ContainsFunc(here, func(same evidence.Claim) bool { return same.Bundle == c.Bundle }) {
			all = append(all, c)
		}
	}
	return all
}

// Publishers lists the callers who published a release, or attached a builder's statement about it or an engine
// of it, as the builders of parts do. It is empty if no rule of the environment asks about people.
func Publishers(ctx context.Context, s *backend.Backend, to policy.Environment, r artifact.Release) ([]evidence.Person, error) {
	if to.Approvals.Attested == nil {
		return nil, nil
	}
	asks := []history.HistoryQuery{{Model: r.Model, Kind: history.EventPublish}}
	for _, subject := range r.Subjects() {
		asks = append(asks, history.HistoryQuery{Model: r.Model, Kind: history.EventAttach, Subject: subject.Digest})
	}
	var all []evidence.Person
	for _, q := range asks {
		for e, err := range s.Catalog.History(ctx, q) {
			if err != nil {
				return nil, err
			}
			took := e.Kind == history.EventPublish && e.Release == r.Digest || e.Builds()
			if who := e.Publisher(); took && who.Principal != "" && !slices.Contains(all, who) {
				all = append(all, who)
			}
		}
	}
	return all, nil
}
