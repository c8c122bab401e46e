package distribution

import "net/http"

// IsLookup reports whether a request only reads and is over soon, so that it can be answered as of
// one instant ([storage.AtOneInstant]). It is true for reads of manifests.
func IsLookup(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && parse(r.URL.Path).endpoint == manifests
}
