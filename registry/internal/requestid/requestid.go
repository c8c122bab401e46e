// Package requestid assigns the identifiers of requests in headers, logs and problems.
package requestid

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
)

// Header has the request ID in requests and responses.
const Header = "X-Request-Id"

// pattern matches request IDs that are accepted from clients and proxies. They are copied to
// logs and headers.
var pattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

type key struct{}

// Of returns the ID of the request that ctx belongs to: that of the client, or a random one. It
// is empty outside of a request.
func Of(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// Name is [Context] for a handler that needs nothing else in the context.
func Name(w http.ResponseWriter, r *http.Request) *http.Request {
	if Of(r.Context()) != "" {
		return r
	}
	return r.WithContext(Context(w, r))
}

// Context assigns an ID to a request, unless an outer handler did, and sends it to the client. It returns
// the context of the request with the ID.
func Context(w http.ResponseWriter, r *http.Request) context.Context {
	if Of(r.Context()) != "" {
		return r.Context()
	}
	id := r.Header.Get(Header)
	if id == "" || !pattern.MatchString(id) {
		id = rand.Text()
	}
	w.Header().Set(Header, id)
	return context.WithValue(r.Context(), key{}, id)
}
