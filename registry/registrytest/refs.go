package registrytest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestRefs is the contract of [storage.RepositoryRecords].
func TestRefs(t *testing.T, open func(t *testing.T) storage.RepositoryRecords) {
	for name, test := range map[string]func(*testing.T, storage.RepositoryRecords){
		"members":                      testMembers,
		"manifests":                    testManifests,
		"referrers":                    testReferrers,
		"pages of referrers":           testReferrerPages,
		"counts of referrers":          testReferrerCounts,
		"all manifests":                testAllManifests,
		"writes while manifests run":   testAllManifestsWrites,
		"tags":                         testTags,
		"tag without manifest":         testTagsDangling,
		"list of tags":                 testListTags,
		"list of repositories":         testListRepositories,
		"many writers":                 testRefsConcurrent,
		"canceled sequence of records": testAllManifestsCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// record is a manifest with everything set.
func record(name, subject string) storage.Manifest {
	m := storage.Manifest{Digest: d(name), MediaType: "application/vnd.oci.image.manifest.v1+json", Size: int64(len(name))}
	m.Derived.ArtifactType = "application/vnd.test"
	m.Derived.Annotations = map[string]string{"name": name, "quote": `"<&'` + "\u2028"}
	if subject != "" {
		m.Derived.Subject = d(subject)
	}
	return m
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference from what is wanted (-want +got):\n%s", diff)
	}
}

func testMembers(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	_, err := refs.Blob(ctx, "staging/a", d("blob"))
	wantCode(t, err, registry.CodeNotFound)
	for range 2 {
		must(t, refs.AddBlob(ctx, "staging/a", d("blob"), 4))
	}
	size, err := refs.Blob(ctx, "staging/a", d("blob"))
	must(t, err)
	wantEqual(t, size, int64(4))
	for _, elsewhere := range []string{"staging/b", "staging", "staging/a/b", ""} {
		_, err = refs.Blob(ctx, elsewhere, d("blob"))
		wantCode(t, err, registry.CodeNotFound)
	}
}

func testManifests(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	_, err := refs.Manifest(ctx, "staging/a", d("m"))
	wantCode(t, err, registry.CodeNotFound)
	first := record("m", "subject")
	first.Pusher = "token:ci"
	must(t, refs.PutManifest(ctx, "staging/a", first))
	got, err := refs.Manifest(ctx, "staging/a", d("m"))
	must(t, err)
	wantEqual(t, got, first)
	_, err = refs.Manifest(ctx, "staging/b", d("m"))
	wantCode(t, err, registry.CodeNotFound)

	// Again: the derived part is replaced, the facts stay.
	again := storage.Manifest{Digest: d("m"), MediaType: "text/plain", Size: 1, Pusher: "token:other"}
	must(t, refs.PutManifest(ctx, "staging/a", again))
	again.MediaType, again.Size, again.Pusher = first.MediaType, first.Size, first.Pusher
	got, err = refs.Manifest(ctx, "staging/a", d("m"))
	must(t, err)
	wantEqual(t, got, again)
	referrers, err := refs.Referrers(ctx, "staging/a", d("subject"), "", "")
	must(t, err)
	wantEqual(t, len(referrers), 0)

	// A record is not changed through what was given or got.
	must(t, refs.PutManifest(ctx, "staging/a", first))
	first.Derived.Annotations["name"] = "changed"
	got, err = refs.Manifest(ctx, "staging/a", d("m"))
	must(t, err)
	want := record("m", "subject")
	want.Pusher = "token:ci"
	wantEqual(t, got, want)
}

func testReferrers(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	var want []storage.Manifest
	for i := range 5 {
		m := record(fmt.Sprint("referrer ", i), "subject")
		must(t, refs.PutManifest(ctx, "staging/a", m))
		want = append(want, m)
	}
	other := record("of another type", "subject")
	other.Derived.ArtifactType = "other"
	must(t, refs.PutManifest(ctx, "staging/a", other))
	must(t, refs.PutManifest(ctx, "staging/a", record("of nothing", "")))
	must(t, refs.PutManifest(ctx, "staging/a", record("of another subject", "else")))
	must(t, refs.PutManifest(ctx, "staging/b", record("in another repository", "subject")))
	byDigest := func(a, b storage.Manifest) int { return cmpStrings(a.Digest, b.Digest) }
	slices.SortFunc(want, byDigest)

	got, err := refs.Referrers(ctx, "staging/a", d("subject"), "application/vnd.test", "")
	must(t, err)
	wantEqual(t, got, want)
	want = append(want, other)
	slices.SortFunc(want, byDigest)
	got, err = refs.Referrers(ctx, "staging/a", d("subject"), "", "")
	must(t, err)
	wantEqual(t, got, want)
	for _, nobody := range []registry.Digest{d("nobody"), ""} {
		got, err = refs.Referrers(ctx, "staging/a", nobody, "", "")
		must(t, err)
		wantEqual(t, len(got), 0)
	}
	got, err = refs.Referrers(ctx, "no/where", d("subject"), "", "")
	must(t, err)
	wantEqual(t, len(got), 0)
}

// Referrers count for who pushed them first, whatever was pushed again by whom.
func testReferrerCounts(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	counts, ok := refs.(storage.ReferrerCounts)
	if !ok {
		t.Fatalf("%T counts no referrers", refs)
	}
	put := func(repository, name, subject, pusher string) {
		t.Helper()
		m := record(name, subject)
		m.Pusher = pusher
		must(t, refs.PutManifest(ctx, repository, m))
	}
	for i := range 3 {
		put("staging/a", fmt.Sprint(i), "subject", "token:ci")
		put("staging/a", fmt.Sprint(i), "subject", "token:other")
	}
	put("staging/a", "by another", "subject", "token:other")
	put("staging/a", "of another subject", "else", "token:ci")
	put("staging/a", "of nothing", "", "token:ci")
	put("staging/b", "elsewhere", "subject", "token:ci")
	for pusher, want := range map[string]int{"token:ci": 3, "token:other": 1, "token:nobody": 0} {
		n, err := counts.CountReferrers(ctx, "staging/a", d("subject"), pusher)
		must(t, err)
		if n != want {
			t.Errorf("%s pushed %d referrers, want %d", pusher, n, want)
		}
	}
}

// A page has few long annotations and any number of short ones; all pages have every referrer
// once, by digest.
func testReferrerPages(t *testing.T, refs storage.RepositoryRecords) {
	var want []storage.Manifest
	for i := range 230 {
		m := record(fmt.Sprint(i), "subject")
		if i < 7 {
			m.Derived.Annotations["long"] = strings.Repeat("x", storage.ReferrerPage/2)
		}
		must(t, refs.PutManifest(t.Context(), "staging/a", m))
		want = append(want, m)
	}
	slices.SortFunc(want, func(a, b storage.Manifest) int { return cmpStrings(a.Digest, b.Digest) })
	wantEqual(t, collect(t, storage.AllReferrers(t.Context(), refs, "staging/a", d("subject"), "")), want)
	wantEqual(t, len(collect(t, storage.AllReferrers(t.Context(), refs, "staging/a", d("subject"), "other"))), 0)
}

// allManifests records enough manifests for several pages of any implementation.
func allManifests(t *testing.T, refs storage.RepositoryRecords) []storage.RepositoryManifest {
	t.Helper()
	var all []storage.RepositoryManifest
	for i := range 230 {
		repository := []string{"prod/b", "staging/a", "staging/b"}[i%3]
		m := record(fmt.Sprint(i), "")
		must(t, refs.PutManifest(t.Context(), repository, m))
		all = append(all, storage.RepositoryManifest{Repository: repository, Manifest: m})
	}
	slices.SortFunc(all, func(a, b storage.RepositoryManifest) int {
		if c := cmpStrings(a.Repository, b.Repository); c != 0 {
			return c
		}
		return cmpStrings(a.Manifest.Digest, b.Manifest.Digest)
	})
	return all
}

func testAllManifests(t *testing.T, refs storage.RepositoryRecords) {
	wantEqual(t, len(collect(t, refs.AllManifests(t.Context()))), 0)
	want := allManifests(t, refs)
	wantEqual(t, collect(t, refs.AllManifests(t.Context())), want)
}

// Reindex records every manifest anew while it lists them.
func testAllManifestsWrites(t *testing.T, refs storage.RepositoryRecords) {
	var want []storage.RepositoryManifest
	for i := range 10 {
		m := record(fmt.Sprint(i), "")
		must(t, refs.PutManifest(t.Context(), "staging/a", m))
		want = append(want, storage.RepositoryManifest{Repository: "staging/a", Manifest: m})
	}
	seen := 0
	for rm, err := range refs.AllManifests(t.Context()) {
		must(t, err)
		must(t, refs.PutManifest(t.Context(), rm.Repository, rm.Manifest))
		seen++
	}
	wantEqual(t, seen, len(want))
}

func testAllManifestsCanceled(t *testing.T, refs storage.RepositoryRecords) {
	must(t, refs.PutManifest(t.Context(), "staging/a", record("m", "")))
	wantCanceled(t, func(ctx context.Context) iter.Seq2[storage.RepositoryManifest, error] { return refs.AllManifests(ctx) })
}

func testTags(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	_, err := refs.Tag(ctx, "staging/a", "1.0.0")
	wantCode(t, err, registry.CodeNotFound)
	for _, name := range []string{"one", "two"} {
		must(t, refs.PutManifest(ctx, "staging/a", record(name, "")))
		must(t, refs.SetTag(ctx, "staging/a", "1.0.0", d(name)))
		got, err := refs.Tag(ctx, "staging/a", "1.0.0")
		must(t, err)
		wantEqual(t, got, d(name))
	}
	must(t, refs.PutManifest(ctx, "staging/a", record("three", ""), "1.0.0", "new"))
	for _, tag := range []string{"1.0.0", "new"} {
		got, err := refs.Tag(ctx, "staging/a", tag)
		must(t, err)
		wantEqual(t, got, d("three"))
	}
	_, err = refs.Tag(ctx, "staging/b", "1.0.0")
	wantCode(t, err, registry.CodeNotFound)
}

func testTagsDangling(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	must(t, refs.PutManifest(ctx, "staging/b", record("elsewhere", "")))
	for _, unknown := range []string{"nowhere", "elsewhere"} {
		wantCode(t, refs.SetTag(ctx, "staging/a", "1.0.0", d(unknown)), registry.CodeNotFound)
	}
	_, err := refs.Tag(ctx, "staging/a", "1.0.0")
	wantCode(t, err, registry.CodeNotFound)
}

func testListRepositories(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	inByteOrder := []string{"lab/a", "prod/vision-2/a", "prod/vision.2/a", "prod/vision/a", "prod/vision/a-b", "prod/vision/a/sources", "prod/vision/b", "staging/a"}
	for _, repository := range slices.Backward(inByteOrder) {
		for _, name := range []string{"m", "n"} { // and each of them is listed once
			must(t, refs.PutManifest(ctx, repository, record(name, "")))
		}
	}
	must(t, refs.AddBlob(ctx, "prod/upload", d("blob"), 4)) // which is no manifest
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []string
	}{
		{"", "", 100, inByteOrder},
		{"", "", 3, inByteOrder[:3]},
		{"", "prod/vision/a", 2, inByteOrder[4:6]},
		{"", "prod/vision", 100, inByteOrder[1:]},
		{"", "prod/visionary", 100, inByteOrder[7:]},
		{"", "zzz", 100, nil},
		{"prod/", "", 100, inByteOrder[1:7]},
		{"prod/", "lab/a", 2, inByteOrder[1:3]},
		{"prod/", "staging/a", 100, nil},
		{"prod/vision/", "prod/vision/a", 100, inByteOrder[4:7]},
		{"prod/vision/a", "", 100, inByteOrder[3:6]},
		{"prod/vision/a", "", 1, inByteOrder[3:4]},
		{"prod/vision/c", "", 1, nil},
	} {
		got, err := refs.ListRepositories(ctx, c.prefix, c.after, c.limit)
		must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("repositories with %q after %q, at most %d: got %q, want %q", c.prefix, c.after, c.limit, got, c.want)
		}
	}
}

