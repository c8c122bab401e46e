package distribution_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/storage"
)

// listRepositories lists one page of repositories, and gives the URL of the next one.
func (w *world) listRepositories(t *testing.T, path string) (names []string, next string) {
	t.Helper()
	a := w.do(t, "GET", path, nil).want(t, 200, "").wantHeader(t, "Content-Type", "application/json")
	var list struct{ Repositories *[]string }
	if err := json.Unmarshal(a.body, &list); err != nil || list.Repositories == nil {
		t.Fatalf("got %s, %v", a.body, err)
	}
	return *list.Repositories, nextPage(t, a)
}

func TestListRepositories(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		if names, next := w.listRepositories(t, "/v2/_catalog"); len(names) != 0 || next != "" {
			t.Errorf("of an empty registry: %v %v", names, next)
		}
		all := []string{"a", "a-b", "a/b", "a/c", "b/a"}
		for _, name := range all {
			w.pushImage(t, name, "1", nil)
			w.pushImage(t, name, "2", map[string]any{"annotations": map[string]string{"a": "b"}})
		}
		w.pushBlob(t, "uploaded/alone", "content")
		for _, c := range []struct {
			query string
			want  []string
			next  bool
		}{
			{"", all, false},
			{"?n=2", all[:2], true},
			{"?n=5", all, false},
			{"?n=1000000", all, false},
			{"?n=0", []string{}, false},
			{"?n=2&last=a-b", all[2:4], true},
			{"?last=a/b", all[3:], false},
			{"?last=a/bb", all[3:], false},
			{"?last=z", []string{}, false},
		} {
			names, next := w.listRepositories(t, "/v2/_catalog"+c.query)
			if diff := cmp.Diff(c.want, names); diff != "" || (next != "") != c.next {
				t.Errorf("%s: next page %q, difference (-want +got):\n%s", c.query, next, diff)
			}
		}
		for _, malformed := range []string{"?n=-1", "?n=x", "?n="} {
			w.do(t, "GET", "/v2/_catalog"+malformed, nil).want(t, 400, "UNSUPPORTED")
		}
		for _, malformed := range []string{"?last=%00", "?last=../x", "?last=A", "?last=" + strings.Repeat("a", 256)} {
			w.do(t, "GET", "/v2/_catalog"+malformed, nil).want(t, 400, "NAME_INVALID")
		}
	})
}

// counted counts the pages that are read.
type counted struct {
	storage.RepositoryRecords
	names *int
}

func (c counted) ListRepositories(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	names, err := c.RepositoryRecords.ListRepositories(ctx, prefix, after, limit)
	*c.names += len(names)
	return names, err
}

// Following the links lists every visible repository once and names no hidden one, whatever share of
// them is hidden. With prefixes, other repositories are not read at all.
func TestListRepositoriesInPages(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]func(i int) bool{
		"all": func(int) bool { return true }, "none": func(int) bool { return false }, "one": func(i int) bool { return i == 37 },
		"some": func(i int) bool { return i%3 == 1 }, "the first": func(i int) bool { return i < 5 }, "the last": func(i int) bool { return i > 34 },
	} {
		for _, prefixes := range [][]string{nil, {"prod/", "staging/"}, {"prod/0", "prod/1", "prod/2", "prod/3", "staging"}} {
			t.Run(fmt.Sprint(name, prefixes), func(t *testing.T) {
				t.Parallel()
				c := memory(t)
				read, hidden := 0, make(map[string]bool)
				c.MaxTags, c.Refs = 4, counted{c.Refs, &read}
				c.Authorize = func(_ context.Context, a distribution.Access) error {
					if hidden[a.Repository] {
						return registry.Errorf(registry.CodeForbidden, "not for you")
					}
					return nil
				}
				if prefixes != nil {
					c.Prefixes = func(context.Context) []string { return prefixes }
				}
				w := listen(t, c)
				var want []string
				for i := range 40 {
					name := fmt.Sprintf("prod/%02d", i)
					w.pushImage(t, name, "1", nil)
					if allowed(i) {
						want = append(want, name)
					} else {
						hidden[name] = true
					}
				}
				for i := range 40 {
					name := fmt.Sprintf("lab/%02d", i)
					w.pushImage(t, name, "1", nil)
					hidden[name] = true
				}
				for _, query := range []string{"", "?n=2", "?n=1", "?n=100"} {
					var got []string
					read = 0
					pages := 0
					for next := "/v2/_catalog" + query; next != ""; pages++ {
						for name := range hidden {
							if strings.Contains(next, strings.ReplaceAll(name, "/", "%2F")) {
								t.Errorf("the link %s names a hidden repository", next)
							}
						}
						var page []string
						page, next = w.listRepositories(t, next)
						got = append(got, page...)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: difference (-want +got):\n%s", query, diff)
					}
					if most := 40 + pages*(4+2)*5; prefixes != nil && read > most {
						t.Errorf("%s: %d names were read in %d pages, want at most %d", query, read, pages, most)
					}
				}
			})
		}
	}
}

// A failure is no reason to leave a repository out.
func TestListRepositoriesFails(t *testing.T) {
	t.Parallel()
	c := memory(t)
	c.Authorize = func(_ context.Context, a distribution.Access) error {
		if a.Action == distribution.List && a.Repository != "" {
			return errors.New("the rules cannot be read")
		}
		return nil
	}
	w := listen(t, c)
	w.pushImage(t, repo, "1", nil)
	w.do(t, "GET", "/v2/_catalog", nil).want(t, 500, "UNSUPPORTED")
}
