package mem

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Table is documents by name. Make one with [NewTable].
type Table[T any] struct {
	mu        sync.RWMutex
	documents map[string][]byte // JSON, so that nobody shares what is kept
}

var (
	_ storage.NodeTypes   = (*Table[artifact.Node])(nil)
	_ storage.NodeReports = (*Table[storage.NodeReport])(nil)
)

// NewTable is an empty table.
func NewTable[T any]() *Table[T] { return &Table[T]{documents: make(map[string][]byte)} }

// Put stores a document.
func (t *Table[T]) Put(ctx context.Context, name string, document T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	body, err := json.Marshal(document)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.documents[name] = body
	return nil
}

// Get returns a document.
func (t *Table[T]) Get(ctx context.Context, name string) (document T, err error) {
	if err := ctx.Err(); err != nil {
		return document, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	body, ok := t.documents[name]
	if !ok {
		return document, registry.Errorf(registry.CodeNotFound, "%s: not found", name)
	}
	return document, json.Unmarshal(body, &document)
}

// List returns a page of documents.
func (t *Table[T]) List(ctx context.Context, after string, limit int) ([]registry.Named[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var page []registry.Named[T]
	for _, name := range slices.Sorted(maps.Keys(t.documents)) {
		if name <= after {
			continue
		}
		if len(page) == limit {
			break
		}
		named := registry.Named[T]{Name: name}
		if err := json.Unmarshal(t.documents[name], &named.Document); err != nil {
			return nil, err
		}
		page = append(page, named)
	}
	return page, nil
}

// rows lists a page of documents as they are kept.
func (t *Table[T]) rows(after string, limit int) []catalog.DocumentRow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var page []catalog.DocumentRow
	for _, name := range slices.Sorted(maps.Keys(t.documents)) {
		if name > after && len(page) < limit {
			page = append(page, catalog.DocumentRow{Name: name, Body: string(t.documents[name])})
		}
	}
	return page
}

func (t *Table[T]) clone() map[string][]byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.documents)
}

// Delete removes a document.
func (t *Table[T]) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.documents[name]; !ok {
		return registry.Errorf(registry.CodeNotFound, "%s: not found", name)
	}
	delete(t.documents, name)
	return nil
}

// CountNames counts the documents whose names begin with prefix, up to most.
func (t *Table[T]) CountNames(ctx context.Context, prefix string, most int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := 0
	for name := range t.documents {
		if strings.HasPrefix(name, prefix) && n < most {
			n++
		}
	}
	return n, nil
}

// DeleteSame removes a document if it is still the one that was read.
func (t *Table[T]) DeleteSame(ctx context.Context, read registry.Named[T]) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	body, err := json.Marshal(read.Document)
	if err != nil {
		return false, registry.Errorf(registry.CodeInvalid, "%s: %w", read.Name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Equal(t.documents[read.Name], body) {
		return false, nil
	}
	delete(t.documents, read.Name)
	return true, nil
}
