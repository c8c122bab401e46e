package server

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// paged are the names in the query of a list that comes in pages.
func paged(names ...string) []string { return append(names, "limit", "cursor") }

// limitOf is how many things a page shall hold. Errors: CodeInvalid.
func limitOf(values query) (int, error) {
	text := values.Get("limit")
	if text == "" {
		return registry.DefaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > registry.MaxPage {
		return 0, registry.Errorf(registry.CodeInvalid, "limit %q: want 1 to %d", text, registry.MaxPage)
	}
	return n, nil
}

// cursorMark begins what a cursor stands for, so that it can be told from one of another version.
const cursorMark = "1:"

// maxCursor bounds a cursor: no name is longer.
const maxCursor = 1 << 10

// encodeCursor says where the next page begins, in a way that nobody shall read or make.
func encodeCursor(after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + after))
}

// decodeCursor reads what encodeCursor wrote; an empty cursor is the beginning. Errors:
// CodeInvalid.
func decodeCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	after, ok := strings.CutPrefix(string(text), cursorMark)
	// The decoder skips line breaks: a cursor that we would not have written so is not ours.
	if err != nil || !ok || len(cursor) > maxCursor || strings.ContainsRune(after, 0) || encodeCursor(after) != cursor {
		return "", registry.Errorf(registry.CodeInvalid, "cursor %.40q: want the one of a Link header, or none to begin anew", cursor)
	}
	return after, nil
}

// pageOf reads which page is asked for. Errors: CodeInvalid.
func pageOf(values query) (after string, limit int, err error) {
	if limit, err = limitOf(values); err != nil {
		return "", 0, err
	}
	after, err = decodeCursor(values.Get("cursor"))
	return after, limit, err
}

// environmentOf is the environment that a query must name. Errors: CodeInvalid.
func environmentOf(values query, names ...string) (string, error) {
	if e := first(values, append(names, "environment")...); e != "" {
		return e, nil
	}
	return "", registry.Errorf(registry.CodeInvalid, "query: no environment is named: want environment=NAME")
}

// cut gives the first limit of items, of which there may be more, and the key of the last
// of them if there are.
func cut[T any](items []T, limit int, key func(T) string) (first []T, next string) {
	if len(items) <= limit {
		return items, ""
	}
	return items[:limit], key(items[limit-1])
}

// page is a list, with a link to what is behind it.
func page[T any](r *request, items []T, next string) (*response, error) {
	a, err := ok(nonNil(items))
	if err != nil || next == "" {
		return a, err
	}
	values := make(url.Values, len(r.Values)+1)
	for name, v := range r.Values {
		values[name] = v
	}
	values.Set("cursor", encodeCursor(next))
	return a.with("Link", "<"+r.URL.EscapedPath()+"?"+values.Encode()+`>; rel="next"`), nil
}

// nonNil makes an empty list of none, which JSON writes differently.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
