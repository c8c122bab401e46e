package distribution

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// listTags lists tags in byte order, a page at a time.
func listTags(h *handler, w http.ResponseWriter, r *http.Request, at request) error {
	query := r.URL.Query()
	n, err := pageSize(h, query, "tags")
	if err != nil {
		return err
	}
	list := struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{Name: at.repository, Tags: []string{}}
	if n > 0 {
		found, err := h.Refs.ListTags(r.Context(), at.repository, query.Get("last"), n+1)
		if err != nil {
			return err
		}
		if len(found) > n {
			found = found[:n]
			linkNext(w, r, url.Values{"n": {strconv.Itoa(n)}, "last": {found[n-1]}})
		}
		list.Tags = append(list.Tags, found...)
	}
	return writeJSON(w, "application/json", list)
}

// pageSize returns the requested number of things, up to the limit of the handler.
func pageSize(h *handler, query url.Values, things string) (int, error) {
	if !query.Has("n") {
		return h.MaxTags, nil
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 0 {
		return 0, problemf(400, codeUnsupported, "n is %q: want a number of %s", query.Get("n"), things)
	}
	return min(n, h.MaxTags), nil
}

// linkNext links to the page after this one.
func linkNext(w http.ResponseWriter, r *http.Request, query url.Values) {
	w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), query.Encode()))
}
