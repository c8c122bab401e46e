package registry

import (
	"context"
	"regexp"
)

// Table stores documents by name. Implementations are safe for concurrent use, also by several
// processes. Writes are durable on return.
type Table[T any] interface {
	// Put stores a document and replaces an earlier one with the same name.
	Put(ctx context.Context, name string, document T) error
	// Get returns a document. Errors: CodeNotFound.
	Get(ctx context.Context, name string) (T, error)
	// List returns up to limit documents after a name (exclusive, "" for the first), in byte order
	// of their names. A limit is at least 1.
	List(ctx context.Context, after string, limit int) ([]Named[T], error)
	// Delete deletes a document. Errors: CodeNotFound; CodeConflict if the document is stored in a
	// lower layer that this table only reads.
	Delete(ctx context.Context, name string) error
}

// Named is a document with its name.
type Named[T any] struct {
	Name     string `json:"name"`
	Document T      `json:"document"`
}

// documentName matches names that are safe in a path and in an image reference.
var documentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:+-]*(/[A-Za-z0-9][A-Za-z0-9._@:+-]*)*$`)

// ValidateName checks the name of a document in a table. Errors: CodeInvalid.
func ValidateName(name string) error {
	if len(name) > 255 || !documentName.MatchString(name) {
		return Errorf(
			CodeInvalid,
			"name %q: want letters, digits and . _ - + : @ in parts with '/' between them, each beginning with a letter or "+
				"digit, at most 255 in all",
			name,
		)
	}
	return nil
}
