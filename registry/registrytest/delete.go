package registrytest

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// DeletableRefs is names that can be taken away.
type DeletableRefs interface {
	storage.RepositoryRecords
	storage.Deleter
}

// TestDeleter is the contract of [storage.Deleter], over the names of the same store.
func TestDeleter(t *testing.T, open func(t *testing.T) DeletableRefs) {
	for name, test := range map[string]func(*testing.T, DeletableRefs){
		"manifest":  testDeleteManifest,
		"referrer":  testDeleteReferrer,
		"tag":       testDeleteTag,
		"blob":      testRemoveBlob,
		"not found": testDeleteNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// twoRepositories has the manifests m and n with tags in two repositories.
func twoRepositories(t *testing.T, refs DeletableRefs) {
	t.Helper()
	for _, repository := range []string{"staging/a", "staging/b"} {
		for name, tags := range map[string][]string{"m": {"1.0.0", "current"}, "n": {"2.0.0"}} {
			must(t, refs.PutManifest(t.Context(), repository, record(name, "")))
			for _, tag := range tags {
				must(t, refs.SetTag(t.Context(), repository, tag, d(name)))
			}
		}
	}
}

func wantTagList(t *testing.T, refs storage.RepositoryRecords, repository string, want ...string) {
	t.Helper()
	got, err := refs.ListTags(t.Context(), repository, "", 0)
	must(t, err)
	wantEqual(t, got, want)
}

func testDeleteManifest(t *testing.T, refs DeletableRefs) {
	twoRepositories(t, refs)
	must(t, refs.DeleteManifest(t.Context(), "staging/a", d("m")))
	_, err := refs.Manifest(t.Context(), "staging/a", d("m"))
	wantCode(t, err, registry.CodeNotFound)
	wantTagList(t, refs, "staging/a", "2.0.0")
	wantTagList(t, refs, "staging/b", "1.0.0", "2.0.0", "current")
	_, err = refs.Manifest(t.Context(), "staging/b", d("m"))
	must(t, err)
	wantCode(t, refs.DeleteManifest(t.Context(), "staging/a", d("m")), registry.CodeNotFound)

	// A repository without manifests is not listed, although it has blobs.
	must(t, refs.AddBlob(t.Context(), "staging/a", d("blob"), 4))
	must(t, refs.DeleteManifest(t.Context(), "staging/a", d("n")))
	repositories, err := refs.ListRepositories(t.Context(), "", "", 9)
	must(t, err)
	wantEqual(t, repositories, []string{"staging/b"})

	// It can come back, with nothing of what it was.
	again := storage.Manifest{Digest: d("m"), MediaType: "another/type", Size: 7}
	must(t, refs.PutManifest(t.Context(), "staging/a", again))
	got, err := refs.Manifest(t.Context(), "staging/a", d("m"))
	must(t, err)
	wantEqual(t, got, again)
}

// Whoever is deleted refers to nothing; whoever is referred to can be deleted alone.
func testDeleteReferrer(t *testing.T, refs DeletableRefs) {
	must(t, refs.PutManifest(t.Context(), "staging/a", record("subject", "")))
	for _, name := range []string{"gone", "kept"} {
		must(t, refs.PutManifest(t.Context(), "staging/a", record(name, "subject")))
	}
	must(t, refs.DeleteManifest(t.Context(), "staging/a", d("gone")))
	must(t, refs.DeleteManifest(t.Context(), "staging/a", d("subject")))
	got, err := refs.Referrers(t.Context(), "staging/a", d("subject"), "", "")
	must(t, err)
	wantEqual(t, got, []storage.Manifest{record("kept", "subject")})
}

func testDeleteTag(t *testing.T, refs DeletableRefs) {
	twoRepositories(t, refs)
	must(t, refs.DeleteTag(t.Context(), "staging/a", "1.0.0"))
	wantTagList(t, refs, "staging/a", "2.0.0", "current")
	wantTagList(t, refs, "staging/b", "1.0.0", "2.0.0", "current")
	_, err := refs.Manifest(t.Context(), "staging/a", d("m"))
	must(t, err)
	wantCode(t, refs.DeleteTag(t.Context(), "staging/a", "1.0.0"), registry.CodeNotFound)
}

func testRemoveBlob(t *testing.T, refs DeletableRefs) {
	for _, repository := range []string{"staging/a", "staging/b"} {
		must(t, refs.AddBlob(t.Context(), repository, d("blob"), 4))
	}
	must(t, refs.RemoveBlob(t.Context(), "staging/a", d("blob")))
	_, err := refs.Blob(t.Context(), "staging/a", d("blob"))
	wantCode(t, err, registry.CodeNotFound)
	_, err = refs.Blob(t.Context(), "staging/b", d("blob"))
	must(t, err)
	wantCode(t, refs.RemoveBlob(t.Context(), "staging/a", d("blob")), registry.CodeNotFound)
}

func testDeleteNothing(t *testing.T, refs DeletableRefs) {
	twoRepositories(t, refs)
	for _, repository := range []string{"staging/a", "no/where", ""} {
		wantCode(t, refs.DeleteManifest(t.Context(), repository, d("nothing")), registry.CodeNotFound)
		wantCode(t, refs.DeleteTag(t.Context(), repository, "9.9.9"), registry.CodeNotFound)
		wantCode(t, refs.RemoveBlob(t.Context(), repository, d("m")), registry.CodeNotFound)
	}
	wantTagList(t, refs, "staging/a", "1.0.0", "2.0.0", "current")
}
