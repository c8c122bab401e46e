package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// The hash of an algorithm computes its digests, and what is no digest of blobs has none.
func TestNewHash(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
		d := algorithm.FromString("engine")
		h, err := registry.NewHash(d)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		fmt.Fprint(h, "engine")
		if got := digest.NewDigest(algorithm, h); got != d {
			t.Errorf("got %s, want %s", got, d)
		}
	}
	for _, bad := range []registry.Digest{"", "sha256:00", "sha256:../../etc/passwd", "md5:d41d8cd98f00b204e9800998ecf8427e",
		digest.SHA384.FromString("engine"), registry.Digest("SHA256:" + strings.Repeat("a", 64))} {
		if _, err := registry.NewHash(bad); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%q: error %v, want CodeInvalid", bad, err)
		}
	}
}
