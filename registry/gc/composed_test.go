package gc_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/gc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// recipe composes content of other content, with a literal byte before it.
func (w *world) recipe(t *testing.T, whole, part registry.Digest) {
	t.Helper()
	size := int64(w.size(part))
	added, err := w.AddRecipe(t.Context(), storage.Recipe{Digest: whole, Size: size + 1, Pieces: []storage.Piece{{Literal: []byte("<")}, {Digest: part, Size: size}}})
	if err != nil || !added {
		t.Fatal(added, err)
	}
}

// surplus yields digests whose own bytes are surplus.
func (w *world) surplus(digests ...registry.Digest) func(c *gc.Config) {
	return func(c *gc.Config) {
		c.Surplus = func(context.Context, time.Time) iter.Seq2[registry.Digest, error] {
			return failing(func(yield func(registry.Digest, error) bool) {
				for _, d := range digests {
					if !yield(d, nil) {
						return
					}
				}
			}, w.fails("Surplus"))
		}
	}
}

// Own bytes go at once while their content is held. Nobody loses anything: neither the parts nor a content without a recipe.
func TestCollectSurplus(t *testing.T) {
	t.Parallel()
	w := newWorld()
	part, plain := w.put(t, "", "part"), w.put(t, "staging/m", "plain")
	whole := w.put(t, "staging/m", "<part")
	w.manifest(t, "staging/m", "1.0.0", whole, plain)
	w.recipe(t, whole, part)
	did := w.collect(t, time.Minute, w.surplus(whole, plain))
	if did.Composed != 1 || did.ComposedBytes != 5 || did.Blobs != 0 || w.has(t, whole) || !w.has(t, part) || !w.has(t, plain) {
		t.Errorf("collected %+v; the whole is stored: %v, its part: %v, another: %v", did, w.has(t, whole), w.has(t, part), w.has(t, plain))
	}
	if _, marked := w.MarkedNow(whole); marked {
		t.Error("held content is marked")
	}
	for range 3 {
		if did := w.collect(t, 2*time.Hour, w.surplus(whole)); did.Blobs+did.Composed != 0 || !w.has(t, part) {
			t.Errorf("then collected %+v, the part is stored: %v", did, w.has(t, part))
		}
	}
}

// A storage of requests may carry out the deletion later. Until then the recipe stays, and nobody who stores the content waits.
func TestCollectSurplusByRequests(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.repeatable = true
	part, whole := w.put(t, "", "part"), w.put(t, "staging/m", "<part")
	w.manifest(t, "staging/m", "1.0.0", whole)
	w.recipe(t, whole, part)
	var asked time.Time
	w.collect(t, time.Minute, func(c *gc.Config) {
		w.surplus(whole)(c)
		found := c.Surplus
		c.Surplus = func(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
			asked = before
			return found(ctx, before)
		}
	})
	if w.has(t, whole) || !asked.Equal(w.Now().Add(-time.Hour)) {
		t.Errorf("the whole is stored: %v; asked for recipes before %v, want an hour ago", w.has(t, whole), asked)
	}
	if r, err := w.Unmark(t.Context(), whole); err != nil || r.ID != "" {
		t.Errorf("whoever stores it waits for %+v, error %v", r, err)
	}
	if removal, marked := w.MarkedNow(whole); !marked || removal.ID == "" {
		t.Error("the removal is over before the deletion has expired")
	}
	for range 3 { // it is forgotten with time
		w.collect(t, 2*time.Hour)
	}
	if _, marked := w.MarkedNow(whole); marked || !w.has(t, part) {
		t.Error("the removal is not forgotten")
	}
}

// A recipe goes with its content, and then its parts go. Plans know that.
func TestCollectComposed(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*gc.Config){"alone": {alone}, "beside others": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			part, whole := w.put(t, "", "part"), w.put(t, "staging/m", "<part")
			w.recipe(t, whole, part)
			w.collect(t, time.Minute, append(edits, w.surplus(whole), func(c *gc.Config) { c.Retention.Grace = 24 * time.Hour })...)
			if w.has(t, whole) || !w.has(t, part) {
				t.Fatalf("the whole is stored: %v, its part: %v; want false and true", w.has(t, whole), w.has(t, part))
			}
			w.later += 2 * time.Hour
			plan, err := w.collector(t, edits...).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var sum gc.Collected
			collections := 5
			if len(edits) > 0 {
				collections = 1
				if plan.Blobs != 1 || plan.Bytes != 4 {
					t.Errorf("planned %d blobs of %d bytes, want the part", plan.Blobs, plan.Bytes)
				}
			}
			for range collections {
				did := w.collect(t, 2*time.Hour, edits...)
				sum.Blobs += did.Blobs
				sum.Bytes += did.Bytes
			}
			_, err = w.Recipe(t.Context(), whole)
			if sum.Blobs != 1 || sum.Bytes != 4 || w.has(t, part) || !registry.HasCode(err, registry.CodeNotFound) {
				t.Errorf("deleted %d blobs of %d bytes, the part is stored: %v, the recipe: %v", sum.Blobs, sum.Bytes, w.has(t, part), err)
			}
		})
	}
}

// A plan keeps the parts of what stays.
func TestPlanKeepsParts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	part, whole := w.put(t, "", "part"), w.put(t, "staging/m", "<part")
	w.manifest(t, "staging/m", "1.0.0", whole)
	w.recipe(t, whole, part)
	plan, err := w.collector(t, alone).Plan(t.Context())
	if err != nil || plan.Blobs != 0 {
		t.Errorf("planned to delete %d blobs, error %v, want none", plan.Blobs, err)
	}
}

// Whatever port fails, own bytes and recipe are not both lost, and the next collection goes on.
func TestCollectSurplusFails(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Surplus", "Await", "BeginRemoval", "Permit", "Held", "OwnsContent", "ConfirmRemoval", "Delete", "EndRemoval", "Close", "Recipes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			part, whole := w.put(t, "", "part"), w.put(t, "staging/m", "<part")
			w.manifest(t, "staging/m", "1.0.0", whole)
			w.recipe(t, whole, part)
			w.fail = name
			if did, err := w.collector(t, w.surplus(whole)).Collect(t.Context()); !errors.Is(err, errPort) {
				t.Errorf("collected %+v, error %v; want %v", did, err, errPort)
			}
			if _, err := w.Recipe(t.Context(), whole); err != nil || !w.has(t, part) {
				t.Errorf("the recipe: %v, its part is stored: %v", err, w.has(t, part))
			}
			w.fail = ""
			w.later += 2 * time.Hour // removals have expired
			for range 3 {
				w.collect(t, 2*time.Hour, w.surplus(whole))
			}
			if w.has(t, whole) || !w.has(t, part) {
				t.Errorf("afterwards the whole is stored: %v, its part: %v", w.has(t, whole), w.has(t, part))
			}
		})
	}
}
