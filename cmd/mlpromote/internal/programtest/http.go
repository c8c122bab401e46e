package programtest

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// Fresh is a client whose every request has a connection of its own.
func Fresh() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// Answer is an answer whose body was read.
type Answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// Send does a request without a body and gives the answer.
func Send(tb testing.TB, c *http.Client, method, url string) (Answer, []byte) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), method, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return Answer{response.StatusCode, response.Status, response.Header}, content
}

// patience is how long tests wait for what needs no time, on a busy machine.
const patience = 30 * time.Second

// Eventually asks until it is true, every few milliseconds for half a minute.
func Eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	Within(tb, patience, what, is)
}

// Within waits longer than [Eventually], for large programs by others.
func Within(tb testing.TB, limit time.Duration, what string, is func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(limit); !is(); {
		if time.Now().After(deadline) {
			tb.Fatalf("%s: not within %v", what, limit)
		}
		<-time.After(5 * time.Millisecond)
	}
}
