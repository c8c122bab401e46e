package main

import "net/http"

// localOnly answers only requests that were addressed to this machine by a loopback
// name. A page in a browser can make any name of its own point to 127.0.0.1, and would
// then reach a service that asks nobody who he is; the Host header still says that name.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this service answers to loopback names alone; a proxy in front must send one as Host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
