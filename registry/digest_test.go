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

// Looking at the characters accepts and refuses what the regular expressions do.
func TestValidDigest(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0af9", 16)
	for _, d := range []registry.Digest{
		digest.FromString("engine"), digest.SHA512.FromString("engine"), digest.SHA384.FromString("engine"),
		"", ":", "sha256", "sha256:", registry.Digest(hex), registry.Digest("sha256:" + hex[1:]), registry.Digest("sha256:" + hex + "0"),
		registry.Digest("sha256:G" + hex[1:]), registry.Digest("sha256:" + hex[:30] + "zz" + hex[32:]), registry.Digest("sha256:A" + hex[1:]),
		registry.Digest("sha256: " + hex[1:]), registry.Digest("sha256:" + hex[1:] + "\n"), registry.Digest("sha256:" + hex[:63] + "é"),
		registry.Digest("sha512:" + hex), "sha256:../../../../../../../../../../../../../../../../../etc/passwd",
	} {
		if got, want := registry.ValidDigest(d), d.Validate(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", d, got, want)
		}
	}
}
