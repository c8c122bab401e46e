package server

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/registry/api"
)

// Two questions that differ in any field, also in one that is added later, are two.
func TestQuestionsHaveTheWholeRequest(t *testing.T) {
	t.Parallel()
	of := func(edit func(r *http.Request), body string) question {
		r := httptest.NewRequest(http.MethodGet, "http://registry.example/api/v1/models/m/resolve?environment=prod", nil)
		r.Header.Set("Accept", "application/json")
		edit(r)
		return questionOf(&request{Request: r, Name: "m"}, body)
	}
	plain := of(func(*http.Request) {}, "")
	fields := make(map[string]bool)
	for what, changed := range map[string]question{
		"method": of(func(r *http.Request) { r.Method = http.MethodPost }, ""),
		"path":   of(func(r *http.Request) { r.URL.Path = "/api/v1/models/n/resolve" }, ""),
		"host":   of(func(r *http.Request) { r.Host = "other.example" }, ""),
		"accept": of(func(r *http.Request) { r.Header.Add("Accept", "text/plain") }, ""),
		"query":  of(func(r *http.Request) { r.URL.RawQuery += "&variant=int8" }, ""),
		"body":   of(func(*http.Request) {}, "{}"),
	} {
		if fields[what] = true; plain == changed {
			t.Errorf("with another %s, the question is the same", what)
		}
	}
	for i := range reflect.TypeFor[question]().NumField() {
		if name := reflect.TypeFor[question]().Field(i).Name; !fields[name] {
			t.Errorf("the field %s has no case", name)
		}
	}
}

// What is remembered has a limit, and so has each question.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(Config{Registry: always{same: api.Resolution{Version: "1.0.0", Ground: 1}}})
	r := &request{Request: httptest.NewRequest(http.MethodGet, "/", nil)}
	ask := func(q question) {
		t.Helper()
		if _, err := decideAnswer(s, r, q, answered{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * answersBytes / maxQuestion {
		ask(question{body: string(bytes.Repeat([]byte{byte(i), byte(i >> 8)}, maxQuestion/2))})
	}
	if got := s.answers.Bytes(); got == 0 || got > answersBytes {
		t.Errorf("%d bytes are remembered, want at most %d, and some", got, answersBytes)
	}
	long := question{body: string(make([]byte, maxQuestion+1))}
	if ask(long); has(s, long) {
		t.Errorf("a question of %d bytes is remembered, want at most %d", len(long.body), maxQuestion)
	}
}

func has(s server, q question) bool {
	_, ok := s.answers.Get(q)
	return ok
}

// always is a registry that resolves to the same.
type always struct {
	api.Interface
	same api.Resolution
}

func (a always) Resolve(context.Context, api.ResolveQuery) (api.Resolution, error) {
	return a.same, nil
}
