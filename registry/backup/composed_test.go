package backup_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// compose records a recipe of pushed content, which consists of other pushed content between two letters, and deletes its
// own bytes.
func (p *place) compose(whole, part registry.Digest, size int64) {
	p.t.Helper()
	added, err := p.db.AddRecipe(p.t.Context(), storage.Recipe{Digest: whole, Size: size + 2, Pieces: []storage.Piece{
		{Literal: []byte("<")}, {Digest: part, Size: size}, {Literal: []byte(">")},
	}})
	if err == nil {
		err = p.blobs.Delete(p.t.Context(), whole)
	}
	if err != nil || !added {
		p.t.Fatal(added, err)
	}
}

// A backup has the bytes of composed content, so that it needs no recipe.
func TestComposed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	part, whole := p.push("part"), p.push("<part>")
	p.compose(whole, part, 4)
	s := p.make()
	if err := p.verify(s); err != nil {
		t.Error(err)
	}
	p.restore(s)

	// A damaged copy is replaced by composing it again.
	p.flip(whole)
	p.from.Verify = true
	if _, checked, err := p.store.Make(t.Context(), p.from); err != nil || !slices.Equal(checked.Repaired, []registry.Digest{whole}) {
		t.Errorf("a damaged copy: checked %+v, error %v, want it repaired", checked, err)
	}

	// A part that is lost is lost for what it is composed of.
	p.flip(whole)
	if err := p.blobs.Delete(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.store.Make(t.Context(), p.from); !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), string(whole)) {
		t.Errorf("without the part: error %v, want %s that names %s", err, registry.CodeDigest, whole)
	}
}

// composing is a source whose content is composed when it is looked for, as by a collector after the catalog was copied.
type composing struct {
	storage.Blobs
	when registry.Digest
	do   func()
}

func (c *composing) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	if do := c.do; d == c.when && do != nil {
		c.do = nil
		do()
	}
	return c.Blobs.Open(ctx, d)
}

// Content that gets a recipe after the catalog was copied is read by a later copy.
func TestComposedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	part, whole := p.push("part"), p.push("<part>")
	blobs := p.from.Blobs
	p.from.Blobs = &composing{blobs, whole, func() { p.compose(whole, part, 4) }}
	p.restore(p.make())

	lost := p.push("lost")
	p.from.Blobs = &composing{blobs, lost, func() {
		if err := p.blobs.Delete(t.Context(), lost); err != nil {
			t.Error(err)
		}
	}}
	if _, _, err := p.store.Make(t.Context(), p.from); !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), string(lost)) {
		t.Errorf("lost meanwhile: error %v, want %s", err, registry.CodeDigest)
	}
}
