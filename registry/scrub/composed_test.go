package scrub_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A composed layer is checked by reading it. Its damage names the part, which has damage of its own.
func TestComposedLayer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var layers []registry.Digest
	for d, err := range composed.NewComposer(w.db, w.blobs.Blobs, w.db, 0).Surplus(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, d)
		if err := w.blobs.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	w.config.Blobs = composed.Blobs(w.blobs, w.db, 0)
	if did, found := w.pass(t); len(layers) == 0 || did.Damaged+len(found) != 0 {
		t.Fatalf("%d layers, result %+v, found %v, want no damage", len(layers), did, found)
	}
	part := w.file(t)
	for _, kind := range []storage.DamageKind{storage.DamageChanged, storage.DamageMissing} {
		w.damage(t, part, kind == storage.DamageChanged)
		if kind == storage.DamageMissing {
			if err := w.blobs.Delete(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		w.config.Damages = mem.NewTable[storage.Damage]()
		did, found := w.pass(t)
		if did.Damaged != 2 || len(found) != 2 {
			t.Fatalf("%s: result %+v, found %+v, want the part and its layer", kind, did, found)
		}
		for _, f := range found {
			isLayer := f.Digest != part
			if f.Kind != kind || len(f.Releases) != 1 || isLayer != strings.Contains(f.Detail, "composed of "+string(part)) {
				t.Errorf("%s of the part: found %+v", kind, f)
			}
		}
	}
}
