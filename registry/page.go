package registry

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

// ModelHeads is a model with its heads.
type ModelHeads struct {
	Name  string `json:"name"`
	Heads []Head `json:"heads"` // by environment
}

// TaggedRelease is a release with one of its tags in an environment.
type TaggedRelease struct {
	Tag     string `json:"tag"`
	Release Digest `json:"release"`
}

// PageLimit returns the page size for a requested limit.
func PageLimit(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}
