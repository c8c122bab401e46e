package registry

import (
	_ "crypto/sha256" // register the algorithms that a digest can name
	_ "crypto/sha512"
	"encoding/json"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/opencontainers/go-digest"
)

// CanonicalJSON encodes v by RFC 8785 (JSON Canonicalization Scheme). Equal values get equal
// bytes, and so equal digests, on every machine. v must encode as an object or an array.
func CanonicalJSON(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, Errorf(CodeInternal, "encode %T: %w", v, err)
	}
	canonical, err := jsoncanonicalizer.Transform(plain)
	if err != nil {
		return nil, Errorf(CodeInternal, "canonicalize %T: %w", v, err)
	}
	return canonical, nil
}

// CanonicalDigest returns the sha256 digest of v's [CanonicalJSON].
func CanonicalDigest(v any) (Digest, error) {
	canonical, err := CanonicalJSON(v)
	if err != nil {
		return "", err
	}
	return digest.FromBytes(canonical), nil
}
