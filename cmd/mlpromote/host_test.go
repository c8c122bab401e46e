package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestLocalOnly(t *testing.T) {
	t.Parallel()
	handler := localOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"127.0.0.1:5080": http.StatusNoContent, "localhost": http.StatusNoContent, "localhost:1": http.StatusNoContent,
		"[::1]:5080": http.StatusNoContent, "127.9.9.9": http.StatusNoContent,
		"": http.StatusMisdirectedRequest, "evil.example": http.StatusMisdirectedRequest, "evil.example:5080": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:80": http.StatusMisdirectedRequest, "10.0.0.1:80": http.StatusMisdirectedRequest,
	} {
		request := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		request.Host = host
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != want {
			t.Errorf("Host %q: got %d, want %d", host, response.Code, want)
		}
	}
}
