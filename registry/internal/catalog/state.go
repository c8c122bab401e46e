package catalog

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Restrictions is the name of the counter of events that restrict releases.
const Restrictions = "restrictions"

// Rows reads what a change rests on, in the transaction of the change. Where there is no row,
// a method returns the zero value.
type Rows interface {
	StateRows
	// LastBody returns the body of the newest event, or "".
	LastBody(ctx context.Context) (string, error)
	// BodiesSince returns the bodies of a model's events after a sequence number, in order.
	BodiesSince(ctx context.Context, model string, after int64) ([]string, error)
	// Tag returns the digest that a tag names, or "".
	Tag(ctx context.Context, repository, tag string) (registry.Digest, error)
	// UnmarkManifest unmarks the record of a manifest and returns the number of records: 0 or 1.
	UnmarkManifest(ctx context.Context, m storage.ManifestPlace) (int64, error)
}

// StateRows reads the rows of a [history.ModelState]. Where there is no row, a method returns
// the zero value.
type StateRows interface {
	HeadRow(ctx context.Context, environment, model string) (history.Head, error)
	CounterGet(ctx context.Context, name string) (int64, error)
	ConfigurationParts(ctx context.Context) ([]history.ConfigurationPart, error)
	// HistoryLastSeq returns the number of the newest event.
	HistoryLastSeq(ctx context.Context) (int64, error)
	// Documents lists up to limit documents of a kind after a name, in byte order of their names.
	Documents(ctx context.Context, kind, after string, limit int) ([]DocumentRow, error)
}

// ModelState reads the state of a model in an environment, at one instant if q does.
func ModelState(ctx context.Context, q StateRows, environment, model string) (history.ModelState, error) {
	s := history.ModelState{Environment: environment, Model: model}
	var err error
	if s.Head, err = q.HeadRow(ctx, environment, model); err != nil {
		return s, err
	}
	if s.Restrictions, err = q.CounterGet(ctx, Restrictions); err != nil {
		return s, err
	}
	parts, err := q.ConfigurationParts(ctx)
	if err != nil {
		return s, err
	}
	s.Agreed = Configuration(parts)
	if s.NodeTypes, err = nodeTypesDigest(ctx, q); err != nil {
		return s, err
	}
	s.Seq, err = q.HistoryLastSeq(ctx)
	return s, err
}

// nodeTypesDigest covers the names and bodies of the stored node types; empty if there are none.
func nodeTypesDigest(ctx context.Context, q StateRows) (registry.Digest, error) {
	var all []DocumentRow
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := q.Documents(ctx, nodeTypeKind, after, storage.MaxPage)
		if err != nil {
			return "", err
		}
		all = append(all, page...)
		switch {
		case len(all) == 0:
			return "", nil
		case len(page) < storage.MaxPage:
			return registry.CanonicalDigest(all)
		}
	}
}

// Reader decodes rows for [Decide].
type Reader struct{ Rows }

var _ Tx = Reader{}

// Last returns the newest event, or the zero Event.
func (r Reader) Last(ctx context.Context) (history.Event, error) {
	body, err := r.LastBody(ctx)
	if err != nil || body == "" {
		return history.Event{}, err
	}
	return DecodeEvent(body)
}

// ModelState returns the state of a model in an environment.
func (r Reader) ModelState(ctx context.Context, environment, model string) (history.ModelState, error) {
	return ModelState(ctx, r.Rows, environment, model)
}

// Since lists the events of a model after a sequence number.
func (r Reader) Since(ctx context.Context, model string, after int64) ([]history.Event, error) {
	bodies, err := r.BodiesSince(ctx, model, after)
	if err != nil {
		return nil, err
	}
	return DecodeEvents(bodies)
}

// Recorded reports whether a manifest is recorded, and unmarks it.
func (r Reader) Recorded(ctx context.Context, m storage.ManifestPlace) (bool, error) {
	n, err := r.UnmarkManifest(ctx, m)
	return n > 0, err
}
