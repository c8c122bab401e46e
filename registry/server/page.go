package server

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// limitOf returns the requested page size. Errors: CodeInvalid.
func limitOf(values query) (int, error) {
	text := values.Get("limit")
	if text == "" {
		return storage.DefaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > storage.MaxPage {
		return 0, registry.Errorf(registry.CodeInvalid, "limit %q: want 1 to %d", text, storage.MaxPage)
	}
	return n, nil
}

// cursorMark is the first part of a decoded cursor. It identifies the version of the format.
const cursorMark = "1:"

// maxCursor limits the length of a cursor. Names are shorter.
const maxCursor = 1 << 10

// encodeCursor encodes where the next page begins. Cursors are opaque to clients.
func encodeCursor(after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + after))
}

// decodeCursor decodes a cursor. An empty cursor means the first page. Errors: CodeInvalid.
func decodeCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	after, ok := strings.CutPrefix(string(text), cursorMark)
	// The decoder skips line breaks, so compare with our own encoding.
	if err != nil || !ok || len(cursor) > maxCursor || strings.ContainsRune(after, 0) || encodeCursor(after) != cursor {
		return "", registry.Errorf(registry.CodeInvalid,
			"cursor %.40q: want one from a Link header, or none for the first page", cursor)
	}
	return after, nil
}

// pageOf returns which page is requested. Errors: CodeInvalid.
func pageOf(values query) (after string, limit int, err error) {
	if limit, err = limitOf(values); err != nil {
		return "", 0, err
	}
	after, err = decodeCursor(values.Get("cursor"))
	return after, limit, err
}

// environmentOf returns the environment in a query, which must have one. Errors: CodeInvalid.
func environmentOf(values query) (string, error) {
	if e := values.Get("environment"); e != "" {
		return e, nil
	}
	return "", registry.Errorf(registry.CodeInvalid, "query: the environment is missing: want environment=NAME")
}

// cut returns the first limit items and, if more follow, the key of the last of them.
func cut[T any](items []T, limit int, key func(T) string) (first []T, next string) {
	if len(items) <= limit {
		return items, ""
	}
	return items[:limit], key(items[limit-1])
}

// page returns a list, with a link to the next page.
func page[T any](r *request, items []T, next string) (*response, error) {
	return list(r, nonNil(items), next, false)
}

// list is page for a list of any type. A partial one leaves out what the caller may not read.
func list(r *request, items any, next string, partial bool) (*response, error) {
	a, err := ok(items)
	if err == nil && partial {
		a.with(rest.Partial, "true")
	}
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

// nonNil replaces nil by an empty list, which JSON encodes differently.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
