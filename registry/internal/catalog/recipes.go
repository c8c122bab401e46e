package catalog

import (
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// EncodePieces returns the column for the pieces of a recipe. Errors: CodeInvalid if they have another size than it.
func EncodePieces(r storage.Recipe) (string, error) {
	if err := checkPieces(r); err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	pieces, err := json.Marshal(r.Pieces)
	return string(pieces), err
}

// DecodeRecipe returns the recipe of a row. Errors: CodeInternal.
func DecodeRecipe(digest string, size int64, created time.Time, pieces string) (storage.Recipe, error) {
	r := storage.Recipe{Digest: registry.Digest(digest), Size: size, Created: created.UTC()}
	err := json.Unmarshal([]byte(pieces), &r.Pieces)
	if err == nil {
		err = checkPieces(r)
	}
	if err != nil {
		return storage.Recipe{}, registry.Errorf(registry.CodeInternal, "recipe of %s: %w", digest, err)
	}
	return r, nil
}

// checkPieces compares the size of a recipe with that of its pieces.
func checkPieces(r storage.Recipe) error {
	var sum int64
	for _, p := range r.Pieces {
		if p.Length() <= 0 || p.Digest != "" && (len(p.Literal) > 0 || registry.ValidDigest(p.Digest) != nil) {
			return registry.Errorf(registry.CodeInvalid, "a piece has %d bytes of %q: want some, either literal or of a digest", p.Length(), p.Digest)
		}
		sum += p.Length()
	}
	if sum != r.Size {
		return registry.Errorf(registry.CodeInvalid, "its pieces have %d bytes, want %d", sum, r.Size)
	}
	return nil
}
