// Package requestid is what requests are called in headers, logs and problems.
package requestid

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
)

// Header names a request in both directions.
const Header = "X-Request-Id"

// pattern is what a client, or a proxy before us, may call a request: it stands in logs
// and headers as it is.
var pattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

type key struct{}

// Of is what the request that ctx works for is called: what the client called it, or a
// random name. It is empty outside of a request.
func Of(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// Name gives a request its name, unless an outer handler did, and tells the client.
func Name(w http.ResponseWriter, r *http.Request) *http.Request {
	if Of(r.Context()) != "" {
		return r
	}
	id := r.Header.Get(Header)
	if !pattern.MatchString(id) {
		id = rand.Text()
	}
	w.Header().Set(Header, id)
	return r.WithContext(context.WithValue(r.Context(), key{}, id))
}
