package distribution

import (
	"net/http"
	"strings"
)

// IsLookup reports whether a request only reads and is over soon, so that it can be answered as of
// one instant ([registry.AtOneInstant]). It is true for reads of manifests.
func IsLookup(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.URL.Path, "/manifests/")
}
