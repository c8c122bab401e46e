package registry

import (
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/opencontainers/go-digest"
)

// NewHash is the hash that makes digests like d, of which there are sha256 and sha512.
// Errors: CodeInvalid where d is malformed or of another algorithm, which also keeps
// paths out of digests.
func NewHash(d Digest) (hash.Hash, error) {
	if err := d.Validate(); err != nil {
		return nil, Errorf(CodeInvalid, "digest %q: %w; want sha256:<64 hex digits> or sha512:<128 hex digits>", string(d), err)
	}
	switch d.Algorithm() {
	case digest.SHA256:
		return sha256.New(), nil
	case digest.SHA512:
		return sha512.New(), nil
	}
	return nil, Errorf(CodeInvalid, "digest %s: blobs are kept by sha256 or sha512, not by %s", d, d.Algorithm())
}
