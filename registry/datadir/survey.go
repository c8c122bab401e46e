package datadir

import (
	"context"
	"iter"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// sampledEvents and sampledDigests limit the sample of a catalog that is looked up in a place.
	sampledEvents  = 200
	sampledDigests = 32
)

// Names lists the content that a catalog refers to.
type Names interface {
	Repositories(ctx context.Context) ([]string, error)
	Records(ctx context.Context, repository string) ([]storage.GCRecord, error)
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
}

// Survey returns a function that examines a place without a mark. recorded means that the
// directory recorded it as the place of its content before marks existed. Otherwise the place
// is known if it has the evidence that the newest events of the catalog name, because evidence
// is unique to a catalog and never collected. Without evidence it looks for the heads.
func Survey(catalog Names, blobs storage.Blobs, recorded bool) func(context.Context, *Place) error {
	return func(ctx context.Context, p *Place) error {
		repositories, err := catalog.Repositories(ctx)
		if err != nil {
			return err
		}
		found, err := holdsAnything(ctx, blobs)
		if err != nil {
			return err
		}
		p.CatalogEmpty, p.Empty, p.Known = len(repositories) == 0, !found, recorded && found
		if p.Known || p.Empty || p.CatalogEmpty {
			return nil
		}
		p.Known, err = hasNamed(ctx, catalog, blobs)
		return err
	}
}

// hasNamed reports whether the whole sample of a catalog is stored.
func hasNamed(ctx context.Context, catalog Names, blobs storage.Blobs) (bool, error) {
	sample, err := newest(ctx, catalog)
	if err != nil {
		return false, err
	}
	for _, d := range sample {
		blob, _, err := blobs.Open(ctx, d)
		if registry.HasCode(err, registry.CodeNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := blob.Close(); err != nil {
			return false, err
		}
	}
	return len(sample) > 0, nil
}

// newest returns the evidence that the newest events name, or else the heads. It leaves out
// content that an environment keeps on another registry: repositories do not hold it.
func newest(ctx context.Context, catalog Names) ([]registry.Digest, error) {
	s := sample{catalog: catalog, held: make(map[string]map[registry.Digest]bool)}
	for e, err := range catalog.History(ctx, history.HistoryQuery{Descending: true, Limit: sampledEvents}) {
		for _, d := range e.Evidence {
			if err == nil {
				err = s.add(ctx, e.Environment, e.Model, d)
			}
		}
		if err != nil || len(s.digests) == sampledDigests {
			return s.digests, err
		}
	}
	if len(s.digests) > 0 {
		return s.digests, nil
	}
	heads, err := catalog.Heads(ctx, "", "")
	for _, h := range heads {
		if err == nil {
			err = s.add(ctx, h.Environment, h.Model, h.Release)
		}
	}
	return s.digests, err
}

// sample is a set of digests that repositories of a catalog hold.
type sample struct {
	catalog Names
	held    map[string]map[registry.Digest]bool // by repository
	digests []registry.Digest
}

// add adds a digest if the repository holds it and the sample is not full.
func (s *sample) add(ctx context.Context, environment, model string, d registry.Digest) error {
	repository := environment + "/" + model
	if s.held[repository] == nil {
		holdings, err := s.catalog.Records(ctx, repository)
		if err != nil {
			return err
		}
		s.held[repository] = make(map[registry.Digest]bool, len(holdings))
		for _, h := range holdings {
			s.held[repository][h.Digest] = true
		}
	}
	if s.held[repository][d] && len(s.digests) < sampledDigests {
		s.digests = append(s.digests, d)
	}
	return nil
}
