package distribution_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

// listTags lists one page of tags, and gives the URL of the next one.
func (w *world) listTags(t *testing.T, path string) (tags []string, next string) {
	t.Helper()
	a := w.do(t, "GET", path, nil).want(t, 200, "").wantHeader(t, "Content-Type", "application/json")
	var list struct {
		Name string
		Tags *[]string
	}
	if err := json.Unmarshal(a.body, &list); err != nil || list.Name != repo || list.Tags == nil {
		t.Fatalf("got %s, %v", a.body, err)
	}
	return *list.Tags, nextPage(t, a)
}

var link = regexp.MustCompile(`^<(/[^>]*)>; rel="next"$`)

func nextPage(t *testing.T, a answer) string {
	t.Helper()
	header := a.header.Get("Link")
	if header == "" {
		return ""
	}
	m := link.FindStringSubmatch(header)
	if m == nil {
		t.Fatalf("Link is %q", header)
	}
	return m[1]
}

func TestListTags(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		if tags, next := w.listTags(t, at(repo, "tags/list")); len(tags) != 0 || next != "" {
			t.Errorf("of an empty repository: %v %v", tags, next)
		}
		all := []string{"1.0.0", "1.0.0-r2", "1.10.0", "1.2.0", "_x", "a", "current"}
		for _, tag := range slices.Backward(all) {
			w.pushImage(t, repo, tag, nil)
		}
		for _, c := range []struct {
			query string
			want  []string
			next  bool
		}{
			{"", all, false},
			{"?n=3", all[:3], true},
			{"?n=7", all, false},
			{"?n=1000000", all, false},
			{"?n=0", []string{}, false},
			{"?n=0&last=1.0.0", []string{}, false},
			{"?last=1.10.0", all[3:], false},
			{"?n=2&last=1.10.0", all[3:5], true},
			{"?n=2&last=_x", all[5:], false},
			{"?n=2&last=1.3", all[4:6], true},
			{"?last=zzz", []string{}, false},
		} {
			tags, next := w.listTags(t, at(repo, "tags/list"+c.query))
			if diff := cmp.Diff(c.want, tags); diff != "" || (next != "") != c.next {
				t.Errorf("%s: next page %q, difference (-want +got):\n%s", c.query, next, diff)
			}
		}
		for _, malformed := range []string{"?n=-1", "?n=x", "?n=", "?n=99999999999999999999"} {
			w.do(t, "GET", at(repo, "tags/list"+malformed), nil).want(t, 400, "UNSUPPORTED")
		}
	})
}

// Following the links lists every tag once, also where the server has a limit of its own.
func TestListTagsInPages(t *testing.T) {
	t.Parallel()
	c := memory(t)
	c.MaxTags = 3
	w := listen(t, c)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("tag-%d", i))
		w.pushImage(t, repo, want[i], nil)
	}
	for _, query := range []string{"", "?n=2", "?n=1", "?n=100"} {
		var got []string
		for next := at(repo, "tags/list"+query); next != ""; {
			var page []string
			page, next = w.listTags(t, next)
			if len(page) > 3 {
				t.Errorf("%s: a page has %d tags", query, len(page))
			}
			got = append(got, page...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: difference (-want +got):\n%s", query, diff)
		}
	}
}

