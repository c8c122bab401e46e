package server

import (
	"net/http"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

// A table with a route that lets everybody in, or that is two at once, is not served.
func TestRouterRefusesTables(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(r []route) []route{
		"no permission": func(r []route) []route { r[0].Permission = ""; return r },
		"no handler":    func(r []route) []route { r[len(r)-1].handle = nil; return r },
		"no method":     func(r []route) []route { r[1].Method = ""; return r },
		"elsewhere":     func(r []route) []route { r[1].Path = "/v2/"; return r },
		"twice":         func(r []route) []route { return append(r, r[3]) },
	} {
		h, err := newRouter(server{}, edit(slices.Clone(table())))
		if h != nil || registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %v, error %v, want CodeInvalid", name, h, err)
		}
	}
	if _, err := newRouter(server{}, table()); err != nil {
		t.Error(err)
	}
}

// Every operation is answered by its row or by a handler of its own, and every handler is that of an operation.
func TestOperationsAreHandled(t *testing.T) {
	t.Parallel()
	own := handlers()
	for _, o := range rest.Table() {
		if own[o] == nil && !o.Served() {
			t.Errorf("%s is neither served by its row nor by a handler", o.Describe().Name)
		}
		delete(own, o)
	}
	for o := range own {
		t.Errorf("%s has a handler, and is not in the table", o.Describe().Name)
	}
}

// What passes as a key is one, with quotes or without.
func FuzzKey(f *testing.F) {
	for _, key := range []string{"", "k", `"k"`, `"`, `""`, " k ", "\x00"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := keyOf(http.Header{"Idempotency-Key": {text}})
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid || key != "" {
				t.Fatalf("%q: %q, %v", text, key, err)
			}
			return
		}
		if key == "" || len(key) > 255 {
			t.Fatalf("%q is the key %q", text, key)
		}
		if again, err := keyOf(http.Header{"Idempotency-Key": {`"` + key + `"`}}); err != nil || again != key {
			t.Fatalf("%q is the key %q, and quoted %q (%v)", text, key, again, err)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"", encodeCursor("vision/digits"), encodeCursor("7"), "MTo", "\rMTo", "====", "\x00"} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		after, err := decodeCursor(cursor)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatalf("%q: %v", cursor, err)
			}
			return
		}
		if cursor != "" && encodeCursor(after) != cursor {
			t.Fatalf("%q is read as %q, which is written %q", cursor, after, encodeCursor(after))
		}
	})
}

func FuzzAccept(f *testing.F) {
	f.Add("text/plain;q=0.5, */*", "text/plain")
	f.Add("gzip;q=0.001, identity", "gzip")
	f.Add(";;,q=", "")
	f.Fuzz(func(t *testing.T, header, name string) {
		weight, _ := quality([]string{header}, name)
		if !(weight >= 0 && weight <= 1) {
			t.Fatalf("%q gives %q the weight %v", header, name, weight)
		}
	})
}
