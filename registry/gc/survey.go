package gc

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// survey is the state of one collection.
type survey struct {
	*Collector
	now       time.Time
	roots     map[string]*Roots                     // by model
	wanted    map[string]map[registry.Digest]string // by model: why its sources are needed; empty: not read yet
	unclear   map[string]bool                       // models with unreadable content
	skipped   []SkippedRepository
	abandoned []history.Intent // intents that will not be finished
}

// survey reads what the catalog requires to stay. Content that gets a head after this was used
// at that time, so it is not due.
func (c *Collector) survey(ctx context.Context) (*survey, error) {
	now, err := c.Clock.CatalogTime(ctx)
	if err != nil {
		return nil, err
	}
	s := &survey{
		Collector: c,
		now:       now,
		wanted:    make(map[string]map[registry.Digest]string),
		unclear:   make(map[string]bool),
	}
	environments, err := c.Current(ctx)
	if err != nil {
		return nil, err
	}
	heads, err := c.Catalog.Heads(ctx, "", "")
	if err != nil {
		return nil, err
	}
	intents, err := c.Intents.Pending(ctx)
	if err != nil {
		return nil, err
	}
	s.abandon(environments, heads, intents)
	s.roots, err = c.Retention.Roots(environments, heads, intents,
		verified(c.Catalog.History(ctx, history.HistoryQuery{})), s.now)
	return s, err
}

// abandon collects the intents that will not be finished.
func (s *survey) abandon(environments policy.Environments, heads []history.Head, intents []history.Intent) {
	for _, i := range intents {
		var head history.Head
		for _, h := range heads {
			if h.Environment == i.Environment && h.Model == i.Model {
				head = h
			}
		}
		if i.Abandoned(environments, head, s.now) != "" {
			s.abandoned = append(s.abandoned, i)
		}
	}
}

// verified returns the history, ending with an error where its chain breaks.
func verified(events iter.Seq2[history.Event, error]) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		var before history.Event
		for e, err := range events {
			if err == nil {
				err = e.VerifyChain(before)
			}
			if !yield(e, err) || err != nil {
				return
			}
			before = e
		}
	}
}

// each visits every repository, those of sources last because other repositories need their
// content. It skips unreadable repositories.
func (s *survey) each(ctx context.Context, visit func(repository string) error) error {
	repositories, err := s.Store.Repositories(ctx)
	if err != nil {
		return err
	}
	if err := s.sources(ctx, repositories); err != nil {
		return err
	}
	for _, ofSources := range []bool{false, true} {
		for _, repository := range repositories {
			model, sources := registry.ModelOf(repository)
			if sources != ofSources {
				continue
			}
			err := ctx.Err()
			if sources && s.unclear[model] {
				err = damaged{registry.Errorf(registry.CodeDigest, "a repository of %s, which refers to it, cannot be read", model)}
			} else if err == nil {
				err = visit(repository)
			}
			if isDamaged(err) {
				s.unclear[model] = true
				s.skipped = append(s.skipped, SkippedRepository{repository, err.Error()})
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// evaluate decides about each record of a repository.
func (s *survey) evaluate(
	ctx context.Context,
	repository string,
	held []storage.GCRecord,
	links map[registry.Digest]artifact.Links,
) ([]Outcome, error) {
	for _, h := range held {
		if _, known := links[h.Digest]; known || !h.Manifest {
			continue
		}
		read, err := s.links(ctx, h)
		if err != nil {
			return nil, err
		}
		links[h.Digest] = read
	}
	model, sources := registry.ModelOf(repository)
	snapshot := Snapshot{Records: held, Links: links}
	if a := s.roots[model]; a != nil {
		snapshot.Roots = *a
	}
	if sources {
		snapshot.Wanted = s.wanted[model]
	}
	return s.Retention.Evaluate(snapshot, s.now, s.wait()), nil
}

// sources lists what other repositories may need. Later content is not due yet.
func (s *survey) sources(ctx context.Context, repositories []string) error {
	for _, repository := range repositories {
		model, sources := registry.ModelOf(repository)
		if !sources {
			continue
		}
		held, err := s.Store.Records(ctx, repository)
		if err != nil {
			return err
		}
		if s.wanted[model] == nil {
			s.wanted[model] = make(map[registry.Digest]string, len(held))
		}
		for _, h := range held {
			s.wanted[model][h.Digest] = ""
		}
	}
	return nil
}

// want collects the sources that the remaining manifests of a repository mention.
func (s *survey) want(repository string, outcomes []Outcome, links map[registry.Digest]artifact.Links) {
	model, _ := registry.ModelOf(repository)
	for _, f := range outcomes {
		if f.Delete || !f.Manifest {
			continue
		}
		for _, d := range links[f.Digest].Mentions {
			if why, ok := s.wanted[model][d]; ok && why == "" {
				s.wanted[model][d] = "needed by " + repository + "@" + string(f.Digest)
			}
		}
	}
}

// damaged is an error about content that does not match its record.
type damaged struct{ error }

func (d damaged) Unwrap() error { return d.error }

// links reads the links of a manifest from its bytes. The derived data in the database may be
// incomplete while it is rebuilt.
func (s *survey) links(ctx context.Context, h storage.GCRecord) (artifact.Links, error) {
	raw, err := s.read(ctx, h)
	if err != nil {
		return artifact.Links{}, err
	}
	if h.Digest.Algorithm().FromBytes(raw) != h.Digest {
		return artifact.Links{}, damaged{
			registry.Errorf(registry.CodeDigest, "manifest %s: its bytes were changed", h.Digest),
		}
	}
	links, err := artifact.ManifestLinks(raw)
	if err != nil {
		return artifact.Links{}, damaged{registry.Errorf(registry.CodeOf(err), "manifest %s: %w", h.Digest, err)}
	}
	return links, nil
}

func (s *survey) read(ctx context.Context, h storage.GCRecord) ([]byte, error) {
	blob, size, err := s.Blobs.Open(ctx, h.Digest)
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil, damaged{registry.Errorf(registry.CodeNotFound, "manifest %s: its bytes are missing", h.Digest)}
	}
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	if size != h.Size {
		return nil, damaged{
			registry.Errorf(registry.CodeDigest, "manifest %s: it has %d bytes, want %d", h.Digest, size, h.Size),
		}
	}
	raw, err := io.ReadAll(blob)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "manifest %s: %w", h.Digest, err)
	}
	return raw, nil
}

func isDamaged(err error) bool {
	var d damaged
	return errors.As(err, &d)
}
