package storage

import (
	"context"
	"io/fs"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Recipe describes content as a sequence of pieces. Content that has one need not be stored itself.
type Recipe struct {
	Digest  registry.Digest // of the content
	Size    int64           // bytes of all pieces
	Created time.Time       // when it was recorded, by the clock of the catalog
	Pieces  []Piece
}

// Piece is either literal bytes, or the whole stored content of another digest.
type Piece struct {
	Literal []byte          `json:"literal,omitempty"`
	Digest  registry.Digest `json:"digest,omitempty"`
	Size    int64           `json:"size,omitempty"` // of the digest
}

// Length returns the number of bytes of the piece.
func (p Piece) Length() int64 {
	if p.Digest != "" {
		return p.Size
	}
	return int64(len(p.Literal))
}

// Parts lists the digests that the recipe needs, each once, in the order of the pieces.
func (r Recipe) Parts() []registry.Digest {
	var parts []registry.Digest
	seen := make(map[registry.Digest]bool, len(r.Pieces))
	for _, p := range r.Pieces {
		if p.Digest != "" && !seen[p.Digest] {
			seen[p.Digest] = true
			parts = append(parts, p.Digest)
		}
	}
	return parts
}

// Recipes records recipes. A part of a recipe counts as held by a repository, so no collector deletes its bytes.
// Bytes are read by a recipe alone, so nobody but a collector that has compared them with the digest may record one.
// [Removals.BeginRemoval] deletes a recipe when its content is removed. Implementations are safe for concurrent use,
// also by several processes. Writes are durable on return.
type Recipes interface {
	// Recipe returns the recipe of d. Errors: CodeNotFound.
	Recipe(ctx context.Context, d registry.Digest) (Recipe, error)
	// RecipeDigests lists up to limit digests that have a recipe, after a digest ("" for the first), in byte order.
	RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error)
	// AddRecipe records a recipe as of now, unless its digest has one, and reports whether it did. It records none
	// while a removal of the digest or of a part is recorded, even one that has expired: such bytes may vanish. It
	// records none either of content that is a part, or from content that has a recipe, so that parts are always stored
	// bytes.
	AddRecipe(ctx context.Context, r Recipe) (bool, error)
}

// VersionOf returns a text that changes with the bytes of stored content: the time and size of a file, or the version that
// the storage reports. It is "" if neither is known.
func VersionOf(blob Blob) string {
	switch b := blob.(type) {
	case interface{ Version() string }:
		return b.Version()
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := b.Stat(); err == nil {
			return strconv.FormatInt(info.ModTime().UnixNano(), 36) + " " + strconv.FormatInt(info.Size(), 36)
		}
	}
	return ""
}
