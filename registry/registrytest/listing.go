package registrytest

import (
	"fmt"
	"testing"

	"mlpromote.dev/mlpromote/registry/storage"
)

// testModelPage walks over models page by page.
func testModelPage(t *testing.T, store Store) {
	for i, model := range []string{"b", "a/b", "a", "a-b", "c", "Z"} {
		apply(t, store, move(model, "", "1.0.0"))
		if i%2 == 0 {
			apply(t, store, inEnvironment("staging", move(model, "", "1.0.0")))
		}
	}
	walk := func(environment string, limit int) []string {
		var seen []string
		after := ""
		for {
			heads, err := store.ModelPage(t.Context(), environment, after, limit)
			must(t, err)
			if len(heads) == 0 {
				return seen
			}
			models := make(map[string]bool)
			for _, h := range heads {
				seen = append(seen, h.Environment+" "+h.Model)
				models[h.Model], after = true, h.Model
			}
			if len(models) > limit {
				t.Fatalf("a page of %d models has the heads %+v", limit, heads)
			}
		}
	}
	for _, limit := range []int{1, 2, 5, 100} {
		wantEqual(t, walk("", limit), []string{"prod Z", "prod a", "staging a", "prod a-b", "prod a/b", "prod b", "staging b", "prod c", "staging c"})
		wantEqual(t, walk("staging", limit), []string{"staging a", "staging b", "staging c"})
		wantEqual(t, len(walk("moon", limit)), 0)
	}
}

// testTagPage walks over the tags of one type among others.
func testTagPage(t *testing.T, store Store) {
	const repository, kind = "staging/a", "application/vnd.example.release"
	for i := range 9 {
		m := storage.Manifest{Digest: d(fmt.Sprint(i)), MediaType: "application/vnd.oci.image.index.v1+json", Size: 1}
		if i%3 > 0 {
			m.Derived.ArtifactType = kind
		}
		for _, in := range []string{repository, "prod/a"} {
			must(t, store.PutManifest(t.Context(), in, m))
			must(t, store.SetTag(t.Context(), in, fmt.Sprintf("v%d", i), m.Digest))
		}
	}
	must(t, store.SetTag(t.Context(), repository, "A", d("1")))
	var want []storage.Tagged
	for _, i := range []int{1, 2, 4, 5, 7, 8} {
		want = append(want, storage.Tagged{Tag: fmt.Sprintf("v%d", i), Digest: d(fmt.Sprint(i))})
	}
	want = append([]storage.Tagged{{Tag: "A", Digest: d("1")}}, want...)
	for _, limit := range []int{1, 2, 7, 100} {
		var got []storage.Tagged
		for after := ""; ; after = got[len(got)-1].Tag {
			page, err := store.TagPage(t.Context(), repository, kind, after, limit)
			must(t, err)
			if len(page) == 0 {
				break
			}
			if len(page) > limit {
				t.Fatalf("a page of %d has %d tags", limit, len(page))
			}
			got = append(got, page...)
		}
		wantEqual(t, got, want)
	}
	none, err := store.TagPage(t.Context(), "staging/b", kind, "", 10)
	must(t, err)
	wantEqual(t, len(none), 0)
}
