package catalog_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestPages(t *testing.T) {
	t.Parallel()
	rows := []int{1, 2, 3, 4, 5}
	broken := errors.New("broken")
	read := func(size int) func(last *int) ([]int, error) {
		return func(last *int) ([]int, error) {
			from := 0
			if last != nil {
				from = *last
			}
			return rows[from:min(from+size, len(rows))], nil
		}
	}
	cases := map[string]struct {
		size int
		read func(last *int) ([]int, error)
		bad  int // the value of this row fails
		want []int
		err  error
	}{
		"one page":                {10, read(10), 0, rows, nil},
		"several pages":           {2, read(2), 0, rows, nil},
		"the last page is full":   {5, read(5), 0, rows, nil},
		"a row is damaged":        {2, read(2), 4, []int{1, 2, 3}, broken},
		"the database is missing": {2, func(*int) ([]int, error) { return nil, broken }, 0, nil, broken},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := catalog.Pages(c.size, c.read, func(n int) (int, error) {
				if n == c.bad {
					return 0, broken
				}
				return n, nil
			})
			for range 2 { // a sequence can be read again
				var got []int
				var failed error
				for n, err := range all {
					if failed = err; err == nil {
						got = append(got, n)
					}
				}
				if !slices.Equal(got, c.want) || !errors.Is(failed, c.err) {
					t.Errorf("got %v and %v, want %v and %v", got, failed, c.want, c.err)
				}
			}
		})
	}
}

func TestReferrersPage(t *testing.T) {
	t.Parallel()
	const half = storage.ReferrerPage / 2
	cases := map[string]struct {
		sizes []catalog.ReferrerSize
		want  string // the last that is read
	}{
		"all fit":                      {[]catalog.ReferrerSize{{"a", half}, {"b", half}}, "b"},
		"the third would be too much":  {[]catalog.ReferrerSize{{"a", half}, {"b", half}, {"c", 1}}, "b"},
		"one that is larger than that": {[]catalog.ReferrerSize{{"a", 3 * half}, {"b", 1}}, "a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last string
			_, err := catalog.Referrers("",
				func(string) ([]catalog.ReferrerSize, error) { return c.sizes, nil },
				func(_, to string) ([]storage.Manifest, error) { last = to; return make([]storage.Manifest, 1), nil })
			if err != nil || last != c.want {
				t.Errorf("reads up to %q (%v), want %q", last, err, c.want)
			}
		})
	}
}

// Referrers that were deleted after their sizes were read do not end the list.
func TestReferrersDeleted(t *testing.T) {
	t.Parallel()
	pages := map[string][]catalog.ReferrerSize{"": {{"a", 1}}, "a": {{"b", 1}}}
	found, err := catalog.Referrers("",
		func(after string) ([]catalog.ReferrerSize, error) { return pages[after], nil },
		func(_, last string) ([]storage.Manifest, error) {
			if last == "a" {
				return nil, nil
			}
			return []storage.Manifest{{Digest: registry.Digest(last)}}, nil
		})
	if err != nil || len(found) != 1 || found[0].Digest != "b" {
		t.Errorf("got %v (%v), want b", found, err)
	}
}

func TestKeptAnswer(t *testing.T) {
	t.Parallel()
	claim := storage.KeyClaim{Key: "k", Request: "sha256:a"}
	cases := map[string]struct {
		request string
		status  int
		want    registry.Code
	}{
		"an answer":                    {"sha256:a", 201, ""},
		"the request is still running": {"sha256:a", 0, registry.CodeConflict},
		"another request":              {"sha256:b", 201, registry.CodeInvalid},
		"another request that runs":    {"sha256:b", 0, registry.CodeInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, err := catalog.KeptAnswer(claim, c.request, storage.KeptAnswer{Status: c.status})
			switch {
			case c.want == "" && (err != nil || kept == nil || kept.Status != c.status):
				t.Errorf("got %v and %v, want the answer", kept, err)
			case c.want != "" && !registry.HasCode(err, c.want):
				t.Errorf("got %v, want code %s", err, c.want)
			}
		})
	}
}

func TestDamagedRows(t *testing.T) {
	t.Parallel()
	hash := make([]byte, 32)
	cases := map[string]func() error{
		"hash of a session": func() error { _, err := catalog.SessionRow{Hash: hash[1:]}.Session(); return err },
		"annotations of a repository": func() error {
			_, err := catalog.ManifestRow{Annotations: "{"}.RepositoryManifest()
			return err
		},
		"hash of a token":   func() error { _, err := catalog.TokenRow{Hash: hash[1:], Grants: "[]"}.Token(); return err },
		"grants of a token": func() error { _, err := catalog.TokenRow{Hash: hash, Grants: "{"}.Token(); return err },
		"annotations":       func() error { _, err := catalog.ManifestRow{Annotations: "{"}.Manifest(); return err },
	}
	for name, read := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := read(); !registry.HasCode(err, registry.CodeInternal) {
				t.Errorf("got %v, want code %s", err, registry.CodeInternal)
			}
		})
	}
}

// A list with a damaged row is not shown without it.
func TestDecode(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	value := func(n int) (int, error) {
		if n == 0 {
			return 0, broken
		}
		return 10 * n, nil
	}
	for name, c := range map[string]struct {
		rows, want []int
		err        error
	}{
		"none": {nil, nil, nil}, "all": {[]int{1, 2}, []int{10, 20}, nil}, "one is damaged": {[]int{1, 0, 2}, nil, broken},
	} {
		if got, err := catalog.Decode(c.rows, value); !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v and %v, want %v and %v", name, got, err, c.want, c.err)
		}
	}
}

// A history with a row that is no event is not read as if that were the end.
func TestDecodeEvents(t *testing.T) {
	t.Parallel()
	body, err := catalog.EncodeEvent(history.Event{Seq: 1, Kind: history.EventPromote, Time: time.Unix(1, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := catalog.DecodeEvents([]string{body, body}); err != nil || len(events) != 2 || events[0].Kind != history.EventPromote {
		t.Errorf("got %+v and error %v, want two events", events, err)
	}
	if events, err := catalog.DecodeEvents([]string{body, "{", body}); !registry.HasCode(err, registry.CodeTrust) || len(events) != 0 {
		t.Errorf("with a row that is none: got %+v and error %v, want CodeTrust", events, err)
	}
}

// A session without claims has none, however a database says that.
func TestSessionWithoutClaims(t *testing.T) {
	t.Parallel()
	for _, claims := range [][]byte{nil, {}} {
		if s, err := (catalog.SessionRow{Hash: make([]byte, 32), Claims: claims}).Session(); err != nil || s.Claims != nil {
			t.Errorf("claims %v, error %v; want none", s.Claims, err)
		}
	}
}
