package distribution

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// listRepositories lists the repositories that the caller may see, in byte order, a page at a time. The OCI
// specification has no such list. It comes from the Docker registry API.
//
// Source: https://distribution.github.io/distribution/spec/api/#catalog.
func listRepositories(h *handler, w http.ResponseWriter, r *http.Request, _ request) error {
	query := r.URL.Query()
	n, err := pageSize(h, query, "repositories")
	if err != nil {
		return err
	}
	last := query.Get("last")
	if last != "" && !isRepository(last) {
		return problemf(400, codeNameInvalid, "last is %q: want the name of a repository", last)
	}
	list := struct {
		Repositories []string `json:"repositories"`
	}{[]string{}}
	if n > 0 {
		found, err := visibleRepositories(r.Context(), h, last, n+1)
		if err != nil {
			return err
		}
		if len(found) > n {
			found = found[:n]
			linkNext(w, r, url.Values{"n": {strconv.Itoa(n)}, "last": {found[n-1]}})
		}
		list.Repositories = append(list.Repositories, found...)
	}
	return writeJSON(w, "application/json", list)
}

// visibleRepositories returns up to limit names after a name. It reads on until it has them, because a page
// that ends at a hidden name would have to tell the client that name. [Config.Prefixes] bounds what it reads.
func visibleRepositories(ctx context.Context, h *handler, after string, limit int) ([]string, error) {
	var visible []string
	page := limit
	for _, prefix := range h.Prefixes(ctx) {
		for after := after; after <= prefix || strings.HasPrefix(after, prefix); {
			names, err := h.Refs.ListRepositories(ctx, prefix, after, page)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				may, err := mayList(ctx, h, name)
				if err != nil {
					return nil, err
				}
				if may {
					visible = append(visible, name)
				}
				if len(visible) == limit {
					return visible, nil
				}
			}
			if len(names) < page {
				break
			}
			after, page = names[len(names)-1], max(limit, h.MaxTags) // a caller with few permissions may skip many
		}
	}
	return visible, nil
}

// mayList reports whether the caller may see the name of a repository.
func mayList(ctx context.Context, h *handler, repository string) (bool, error) {
	err := h.Authorize(ctx, Access{repository, List})
	if err == nil {
		return true, nil
	}
	switch registry.CodeOf(err) {
	case registry.CodeForbidden, registry.CodeUnauthenticated, registry.CodeNotFound, registry.CodePolicy:
		return false, nil
	}
	return false, err
}
