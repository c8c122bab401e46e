package host

import "net/http"

// SecurityHeaders adds headers that keep browsers from guessing content types, embedding answers in other
// pages and, with strictTransport, from using plain HTTP again.
func SecurityHeaders(next http.Handler, strictTransport bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		if strictTransport {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
