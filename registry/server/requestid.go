package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
)

// requestIDHeader names a request in both directions.
const requestIDHeader = "X-Request-Id"

// requestIDPattern is what a client, or a proxy before us, may call a request: it stands
// in logs and headers as it is.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

type requestIDKey struct{}

// RequestID is what the request that ctx works for is called in logs and problems: what
// the client called it, or a random name. It is empty outside of a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// nameRequest gives a request its name, and tells the client.
func nameRequest(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(requestIDHeader)
	if !requestIDPattern.MatchString(id) {
		id = rand.Text()
	}
	w.Header().Set(requestIDHeader, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}