type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       digest.Digest     `json:"digest"`
	Size         int               `json:"size"`
	ArtifactType *string           `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
}

// referrers follows the links of a list of referrers to its end.
func (w *world) referrers(t testing.TB, repository, subjectAndQuery string) []descriptor {
	t.Helper()
	var all []descriptor
	for next := at(repository, "referrers", subjectAndQuery); next != ""; {
		a := w.do(t, "GET", next, nil).want(t, 200, "").wantHeader(t, "Content-Type", typeIndex)
		var page struct {
			SchemaVersion int
			MediaType     string
			Manifests     *[]descriptor
		}
		if err := json.Unmarshal(a.body, &page); err != nil || page.SchemaVersion != 2 || page.MediaType != typeIndex || page.Manifests == nil {
			t.Fatalf("got %s, %v", a.body, err)
		}
		all = append(all, *page.Manifests...)
		next = ""
		if m := link.FindStringSubmatch(a.header.Get("Link")); m != nil {
			next = m[1]
		}
	}
	return all
}

// attach pushes a manifest that refers to a subject.
func (w *world) attach(t testing.TB, subject digest.Digest, fields map[string]any) digest.Digest {
	t.Helper()
	fields["subject"] = map[string]any{"mediaType": typeImage, "digest": subject, "size": 1}
	raw := image(t, w, repo, fields)
	w.putManifest(t, repo, digest.FromString(raw).String(), typeImage, raw).want(t, 201, "").wantHeader(t, "OCI-Subject", subject.String())
	return digest.FromString(raw)
}

func TestListReferrers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		subject := digest.FromString("subject")
		annotations := map[string]string{"org.example.a": "<&>", "b": ""}
		typed := w.attach(t, subject, map[string]any{"artifactType": "application/vnd.a+json", "annotations": annotations})
		untyped := w.attach(t, subject, map[string]any{})
		index := document(t,
			map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []any{},
				"subject": map[string]any{"mediaType": typeImage, "digest": subject, "size": 1}}, nil)
		w.putManifest(t, repo, "index", typeIndex, index).want(t, 201, "").wantHeader(t, "OCI-Subject", subject.String())

		got := make(map[digest.Digest]descriptor)
		for _, d := range w.referrers(t, repo, subject.String()) {
			got[d.Digest] = d
		}
		a, config := "application/vnd.a+json", "application/vnd.test.config+json"
		for d, want := range map[digest.Digest]descriptor{
			typed:                    {typeImage, typed, got[typed].Size, &a, annotations},
			untyped:                  {typeImage, untyped, got[untyped].Size, &config, nil},
			digest.FromString(index): {typeIndex, digest.FromString(index), len(index), nil, nil},
		} {
			if diff := cmp.Diff(want, got[d]); diff != "" || got[d].Size == 0 {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		}
		if len(got) != 3 {
			t.Errorf("%d referrers, want 3", len(got))
		}

		filter := subject.String() + "?artifactType=application%2Fvnd.a%2Bjson"
		if found := w.referrers(t, repo, filter); len(found) != 1 || found[0].Digest != typed {
			t.Errorf("filtered: got %v", found)
		}
		w.do(t, "GET", at(repo, "referrers", filter), nil).wantHeader(t, "OCI-Filters-Applied", "artifactType")
		w.do(t, "GET", at(repo, "referrers", subject), nil).wantHeader(t, "OCI-Filters-Applied", "")
		if found := w.referrers(t, repo, subject.String()+"?artifactType=no"); len(found) != 0 {
			t.Errorf("filtered by nothing: got %v", found)
		}
	})
}

func TestListReferrersOfNobody(t *testing.T) {
	t.Parallel()
	w := listen(t, memory(t))
	unknown := digest.FromString("unknown").String()
	for _, repository := range []string{repo, "no/where"} {
		if found := w.referrers(t, repository, unknown); len(found) != 0 {
			t.Errorf("got %v", found)
		}
	}
	for _, malformed := range []string{"x", "sha256:", "sha256:x", "latest", "sha256:" + strings.Repeat("g", 64)} {
		w.do(t, "GET", at(repo, "referrers", malformed), nil).want(t, 400, "DIGEST_INVALID")
	}
}

// Who attaches at the same time as others is not forgotten.
func TestAttachConcurrently(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		subject := digest.FromString("subject")
		image(t, w, repo, nil) // pushes the blobs
		const n = 32
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				w.attach(t, subject, map[string]any{"annotations": map[string]string{"n": itoa(i)}})
			})
		}
		wg.Wait()
		got := make(map[string]bool)
		for _, d := range w.referrers(t, repo, subject.String()) {
			got[d.Annotations["n"]] = true
		}
		if len(got) != n {
			t.Errorf("%d referrers are listed, want %d", len(got), n)
		}
	})
}

// No page is larger than a manifest may be, for clients read no more; links lead on.
func TestListReferrersInPages(t *testing.T) {
	t.Parallel()
	c := memory(t)
	c.MaxManifestBytes = 4096
	w := listen(t, c)
	subject := digest.FromString("subject")
	const n = 12
	for i := range n {
		w.attach(t, subject, map[string]any{"artifactType": "a/b", "annotations": map[string]string{"n": itoa(i), "x": strings.Repeat("<", 150)}})
	}
	for _, query := range []string{"", "?artifactType=a%2Fb"} {
		got := make(map[string]bool)
		listed := w.referrers(t, repo, subject.String()+query)
		for _, d := range listed {
			got[d.Annotations["n"]] = true
		}
		if len(got) != n || len(listed) != n {
			t.Errorf("%q: %d referrers are listed, %d of them different; want %d", query, len(listed), len(got), n)
		}
		a := w.do(t, "GET", at(repo, "referrers", subject.String()+query), nil)
		if next := nextPage(t, a); next == "" || len(a.body) > 4096 || strings.Contains(next, "artifactType") != (query != "") {
			t.Errorf("%q: the first page has %d bytes and the next one is %q", query, len(a.body), next)
		}
	}
}
