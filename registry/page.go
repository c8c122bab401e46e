package registry

// Bounds of a page.
const (
	DefaultPage = 100  // where no limit is given
	MaxPage     = 1000 // whatever limit is given
)

// Page is part of a list.
type Page[T any] struct {
	Items []T
	Next  string // what the next page begins behind; empty: there is none
}

// ModelHeads is a model and where it is.
type ModelHeads struct {
	Name  string `json:"name"`
	Heads []Head `json:"heads"` // by environment
}

// TaggedRelease is a release of an environment by one of its tags.
type TaggedRelease struct {
	Tag     string `json:"tag"`
	Release Digest `json:"release"`
}

// PageLimit is how many things a page holds where limit was asked for.
func PageLimit(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}
