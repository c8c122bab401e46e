package registry

import (
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"

	"github.com/opencontainers/go-digest"
)

// ValidDigest returns why d is not a valid digest, as [digest.Digest.Validate] does. Requests ask
// that of many digests, and its regular expressions take ten times as long as looking at the
// characters of those that most digests have.
func ValidDigest(d Digest) error {
	hex, isSHA256 := strings.CutPrefix(string(d), "sha256:")
	if isSHA256 && len(hex) == 2*sha256.Size && strings.Trim(hex, "0123456789abcdef") == "" {
		return nil
	}
	return d.Validate()
}

// NewHash returns a hash that computes digests of d's algorithm, sha256 or sha512. Errors:
// CodeInvalid if d is malformed or of another algorithm. This also keeps file paths out of
// digests.
func NewHash(d Digest) (hash.Hash, error) {
	if err := ValidDigest(d); err != nil {
		return nil, Errorf(CodeInvalid, "digest %q: %w; want sha256:<64 hex digits> or sha512:<128 hex digits>",
			string(d), err)
	}
	switch d.Algorithm() {
	case digest.SHA256:
		return sha256.New(), nil
	case digest.SHA512:
		return sha512.New(), nil
	}
	return nil, Errorf(CodeInvalid, "digest %s: blobs need sha256 or sha512, not %s", d, d.Algorithm())
}
