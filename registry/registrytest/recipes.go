package registrytest

import (
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// recipe composes the content that a word names of others, with a literal byte in front of each.
func recipe(word string, parts ...string) storage.Recipe {
	r := storage.Recipe{Digest: d(word)}
	for _, part := range parts {
		r.Pieces = append(r.Pieces, storage.Piece{Literal: []byte("x")}, storage.Piece{Digest: d(part), Size: int64(len(part))})
		r.Size += int64(len(part)) + 1
	}
	return r
}

// ownRemoval asks for a minute to remove the own bytes of content that has a recipe.
func ownRemoval(id string, words ...string) storage.RemovalRequest {
	r := removal(id, words...)
	r.Before, r.Own = time.Time{}, true
	return r
}

func addRecipe(t *testing.T, c Collectable, r storage.Recipe, want bool) {
	t.Helper()
	added, err := c.AddRecipe(t.Context(), r)
	must(t, err)
	wantEqual(t, added, want)
}

func wantRecipe(t *testing.T, c Collectable, word string, want bool) {
	t.Helper()
	_, err := c.Recipe(t.Context(), d(word))
	if want {
		must(t, err)
		return
	}
	wantCode(t, err, registry.CodeNotFound)
}

// A recipe is read as it was recorded, and the first one stays.
func testRecipes(t *testing.T, c Collectable, pass func(time.Duration)) {
	now, err := c.CatalogTime(t.Context())
	must(t, err)
	first := recipe("layer", "a", "bb", "a")
	addRecipe(t, c, first, true)
	pass(time.Hour)
	addRecipe(t, c, recipe("layer", "a", "bb", "a"), false)
	addRecipe(t, c, recipe("other", "ccc"), true)
	got, err := c.Recipe(t.Context(), d("layer"))
	must(t, err)
	first.Created = now
	wantEqual(t, got, first)
	wantRecipe(t, c, "a", false)
	for limit := 1; limit < 4; limit++ {
		var all []registry.Digest
		for after := registry.Digest(""); ; after = all[len(all)-1] {
			page, err := c.RecipeDigests(t.Context(), after, limit)
			must(t, err)
			if all = append(all, page...); len(page) < limit {
				break
			}
		}
		want := []registry.Digest{d("layer"), d("other")}
		if want[0] > want[1] {
			want[0], want[1] = want[1], want[0]
		}
		wantEqual(t, all, want)
	}
	for name, bad := range map[string]storage.Recipe{
		"another size":    {Digest: d("bad"), Size: 2, Pieces: []storage.Piece{{Literal: []byte("x")}}},
		"an empty piece":  {Digest: d("bad"), Size: 1, Pieces: []storage.Piece{{Literal: []byte("x")}, {}}},
		"a negative size": {Digest: d("bad"), Size: 0, Pieces: []storage.Piece{{Literal: []byte("x")}, {Digest: d("a"), Size: -1}}},
		"no digest":       {Digest: d("bad"), Size: 1, Pieces: []storage.Piece{{Digest: "sha256:x", Size: 1}}},
		"both":            {Digest: d("bad"), Size: 1, Pieces: []storage.Piece{{Literal: []byte("x"), Digest: d("a"), Size: 1}}},
	} {
		if added, err := c.AddRecipe(t.Context(), bad); added || !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: added is %v, error %v, want %s", name, added, err, registry.CodeInvalid)
		}
	}
}

// The parts of a recipe are not removed, whoever held them before, until their content is.
func testRecipeHolds(t *testing.T, c Collectable, _ func(time.Duration)) {
	must(t, c.AddBlob(t.Context(), "staging/a", d("layer"), 9))
	mark(t, c, "part") // before the recipe
	addRecipe(t, c, recipe("layer", "part"), true)
	unheld, err := c.WithoutRepository(t.Context(), []registry.Digest{d("part"), d("layer"), d("x")})
	must(t, err)
	wantEqual(t, unheld, []registry.Digest{d("x")})
	wantBegun(t, c, removal("one", "part", "layer"))
	wantDue(t, c)

	must(t, c.RemoveBlob(t.Context(), "staging/a", d("layer")))
	mark(t, c, "layer", "part")
	wantBegun(t, c, removal("two", "part", "layer"), "layer")
	wantRecipe(t, c, "layer", false)
	unheld, err = c.WithoutRepository(t.Context(), []registry.Digest{d("part"), d("layer")})
	must(t, err)
	wantEqual(t, unheld, []registry.Digest{d("part"), d("layer")})
	wantRescind(t, c, "layer", storage.Removal{ID: "two", Left: time.Minute})
}

