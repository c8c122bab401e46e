package oci

import (
	_ "crypto/sha256" // digests may name it
	_ "crypto/sha512" // as above
	"fmt"
	"hash"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
)

// subject describes bytes in messages.
type subject struct {
	repository string
	what       string // "layer model.onnx of engine linux-amd64-v3/int8"
}

// verified hashes content while it is read. oras-go's VerifyReader does so too, but does not
// distinguish a broken connection, which can be retried, from changed bytes, which cannot.
type verified struct {
	base    io.ReadCloser
	hash    hash.Hash
	desc    ocispec.Descriptor
	left    int64
	subject subject
	alive   func() error // an error ends the reading
	err     error        // sticky
}

// newVerified wraps rc, whose descriptor passed checkDescriptor.
func newVerified(rc io.ReadCloser, desc ocispec.Descriptor, s subject, alive func() error) *verified {
	return &verified{base: rc, hash: desc.Digest.Algorithm().Hash(), desc: desc, left: desc.Size, subject: s, alive: alive}
}

// Read reads, and returns io.EOF only after exactly the expected bytes.
func (v *verified) Read(p []byte) (int, error) {
	if v.err == nil {
		v.err = v.alive()
	}
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.base.Read(p)
	v.hash.Write(p[:n])
	v.left -= int64(n)
	switch {
	case v.left < 0:
		v.err = mismatch(v.subject, v.desc.Digest, fmt.Sprintf("there are more than %d bytes", v.desc.Size))
		return 0, v.err
	case err == io.EOF:
		v.err = v.end()
	case err != nil:
		v.err = registry.Errorf(registry.CodeOf(err), "%s: read %s %s: %w", v.subject.repository, v.subject.what, v.desc.Digest, err)
	}
	return n, v.err
}

// end checks the content after its last byte.
func (v *verified) end() error {
	if v.left > 0 {
		return mismatch(v.subject, v.desc.Digest, fmt.Sprintf("there are %d bytes, want %d", v.desc.Size-v.left, v.desc.Size))
	}
	if got := digest.NewDigest(v.desc.Digest.Algorithm(), v.hash); got != v.desc.Digest {
		return mismatch(v.subject, v.desc.Digest, fmt.Sprintf("they are %s", got))
	}
	return io.EOF
}

// Close closes the content.
func (v *verified) Close() error { return v.base.Close() }

// mismatch is the error for bytes that do not match their digest.
func mismatch(s subject, want digest.Digest, found string) error {
	err := registry.Errorf(registry.CodeDigest, "%s: the stored bytes of %s do not match %s: %s", s.repository, s.what, want, found)
	return registry.WithHint(err, "the store is damaged or was changed: restore these bytes from a backup, and do not run them as they are")
}

// checkDescriptor refuses an invalid descriptor, or one whose embedded data does not match its
// digest. Errors: CodeInvalid, CodeDigest.
func checkDescriptor(desc ocispec.Descriptor) error {
	if err := desc.Digest.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "digest %q: %w", desc.Digest, err)
	}
	if desc.Size < 0 || desc.Size > maxFile {
		return registry.Errorf(registry.CodeInvalid, "%s: a size of %d bytes is out of range", desc.Digest, desc.Size)
	}
	if len(desc.Data) > 0 && (int64(len(desc.Data)) != desc.Size || desc.Digest.Algorithm().FromBytes(desc.Data) != desc.Digest) {
		return registry.Errorf(registry.CodeDigest, "%s: the data that its descriptor embeds are other bytes", desc.Digest)
	}
	return nil
}

// describe returns the descriptor of bytes.
func describe(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}
