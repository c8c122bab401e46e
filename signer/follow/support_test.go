package follow_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// base64Of writes a digest as checkpoints do.
func base64Of(d registry.Digest) string {
	raw, _ := hex.DecodeString(d.Encoded())
	return base64.StdEncoding.EncodeToString(raw)
}

// between is the text between start and the next quote.
func between(t *testing.T, text, start string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, start)
	inside, _, ends := strings.Cut(rest, `"`)
	if !found || !ends {
		t.Fatalf("no %s in %.200s", start, text)
	}
	return inside
}