// Whoever holds the content keeps its parts, also in another repository than the one that had them.
func testRecipeMounted(t *testing.T, c Collectable, _ func(time.Duration)) {
	for _, word := range []string{"layer", "part"} {
		must(t, c.AddBlob(t.Context(), "staging/a", d(word), 4))
	}
	addRecipe(t, c, recipe("layer", "part"), true)
	must(t, c.AddBlob(t.Context(), "staging/b", d("layer"), 9))
	for _, word := range []string{"layer", "part"} {
		must(t, c.RemoveBlob(t.Context(), "staging/a", d(word)))
		mark(t, c, word)
	}
	wantBegun(t, c, removal("one", "layer", "part"))
	wantRecipe(t, c, "layer", true)
}

// No recipe is made of bytes that may vanish, or of other recipes.
func testRecipeRefused(t *testing.T, c Collectable, pass func(time.Duration)) {
	mark(t, c, "going", "marked", "gone")
	wantBegun(t, c, removal("one", "going", "gone"), "going", "gone")
	must(t, c.EndRemoval(t.Context(), "one", removal("", "gone").Digests, nil))
	addRecipe(t, c, recipe("layer", "part", "going"), false)
	addRecipe(t, c, recipe("going", "part"), false)
	pass(time.Hour) // nobody knows whether it is gone
	addRecipe(t, c, recipe("layer", "going"), false)
	must(t, c.TakeOver(t.Context(), d("going"), "one"))
	addRecipe(t, c, recipe("layer", "going"), true)
	addRecipe(t, c, recipe("other", "marked", "gone"), true)
	addRecipe(t, c, recipe("deep", "layer"), false)
	addRecipe(t, c, recipe("going", "part"), false)
	addRecipe(t, c, recipe("free", "part"), true)
}

// Own bytes are removed while the content is held, and nobody waits for that; but the recipe stays that long.
func testRemovalOwn(t *testing.T, c Collectable, pass func(time.Duration)) {
	must(t, c.AddBlob(t.Context(), "staging/a", d("layer"), 9))
	addRecipe(t, c, recipe("layer", "part"), true)
	addRecipe(t, c, recipe("unheld", "part"), true)
	addRecipe(t, c, recipe("marked", "part"), true)
	mark(t, c, "marked", "part")
	wantBegun(t, c, ownRemoval("one", "layer", "unheld", "marked", "part", "plain"), "layer", "unheld")
	wantConfirmed(t, c, "one", time.Minute, true)
	wantBegun(t, c, ownRemoval("two", "layer"))
	wantRescind(t, c, "layer", storage.Removal{})
	wantConfirmed(t, c, "one", time.Minute, true)
	must(t, c.AddBlob(t.Context(), "staging/b", d("layer"), 9))

	must(t, c.EndRemoval(t.Context(), "one", removal("", "layer").Digests, nil))
	wantRecipe(t, c, "layer", true)
	wantBegun(t, c, ownRemoval("three", "layer"), "layer")

	// Of unheld content, the recipe stays until its own bytes can no longer be deleted.
	must(t, c.Mark(t.Context(), dusk(), removal("", "unheld").Digests))
	late := removal("four", "unheld")
	late.Before = dusk().Add(24 * time.Hour)
	wantBegun(t, c, late)
	wantConfirmed(t, c, "one", time.Minute, true)
	pass(time.Minute + time.Second)
	wantBegun(t, c, late)
	wantRecipe(t, c, "unheld", true)
	var err error
	late.Abandoned, err = c.CatalogTime(t.Context())
	must(t, err)
	wantBegun(t, c, late) // it forgets the removal, which says nothing about a mark
	wantRecipe(t, c, "unheld", true)
	mark(t, c, "unheld")
	wantBegun(t, c, late, "unheld")
	wantRecipe(t, c, "unheld", false)

	again := ownRemoval("five", "layer")
	wantBegun(t, c, again)
	again.Abandoned = late.Abandoned
	wantBegun(t, c, again, "layer")
	wantConfirmed(t, c, "three", 0, false)
	wantConfirmed(t, c, "five", time.Minute, true)
}

// Of a recipe and the removal of its part that come at the same time, one is refused.
func testRecipeRace(t *testing.T, c Collectable, _ func(time.Duration)) {
	for _, word := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		mark(t, c, word)
		var both sync.WaitGroup
		var begun []registry.Digest
		var added bool
		both.Go(func() {
			var err error
			if begun, err = c.BeginRemoval(t.Context(), removal(word, word)); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			var err error
			if added, err = c.AddRecipe(t.Context(), recipe("layer of "+word, word)); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if (len(begun) > 0) == added {
			t.Errorf("part %s is being removed: %v, its recipe was recorded: %v, want one of the two", word, begun, added)
		}
	}
}
