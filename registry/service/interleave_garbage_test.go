package service_test

import (
	"context"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// garbageSpace is the bytes that are marked, by digest, and recipeSpace what they are composed of.
const (
	garbageSpace = "garbage"
	recipeSpace  = "recipes"
)

// tracedGarbage is names as a collector sees them, and the removal of bytes, of which every
// call is a step.
type tracedGarbage struct {
	*mem.DB
	arena *arena
}

func (g tracedGarbage) Repositories(ctx context.Context) (names []string, err error) {
	s := strandOf(ctx)
	s.step("Repositories", func() {
		s.read("repositories", "")
		names, err = g.DB.Repositories(ctx)
	})
	return names, err
}

func (g tracedGarbage) Records(ctx context.Context, repository string) (held []storage.GCRecord, err error) {
	s := strandOf(ctx)
	s.step("Holdings "+repository, func() {
		s.read("records "+repository, "")
		s.read("tags "+repository, "")
		held, err = g.DB.Records(ctx, repository)
	})
	return held, err
}

func (g tracedGarbage) UpdateRecords(ctx context.Context, repository string,
	decide func([]storage.GCRecord) (storage.GCChanges, error)) (err error) {
	s := strandOf(ctx)
	s.step("Settle "+repository, func() {
		s.read("records "+repository, "")
		s.read("tags "+repository, "")
		err = g.DB.UpdateRecords(ctx, repository, func(held []storage.GCRecord) (storage.GCChanges, error) {
			settled, err := decide(held)
			s.noteSettled(repository, settled)
			return settled, err
		})
	})
	return err
}

// noteSettled notes what a settlement changes.
func (s *strand) noteSettled(repository string, settled storage.GCChanges) {
	if s == nil {
		return
	}
	for _, keys := range [][]storage.GCRecordKey{settled.Mark, settled.Unmark, settled.Delete} {
		for _, key := range keys {
			s.write("records "+repository, recordItem(key))
		}
	}
	for _, key := range settled.Delete {
		s.write("held", string(key.Digest))
		s.write("referrers "+repository, "") // its subject is not known here
		s.write("tags "+repository, "")
		s.write("repositories", repository)
	}
}

func (g tracedGarbage) WithoutRepository(ctx context.Context, digests []registry.Digest) (unheld []registry.Digest, err error) {
	s := strandOf(ctx)
	s.step("Unheld", func() {
		for _, d := range digests {
			s.read("held", string(d))
		}
		unheld, err = g.DB.WithoutRepository(ctx, digests)
	})
	return unheld, err
}

func (g tracedGarbage) Mark(ctx context.Context, at time.Time, digests []registry.Digest) (err error) {
	s := strandOf(ctx)
	s.step("Condemn", func() {
		for _, d := range digests {
			_, marked := g.DB.MarkedNow(d)
			s.readOrWrite(garbageSpace, string(d), !marked)
		}
		err = g.DB.Mark(ctx, at, digests)
	})
	return err
}

// Unmark waits for a removal in place of whoever asks, who would ask again and again. If nothing
// but time ends removals, it lets the time pass.
func (g tracedGarbage) Unmark(ctx context.Context, d registry.Digest) (r storage.Removal, err error) {
	s := strandOf(ctx)
	over := func() bool {
		removal, _ := g.DB.MarkedNow(d)
		return removal.ID == "" || removal.Left <= 0 || g.has(ctx, d)
	}
	if g.arena.late && s != nil {
		over = nil
	}
	s.stepWhen("Rescind", over, func() {
		removal, marked := g.DB.MarkedNow(d)
		if over == nil && removal.ID != "" && removal.Left > 0 && !g.has(ctx, d) {
			s.write(clockSpace, "")
			g.arena.now = g.arena.now.Add(removal.Left)
		}
		s.read(clockSpace, "")
		s.read(recipeSpace, string(d))
		s.readOrWrite(garbageSpace, string(d), marked)
		r, err = g.DB.Unmark(ctx, d)
	})
	return r, err
}

func (g tracedGarbage) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	s := strandOf(ctx)
	return inOneStep(s, "Due", func() { s.read(garbageSpace, "") }, inOrder(g.DB.MarkedBefore(ctx, before)))
}

func (g tracedGarbage) BeginRemoval(ctx context.Context, r storage.RemovalRequest) (begun []registry.Digest, err error) {
	s := strandOf(ctx)
	s.step("BeginRemoval", func() {
		s.read(clockSpace, "")
		for _, d := range r.Digests {
			s.read("held", string(d))
			s.write(garbageSpace, string(d))
			s.readOrWrite(recipeSpace, string(d), !r.Own)
			if recipe, err := g.DB.Recipe(ctx, d); err == nil && !r.Own {
				for _, part := range recipe.Parts() {
					s.write("held", string(part))
				}
			}
		}
		begun, err = g.DB.BeginRemoval(ctx, r)
	})
	return begun, err
}

