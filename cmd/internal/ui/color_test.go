package ui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// The program paints words on a terminal with colors, unless NO_COLOR is set or the output is JSON.
func TestWhenWordsArePainted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		terminal, json bool
		env            map[string]string
		want           bool
	}{
		{"a terminal", true, false, map[string]string{"TERM": "xterm-256color"}, true},
		{"a terminal without TERM", true, false, nil, true},
		{"no terminal", false, false, map[string]string{"TERM": "xterm-256color"}, false},
		{"NO_COLOR", true, false, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		{"NO_COLOR of any value", true, false, map[string]string{"TERM": "xterm", "NO_COLOR": "false"}, false},
		{"an empty NO_COLOR", true, false, map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		{"a dumb terminal", true, false, map[string]string{"TERM": "dumb"}, false},
		{"JSON", true, true, map[string]string{"TERM": "xterm"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := &UI{JSON: c.json, colors: wantsColors(c.terminal, func(name string) string { return c.env[name] })}
			if got := u.paints(); got != c.want {
				t.Errorf("painted: %v, want %v", got, c.want)
			}
		})
	}
}

// Only the word is painted, and the line without colors is the same line.
func TestPaintedWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		show       func(u *UI)
	}{
		{"error and hint", "mlpromote: \x1b[1;31merror:\x1b[0m no disk\nmlpromote: \x1b[1;36mhint:\x1b[0m buy one\n",
			func(u *UI) { u.Fail(registry.WithHint(errors.New("no disk"), "buy one")) }},
		{"two errors", "mlpromote: \x1b[1;31merror:\x1b[0m one\nmlpromote: \x1b[1;31merror:\x1b[0m two\n",
			func(u *UI) { u.Fail(errors.Join(errors.New("one"), errors.New("two"))) }},
		{"warning", "mlpromote: \x1b[1;33mwarning:\x1b[0m 3 cases\n", func(u *UI) { u.Warn("3 cases") }},
		{"note", "mlpromote: built\n", func(u *UI) { u.Note("built") }},
		{"word from elsewhere", "mlpromote: warning: x\n", func(u *UI) { u.Note("%s", "warning: x") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u, _, stderr := screen()
			u.colors = true
			c.show(u)
			if stderr.String() != c.want {
				t.Errorf("painted:\n%q, want\n%q", stderr, c.want)
			}
			u, _, stderr = screen()
			c.show(u)
			bare := strings.NewReplacer("\x1b[1;31m", "", "\x1b[1;36m", "", "\x1b[1;33m", "", "\x1b[0m", "").Replace(c.want)
			if stderr.String() != bare {
				t.Errorf("not painted:\n%q, want\n%q", stderr, bare)
			}
		})
	}
}

// Texts from elsewhere get no sequence through beside a painted word.
func TestNothingForgedIsPainted(t *testing.T) {
	t.Parallel()
	for what, show := range map[string]func(u *UI){
		"error":                         func(u *UI) { u.Fail(fmt.Errorf("x: %w", errors.New(forged))) },
		"hint":                          func(u *UI) { u.Fail(registry.WithHint(errors.New("x"), "the log: %s", forged)) },
		"warning":                       func(u *UI) { u.Warn(forged) },
		"what did not go through plain": func(u *UI) { u.say(wordError, strings.ReplaceAll(forged, "\n", " ")) },
		"half":                          func(u *UI) { fmt.Fprint(u.Stderr, "\xf0\x9f"); u.Warn(forged) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			u, _, stderr := screen()
			u.colors = true
			show(u)
			bare, painted := stderr.String(), 0
			for _, w := range []word{wordError, wordHint, wordWarning} {
				painted += strings.Count(bare, w.color()+string(w)+uncolored)
				bare = strings.ReplaceAll(bare, w.color()+string(w)+uncolored, string(w))
			}
			if painted == 0 {
				t.Errorf("nothing is painted: %q", stderr)
			}
			tame(t, what, bare)
		})
	}
}
