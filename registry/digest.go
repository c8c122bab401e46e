package registry

import (
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/opencontainers/go-digest"
)

// NewHash returns a hash that computes digests of d's algorithm, sha256 or sha512. Errors:
// CodeInvalid if d is malformed or of another algorithm. This also keeps file paths out of
// digests.
func NewHash(d Digest) (hash.Hash, error) {
	if err := d.Validate(); err != nil {
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
