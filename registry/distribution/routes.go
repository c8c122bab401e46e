package distribution

import (
	"cmp"
	"slices"
)

// Route is one thing that a handler answers.
type Route struct {
	Method string
	// Pattern is the path. {repository} stands for a name that may have slashes, any other
	// word in braces for one component.
	Pattern string
	Action  Action // what Config.Authorize is asked for
}

// patterns are the paths of endpoints.
func patterns() map[endpoint]string {
	return map[endpoint]string{
		base:      "/v2/",
		blobs:     "/v2/{repository}/blobs/{digest}",
		uploads:   "/v2/{repository}/blobs/uploads/",
		upload:    "/v2/{repository}/blobs/uploads/{id}",
		manifests: "/v2/{repository}/manifests/{reference}",
		tags:      "/v2/{repository}/tags/list",
		referrers: "/v2/{repository}/referrers/{digest}",
	}
}

// Routes lists all that a handler answers, by pattern and method.
func Routes() []Route {
	var all []Route
	for at, methods := range routes() {
		for method, r := range methods {
			all = append(all, Route{method, patterns()[at], r.action})
		}
	}
	slices.SortFunc(all, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.Method, b.Method))
	})
	return all
}
