package lookup

import (
	"context"
	"iter"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
)

// keptContent is content whose evidence is what a repository lists, and the adverse evidence that the catalog keeps. Every
// reading of evidence goes through it, so that nothing depends on what others write to a repository.
type keptContent struct {
	storage.Content
	kept evidence.AdverseEvidences
}

// WithKept adds the adverse evidence that a catalog keeps to content.
func WithKept(content storage.Content, kept evidence.AdverseEvidences) storage.Content {
	return keptContent{content, kept}
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
func countsHere(s *backend.Backend, repository string, claim evidence.Claim) bool {
	who := claim.Attested()
	environment, _, _ := strings.Cut(repository, "/")
	e, err := s.Find(environment)
	return who == nil || err == nil && e.Approvals.Attested.Lists(*who)
}
