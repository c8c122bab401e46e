package host

import "net/http"

// SecurityHeaders adds headers that keep browsers from guessing content types, embedding answers in other
// pages and, with strictTransport, from using plain HTTP again.
func SecurityHeaders(next http.Handler, strictTransport bool) http.Handler {
	// Written for every request, so the values are made once. A header that is added to gets
	// another slice, since these are full.
	nosniff, policy, referrer := []string{"nosniff"}, []string{"default-src 'none'; frame-ancestors 'none'"}, []string{"no-referrer"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["X-Content-Type-Options"] = nosniff
		header["Content-Security-Policy"] = policy
		header["Referrer-Policy"] = referrer
		if strictTransport {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
