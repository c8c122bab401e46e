package storage

import "mlpromote.dev/mlpromote/registry"

// Page sizes.
const (
	DefaultPage = 100  // if no limit is given
	MaxPage     = 1000 // the largest limit
)

// Page is part of a list.
type Page[T any] struct {
	Items []T
	Next  string // the next page begins after this name; empty on the last page
	// Partial is true if the page leaves out items, or parts of them, that the caller may not read.
	Partial bool
}

// Listed returns the items, which are never nil, and what follows them.
func (p Page[T]) Listed() (items any, next string, partial bool) {
	if p.Items == nil {
		p.Items = []T{}
	}
	return p.Items, p.Next, p.Partial
}

// Receive sets what follows the items, and returns a pointer to them.
func (p *Page[T]) Receive(next string, partial bool) (items any) {
	p.Next, p.Partial = next, partial
	return &p.Items
}

// TaggedRelease is a release with one of its tags in an environment.
type TaggedRelease struct {
	Tag     string          `json:"tag"`
	Release registry.Digest `json:"release"`
}

// PageLimit returns the page size for a requested limit.
func PageLimit(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}
