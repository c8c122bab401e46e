package service

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// keptContent is content whose evidence is what a repository lists, and the adverse evidence that the catalog keeps. Every
// reading of evidence goes through it, so that nothing depends on what others write to a repository.
type keptContent struct {
	storage.Content
	kept evidence.AdverseEvidences
}

// keptBundle is evidence that the catalog keeps, without its bytes, and the name of a row that has them.
type keptBundle struct {
	evidence.Bundle
	row string
}

// Evidence returns the bundles that the repository lists, and then those that only the catalog has.
func (c keptContent) Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error] {
	return func(yield func(evidence.Bundle, error) bool) {
		kept, err := c.about(ctx, repository, subject)
		if err != nil {
			yield(evidence.Bundle{}, err)
			return
		}
		for b, err := range c.Content.Evidence(ctx, repository, subject) {
			if at := slices.IndexFunc(kept, func(k keptBundle) bool { return k.Digest == b.Digest }); at >= 0 {
				b.Kept = kept[at].Kept
				kept = slices.Delete(kept, at, at+1)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		for _, k := range kept {
			b, err := c.whole(ctx, k)
			b.Unlisted = true
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Bundle reads one piece of evidence, from the catalog if the repository does not have it.
func (c keptContent) Bundle(ctx context.Context, repository string, d registry.Digest) (evidence.Bundle, error) {
	b, err := c.Content.Bundle(ctx, repository, d)
	if !registry.HasCode(err, registry.CodeNotFound) {
		return b, err
	}
	kept, failed := c.about(ctx, repository, "")
	if failed != nil {
		return b, failed
	}
	if at := slices.IndexFunc(kept, func(k keptBundle) bool { return k.Digest == d }); at >= 0 {
		return c.whole(ctx, kept[at])
	}
	return b, err
}

// about returns what the catalog keeps about a subject in any environment, or about all of a model, each once. Nothing is
// kept about sources.
func (c keptContent) about(ctx context.Context, repository string, subject registry.Digest) ([]keptBundle, error) {
	model, sources := registry.ModelOf(repository)
	if sources {
		return nil, nil
	}
	rows, err := c.kept.Adverse(ctx, model, subject)
	var kept []keptBundle
	for _, row := range rows {
		if at := slices.IndexFunc(kept, func(k keptBundle) bool { return k.Digest == row.Bundle }); at >= 0 {
			kept[at].Kept = append(kept[at].Kept, row.Environment)
			continue
		}
		kept = append(kept, keptBundle{row: row.Name(), Bundle: evidence.Bundle{
			Digest: row.Bundle, Document: row.Document, PredicateType: row.PredicateType, Kept: []string{row.Environment}}})
	}
	return kept, err
}

// whole reads the bytes of kept evidence.
func (c keptContent) whole(ctx context.Context, k keptBundle) (evidence.Bundle, error) {
	row, err := c.kept.AdverseRow(ctx, k.row)
	k.Manifest, k.Data = row.Manifest, row.Data
	return k.Bundle, err
}

// keptElsewhere reports whether evidence is kept for other environments than that of a repository, which does not list it.
func keptElsewhere(repository string, b evidence.Bundle) bool {
	environment, _, _ := strings.Cut(repository, "/")
	return b.Unlisted && !slices.Contains(b.Kept, environment)
}

// countsHere reports whether evidence from elsewhere counts in a repository. What a service signed for a person has the
// service's key, which is trusted everywhere: to be attached there it would have needed the permission of its caller, or a
// person who is listed.
func countsHere(s *Backend, repository string, claim evidence.Claim) bool {
	who := claim.Attested()
	environment, _, _ := strings.Cut(repository, "/")
	e, err := s.find(environment)
	return who == nil || err == nil && e.Approvals.Attested.Lists(*who)
}

// keep returns the row of adverse evidence in an environment, attached by the caller of ctx.
func keep(ctx context.Context, environment, model string, subject registry.Digest, b evidence.Bundle) []evidence.AdverseEvidence {
	return []evidence.AdverseEvidence{{
		Environment: environment, Model: model, Subject: subject, Bundle: b.Digest, PredicateType: b.PredicateType, Caller: caller(ctx),
		Document: digest.FromBytes(b.Data), Manifest: b.Manifest, Data: b.Data,
	}}
}

// caller is the name of the principal of ctx, or empty for a local user of the data directory.
func caller(ctx context.Context) string {
	p, _ := storage.PrincipalOf(ctx)
	return p.Name
}

// keepFrom returns the rows of those claims that are adverse, with their bytes from a repository.
func keepFrom(ctx context.Context, s *Backend, repository, environment, model string, claims ...evidence.Claim) ([]evidence.AdverseEvidence, error) {
	var rows []evidence.AdverseEvidence
	for _, c := range claims {
		if !c.Adverse() {
			continue
		}
		b, err := s.Content.Bundle(ctx, repository, c.Bundle)
		if err != nil {
			return nil, err
		}
		rows = append(rows, keep(ctx, environment, model, c.Subject, b)...)
	}
	return rows, nil
}

// keepAgain writes rows whose event the history has, in case they were lost.
func keepAgain(ctx context.Context, s *Backend, rows []evidence.AdverseEvidence) error {
	for _, row := range rows {
		if err := s.Catalog.KeepAdverse(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// mayKeep refuses more adverse evidence about one subject than a caller may attach. What is kept may be attached again.
func mayKeep(ctx context.Context, s *Backend, a api.Attachment) error {
	row := evidence.AdverseEvidence{Environment: a.Environment, Model: a.Model, Subject: a.Subject, Caller: caller(ctx)}
	if s.MaxReferrers <= 0 || row.Caller == "" {
		return nil
	}
	n, err := s.Catalog.CountAdverse(ctx, row)
	if err != nil || n < s.MaxReferrers {
		return err
	}
	rows, err := s.Catalog.Adverse(ctx, a.Model, a.Subject)
	if err != nil || slices.ContainsFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Document == digest.FromBytes(a.Bundle) }) {
		return err
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeForbidden, "attach: %s attached %d quarantines, lifts and failing reports about %s in %s, the most for one caller",
			row.Caller, n, a.Subject, a.Environment),
		"another caller can attach it, or an administrator raises max-referrers")
}

// unlisted returns what the catalog keeps of an environment, and its repository does not list, without its bytes. What is about a release or
// an engine that the repository does not have any more is not lost.
func unlisted(ctx context.Context, s *Backend, p modelPlace) ([]evidence.Bundle, error) {
	e, err := s.find(p.environment)
	if err != nil {
		return nil, nil // the configuration no longer has the environment: its content cannot be read
	}
	rows, err := s.Catalog.Adverse(ctx, p.model, "")
	if err != nil {
		return nil, err
	}
	var subjects []registry.Digest
	for _, row := range rows {
		if row.Environment == p.environment {
			subjects = append(subjects, row.Subject)
		}
	}
	var lost []evidence.Bundle
	for _, subject := range unique(subjects) {
		var here []evidence.Bundle
		for b, err := range s.Content.Evidence(ctx, registry.Repository(e.Name, p.model), subject) {
			if err != nil {
				return nil, err
			}
			if b.Unlisted && slices.Contains(b.Kept, e.Name) {
				b.Manifest, b.Data = nil, nil // they may be many: the caller reads one after the other
				here = append(here, b)
			}
		}
		there := len(here) > 0
		if there {
			if there, err = exists(ctx, s, e.Name, p.model, subject); err != nil {
				return nil, err
			}
		}
		if there {
			lost = append(lost, here...)
		}
	}
	return lost, nil
}

// exists reports whether an environment has a release or an engine, be it damaged.
func exists(ctx context.Context, s *Backend, environment, model string, d registry.Digest) (bool, error) {
	repository := registry.Repository(environment, model)
	_, err := s.Content.Engine(ctx, repository, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		_, err = s.Content.Release(ctx, repository, string(d))
	}
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return false, nil
	case registry.HasCode(err, registry.CodeUnavailable):
		return false, err
	}
	return true, ctx.Err()
}

// adverseFaults compares the adverse evidence that the catalog keeps of an environment with what its repository lists and
// with the quarantines that events name. It looks twice before it reports something, which may have been on its way.
func adverseFaults(ctx context.Context, s *Backend, p modelPlace) ([]history.HistoryFault, error) {
	found, err := compareAdverse(ctx, s, p)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return compareAdverse(ctx, s, p)
}

func compareAdverse(ctx context.Context, s *Backend, p modelPlace) ([]history.HistoryFault, error) {
	lost, err := unlisted(ctx, s, p)
	if err != nil {
		return nil, err
	}
	rows, err := s.Catalog.Adverse(ctx, p.model, "")
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Environment != p.environment })
	var faults []history.HistoryFault
	fault := func(d registry.Digest, hint, format string, args ...any) {
		faults = append(faults, history.HistoryFault{Environment: p.environment, Model: p.model, Manifests: []registry.Digest{d},
			Detail: fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, row := range rows {
		if _, err := s.Catalog.AdverseRow(ctx, row.Name()); registry.HasCode(err, registry.CodeDigest) {
			fault(row.Bundle, attachAgain, "%v", err)
		} else if err != nil {
			return nil, err
		}
	}
	accepted, err := forgotten(ctx, s, p, rows, func(e history.Event, d registry.Digest) {
		fault(d, attachAgain, "event %d names the quarantine %s about %s, but the catalog does not keep it", e.Seq, d, e.Subject)
	})
	if err != nil {
		return nil, err
	}
	for _, b := range lost {
		fault(b.Digest, "others may write there, or two clients wrote the same list: mlpromote scrub lists it again, and a service does so every hour",
			"the evidence %s (%s) is not among the referrers that %s lists any more: it counts all the same",
			b.Digest, b.PredicateType, registry.Repository(p.environment, p.model))
	}
	return slices.DeleteFunc(faults, func(f history.HistoryFault) bool { return accepted[f.Manifests[0]] }), nil
}

const attachAgain = "the catalog was changed without the history: look at backups and at the log of the database, and attach it again"

// forgotten calls found with the quarantines and lifts that events of an environment name and of which there is no row. It
// returns the evidence that people accepted.
func forgotten(ctx context.Context, s *Backend, p modelPlace, rows []evidence.AdverseEvidence,
	found func(history.Event, registry.Digest)) (accepted map[registry.Digest]bool, err error) {
	accepted = make(map[registry.Digest]bool)
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Environment: p.environment, Model: p.model}) {
		if err != nil {
			return nil, err
		}
		for _, d := range e.Evidence {
			switch {
			case e.Kind == history.EventAccept:
				accepted[d] = true
			case e.Kind == history.EventAttach && e.PredicateType == evidence.PredicateQuarantine &&
				!slices.ContainsFunc(rows, func(r evidence.AdverseEvidence) bool { return r.Bundle == d }):
				found(e, d)
			}
		}
	}
	return accepted, nil
}
