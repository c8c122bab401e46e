package child

import (
	"bytes"
	"strings"
	"sync"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	max  int
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-t.max):]...)
	if len(t.text) > 2*t.max {
		t.text = bytes.Clone(t.text[len(t.text)-t.max:])
	}
	return len(p), nil
}

// String is the end of the text, at most max bytes, as valid UTF-8.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text[max(0, len(t.text)-t.max):]), "?")
}

// lastLines is what of a log belongs in a message: its last few lines.
func lastLines(log string) string {
	const lines, bytes = 8, 1200
	log = strings.TrimSpace(log)
	all := strings.Split(log, "\n")
	short := strings.Join(all[max(0, len(all)-lines):], "\n")
	return strings.ToValidUTF8(short[max(0, len(short)-bytes):], "?")
}
