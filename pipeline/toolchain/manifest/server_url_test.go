package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/manifest"
)

// The address of a server has what a client uses, and nothing else.
func TestServerURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol, url string
		ok            bool
	}{
		{"oip-rest", "http://127.0.0.1:8000", true},
		{"oip-rest", "https://models.example/base", true},
		{"oip-grpc", "grpc://127.0.0.1:8001", true},
		{"oip-grpc", "grpc://127.0.0.1:8001/base", false},
		{"oip-grpc", "http://127.0.0.1:8001", false},
		{"oip-rest", "http://user:secret@127.0.0.1:8000", false},
		{"oip-rest", "http://127.0.0.1:8000?key=value", false},
		{"oip-rest", "http://127.0.0.1:8000#part", false},
	} {
		path := filepath.Join(t.TempDir(), "s.yaml")
		text := fmt.Sprintf("name: s\nurl: %q\nmodel: m\nprotocol: %s\n", c.url, c.protocol)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := manifest.LoadServer(path)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "url ") {
			t.Errorf("%s %s: %v", c.protocol, c.url, err)
		}
	}
}
