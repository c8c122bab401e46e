package distribution

import (
	"cmp"
	"slices"
)

// Route is one operation of a handler.
type Route struct {
	Method string
	// Pattern is the path. {repository} matches a name that may have slashes, any other name in
	// braces one component.
	Pattern string
	Action  Action // passed to Config.Authorize
}

// patterns returns the paths of endpoints.
func patterns() map[endpoint]string {
	return map[endpoint]string{
		base:      "/v2/",
		catalog:   "/v2/_catalog",
		blobs:     "/v2/{repository}/blobs/{digest}",
		uploads:   "/v2/{repository}/blobs/uploads/",
		upload:    "/v2/{repository}/blobs/uploads/{id}",
		manifests: "/v2/{repository}/manifests/{reference}",
		tags:      "/v2/{repository}/tags/list",
		referrers: "/v2/{repository}/referrers/{digest}",
	}
}

// Routes lists all operations of a handler, by pattern and method.
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