func testListTags(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	must(t, refs.PutManifest(ctx, "staging/a", record("m", "")))
	inByteOrder := []string{"1.0.0", "1.0.0-r2", "1.10.0", "1.2.0", "B", "_x", "a", "current"}
	for _, tag := range []string{"current", "B", "a", "1.2.0", "_x", "1.0.0-r2", "1.10.0", "1.0.0"} {
		must(t, refs.SetTag(ctx, "staging/a", tag, d("m")))
	}
	for _, c := range []struct {
		repository, after string
		limit             int
		want              []string
	}{
		{"staging/a", "", 0, inByteOrder},
		{"staging/a", "", 3, inByteOrder[:3]},
		{"staging/a", "1.10.0", 2, inByteOrder[3:5]},
		{"staging/a", "1.5", 0, inByteOrder[4:]},
		{"staging/a", "current", 5, nil},
		{"staging/b", "", 0, nil},
	} {
		got, err := refs.ListTags(ctx, c.repository, c.after, c.limit)
		must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("tags of %s after %q, at most %d: got %q, want %q", c.repository, c.after, c.limit, got, c.want)
		}
	}
}

func testRefsConcurrent(t *testing.T, refs storage.RepositoryRecords) {
	ctx := t.Context()
	const writers = 32
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			m := record(fmt.Sprint(i), "subject")
			for _, err := range []error{
				refs.AddBlob(ctx, "staging/a", m.Digest, 1),
				refs.PutManifest(ctx, "staging/a", m),
				refs.SetTag(ctx, "staging/a", "last", m.Digest),
			} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	referrers, err := refs.Referrers(ctx, "staging/a", d("subject"), "", "")
	must(t, err)
	wantEqual(t, len(referrers), writers)
	_, err = refs.Tag(ctx, "staging/a", "last")
	must(t, err)
}
