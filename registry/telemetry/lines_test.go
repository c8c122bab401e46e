package telemetry_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/registry/telemetry"
)

// written is a log that counts writes.
type written struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return w.text.Write(p)
}

func (w *written) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), text)
}

// Lines that come at the same time are all written, whole and once, each before whoever logs it
// goes on.
func TestLinesAreWritten(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			to := new(written)
			log, err := telemetry.NewLogger(to, format, "info")
			if err != nil {
				t.Fatal(err)
			}
			const loggers, lines = 16, 50
			var all sync.WaitGroup
			for n := range loggers {
				all.Go(func() {
					log := log.With("logger", n)
					for line := range lines {
						mark := fmt.Sprintf("line-%d-%d.", n, line)
						if log.Info(mark); !to.has(mark) {
							t.Errorf("%s is not written when the call returns", mark)
						}
					}
				})
			}
			all.Wait()
			got := strings.Split(strings.TrimSuffix(to.text.String(), "\n"), "\n")
			if len(got) != loggers*lines || to.writes > len(got) {
				t.Errorf("%d lines in %d writes, want %d lines", len(got), to.writes, loggers*lines)
			}
			for _, line := range got {
				if strings.Count(line, "line-") != 1 || strings.Count(line, "logger") != 1 {
					t.Errorf("a line is not whole: %q", line)
				}
			}
		})
	}
}
