package cluster

import (
	"io"
	"strings"
	"testing"
)

func TestLimitOfBytes(t *testing.T) {
	t.Parallel()
	const text = `{"kind": "Node"}`
	for left, want := range map[int64]bool{int64(len(text)): true, int64(len(text)) - 1: false} {
		_, err := io.ReadAll(&limited{from: strings.NewReader(text), left: left, object: maxObject})
		if (err == nil) != want {
			t.Errorf("%d bytes with a limit of %d: %v", len(text), left, err)
		}
	}
}
