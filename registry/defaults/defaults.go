// Package defaults adds default documents to a table: those in an operator's folder, and those
// that are built into the program.
package defaults

import (
	"context"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Source is the read half of a [registry.Table].
type Source[T any] interface {
	// Get returns a document. Errors: CodeNotFound.
	Get(ctx context.Context, name string) (T, error)
	// List returns up to limit documents whose names follow a given name, in the order of
	// names.
	List(ctx context.Context, after string, limit int) ([]registry.Named[T], error)
}

// Over returns a table with the documents of below as defaults. A stored document replaces the
// default of the same name; deleting it brings the default back. A default cannot be deleted.
func Over[T any](table registry.Table[T], below Source[T]) registry.Table[T] {
	return over[T]{table, below}
}

type over[T any] struct {
	registry.Table[T]
	below Source[T]
}

// Get returns the stored document, else the default.
func (o over[T]) Get(ctx context.Context, name string) (T, error) {
	document, err := o.Table.Get(ctx, name)
	if registry.HasCode(err, registry.CodeNotFound) {
		return o.below.Get(ctx, name)
	}
	return document, err
}

// List merges both.
func (o over[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	own, err := o.Table.List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	below, err := o.below.List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own, below)
	slices.SortStableFunc(all, func(a, b registry.Named[T]) int { return strings.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b registry.Named[T]) bool { return a.Name == b.Name })
	return all[:min(limit, len(all))], nil
}

// Delete removes what was put.
func (o over[T]) Delete(ctx context.Context, name string) error {
	err := o.Table.Delete(ctx, name)
	if !registry.HasCode(err, registry.CodeNotFound) {
		return err
	}
	if _, below := o.below.Get(ctx, name); below == nil {
		return registry.Lastingf(registry.CodeConflict,
			"%s is a default and cannot be deleted; put another document with this name to replace it", name)
	}
	return err
}

// Documents is a source in memory.
type Documents[T any] map[string]T

// Get returns a document.
func (d Documents[T]) Get(_ context.Context, name string) (T, error) {
	document, ok := d[name]
	if !ok {
		return document, registry.Errorf(registry.CodeNotFound, "unknown name %s", name)
	}
	return document, nil
}

// List returns a page of documents.
func (d Documents[T]) List(_ context.Context, after string, limit int) ([]registry.Named[T], error) {
	var page []registry.Named[T]
	for name, document := range d {
		if name > after {
			page = append(page, registry.Named[T]{Name: name, Document: document})
		}
	}
	slices.SortFunc(page, func(a, b registry.Named[T]) int { return strings.Compare(a.Name, b.Name) })
	return page[:min(limit, len(page))], nil
}