func (g tracedGarbage) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (lasts bool, err error) {
	s := strandOf(ctx)
	s.step("ConfirmRemoval", func() {
		s.read(clockSpace, "")
		s.read(garbageSpace, "")
		lasts, err = g.DB.ConfirmRemoval(ctx, id, least)
	})
	return lasts, err
}

func (g tracedGarbage) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) (err error) {
	s := strandOf(ctx)
	s.step("EndRemoval", func() {
		for _, digests := range [][]registry.Digest{removed, kept} {
			for _, d := range digests {
				s.write(garbageSpace, string(d))
			}
		}
		err = g.DB.EndRemoval(ctx, id, removed, kept)
	})
	return err
}

func (g tracedGarbage) TakeOver(ctx context.Context, d registry.Digest, id string) (err error) {
	s := strandOf(ctx)
	s.step("TakeOver", func() {
		s.read(clockSpace, "")
		s.write(garbageSpace, string(d))
		err = g.DB.TakeOver(ctx, d, id)
	})
	return err
}

// has reports whether d has a recipe, so that nobody waits for a removal.
func (g tracedGarbage) has(ctx context.Context, d registry.Digest) bool {
	_, err := g.DB.Recipe(ctx, d)
	return err == nil
}

func (g tracedGarbage) Recipe(ctx context.Context, d registry.Digest) (r storage.Recipe, err error) {
	s := strandOf(ctx)
	s.step("Recipe", func() {
		s.read(recipeSpace, string(d))
		r, err = g.DB.Recipe(ctx, d)
	})
	return r, err
}

func (g tracedGarbage) RecipeDigests(ctx context.Context, after registry.Digest, limit int) (page []registry.Digest, err error) {
	s := strandOf(ctx)
	s.step("RecipeDigests", func() {
		s.read(recipeSpace, "")
		page, err = g.DB.RecipeDigests(ctx, after, limit)
	})
	return page, err
}

func (g tracedGarbage) AddRecipe(ctx context.Context, r storage.Recipe) (added bool, err error) {
	s := strandOf(ctx)
	s.step("AddRecipe", func() {
		s.write(recipeSpace, string(r.Digest))
		s.read(garbageSpace, string(r.Digest))
		for _, part := range r.Parts() {
			s.read(recipeSpace, string(part))
			s.read(garbageSpace, string(part))
			s.write("held", string(part))
		}
		added, err = g.DB.AddRecipe(ctx, r)
	})
	return added, err
}

// tracedManifests lists all manifests in one step.
type tracedManifests struct{ *mem.DB }

func (m tracedManifests) AllManifests(ctx context.Context) iter.Seq2[storage.RepositoryManifest, error] {
	s := strandOf(ctx)
	return inOneStep(s, "AllManifests", s.readEverything, m.DB.AllManifests(ctx))
}

func (g tracedGarbage) CatalogTime(ctx context.Context) (now time.Time, err error) {
	s := strandOf(ctx)
	s.step("CatalogTime", func() {
		s.read(clockSpace, "")
		now, err = g.DB.CatalogTime(ctx)
	})
	return now, err
}

// tracedRemover is permits of which every call is a step.
type tracedRemover struct {
	*mem.Blobs
	arena *arena
}

// Repeatable is true if deletions are requests.
func (r tracedRemover) Repeatable() bool { return r.arena.late }

func (r tracedRemover) Permit(ctx context.Context) (p storage.Permit, err error) {
	s := strandOf(ctx)
	s.step("Permit", func() {
		s.write("permits", "one")
		s.read(clockSpace, "")
		r.arena.permits++
		p, err = r.Blobs.Permit(ctx)
	})
	return tracedPermit{p, s, r.arena, r.arena.now.Add(storage.PermitTime)}, err
}

func (r tracedRemover) Await(ctx context.Context) (err error) {
	s := strandOf(ctx)
	s.stepWhen("Await", func() bool { return r.arena.permits == 0 || r.arena.late }, func() {
		if r.arena.late {
			return // its permits run out by themselves
		}
		s.read("permits", "one")
		err = r.Blobs.Await(ctx)
	})
	return err
}

type tracedPermit struct {
	storage.Permit
	strand *strand
	arena  *arena
	until  time.Time
}

func (p tracedPermit) Delete(ctx context.Context, d registry.Digest) (err error) {
	p.strand.step("Delete", func() {
		if p.arena.late {
			p.strand.read(clockSpace, "")
			if p.arena.now.After(p.until) {
				err = registry.Errorf(registry.CodeUnavailable, "delete %s: the permit has run out", d)
				return
			}
			p.strand.write("deleted", "")
			p.arena.deleted = append(p.arena.deleted, deletion{d, p.until})
		}
		p.strand.write("bytes", string(d))
		err = p.Permit.Delete(ctx, d)
	})
	return err
}

func (p tracedPermit) Close() (err error) {
	p.strand.step("Close", func() {
		p.strand.write("permits", "one")
		p.arena.permits--
		err = p.Permit.Close()
	})
	return err
}
