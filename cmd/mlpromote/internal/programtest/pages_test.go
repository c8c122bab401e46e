package programtest

import (
	"strings"
	"testing"
)

// A page fails if it shows a line that the output does not have, or has before the line above it.
func TestMissingLines(t *testing.T) {
	t.Parallel()
	const output = "  build 0.1 s\nstaging/m:1@sha256:0123\n✓  amd64/fp32  pass  50 %\n"
	for shows, want := range map[string]string{
		"staging/m:1@sha256:…\n…amd64/fp32 … pass …": "",
		"…amd64/fp32 … fail …":                       "…amd64/fp32 … fail …",
		"…amd64/fp32 … pass …\nstaging/m:1@sha256:…": "staging/m:1@sha256:…",
		"staging/m:1": "staging/m:1",
	} {
		if got := (Block{Shows: strings.Split(shows, "\n")}).Missing(output); got != want {
			t.Errorf("%q: missing is %q, want %q", shows, got, want)
		}
	}
}
