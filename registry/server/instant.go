package server

import (
	"net/http"
	"strings"

	"mlpromote.dev/mlpromote/registry/rest"
)

// IsLookup reports whether a request only reads and is over soon, so that it can be answered as of
// one instant ([storage.AtOneInstant]). Nodes send such requests all the time.
func IsLookup(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodPost) &&
		strings.HasPrefix(r.URL.Path, rest.ModelsPath) && strings.HasSuffix(r.URL.Path, "/"+rest.OpResolve)
}
