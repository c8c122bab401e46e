package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Repository is one repository of an OCI registry, local or remote: the part of oras-go's
// interfaces that a [Store] needs. The media type distinguishes manifests from blobs. Resolve
// takes a tag or the digest of a manifest. Predecessors returns at least the manifests with
// the node as subject. Missing content is errdef.ErrNotFound, and so is content with another
// size than in the descriptor, because the descriptor is then wrong. If a repository is also a
// [Mounter], blobs are mounted instead of copied.
type Repository interface {
	content.Storage
	content.TagResolver
	content.PredecessorFinder
}

// Mounter makes a blob of another repository of the same registry available in this one. If it
// cannot, it stores the content from getContent, and closes it. It is oras-go's
// registry.Mounter.
type Mounter interface {
	Mount(ctx context.Context, desc ocispec.Descriptor, fromRepo string, getContent func() (io.ReadCloser, error)) error
}

// Sender is a repository that may have to read content more than once to store it, for example
// after a broken network connection. open returns the content from its beginning.
type Sender interface {
	Send(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error
}

// Stager is a repository that owns manifests by records in the catalog. Stage stores
// the bytes of a manifest and returns its record, for the catalog to write.
type Stager interface {
	Stage(ctx context.Context, desc ocispec.Descriptor, raw []byte) (storage.Manifest, error)
}

// repository is an opened Repository with its name. Errors of its methods name both.
type repository struct {
	Repository
	name string
}

// resolve returns the descriptor of a manifest by tag or digest. Errors: CodeNotFound.
func (r repository) resolve(ctx context.Context, what, tagOrDigest string) (ocispec.Descriptor, error) {
	desc, err := r.Resolve(ctx, tagOrDigest)
	if err != nil {
		return ocispec.Descriptor{}, r.failed("resolve", what, tagOrDigest, err)
	}
	if want := digest.Digest(tagOrDigest); want.Validate() == nil && want != desc.Digest {
		return ocispec.Descriptor{}, registry.Errorf(registry.CodeDigest,
			"%s: %s %s: the registry returned %s", r.name, what, want, desc.Digest)
	}
	return desc, nil
}

// read returns the verified bytes of a document. Errors: CodeInvalid above the limit,
// CodeNotFound, CodeDigest.
func (r repository) read(ctx context.Context, what string, desc ocispec.Descriptor) ([]byte, error) {
	if desc.Size > maxDocument {
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: %s %s has %d bytes: at most %d are read", r.name, what, desc.Digest, desc.Size, maxDocument)
	}
	rc, err := r.stream(ctx, what, desc)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	data := bytes.NewBuffer(make([]byte, 0, desc.Size+bytes.MinRead)) // so that it never grows
	_, err = data.ReadFrom(rc)
	return data.Bytes(), err
}

// stream opens content that is verified while it is read: if the bytes do not match desc, the
// last Read returns an error with CodeDigest in place of io.EOF.
func (r repository) stream(ctx context.Context, what string, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if err := checkDescriptor(desc); err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %s: %w", r.name, what, err)
	}
	rc, err := r.Fetch(ctx, desc)
	if err != nil {
		return nil, r.failed("read", what, string(desc.Digest), err)
	}
	return newVerified(rc, desc, subject{r.name, what}, ctx.Err), nil
}

// push stores bytes unless they exist: existing content is durable, and storing it again would
// only cost a flush.
func (r repository) push(ctx context.Context, what string, desc ocispec.Descriptor, data []byte) error {
	there, err := r.has(ctx, what, desc)
	if err != nil || there {
		return err
	}
	return r.pushFrom(ctx, what, desc, bytes.NewReader(data))
}

func (r repository) pushFrom(ctx context.Context, what string, desc ocispec.Descriptor, from io.Reader) error {
	desc = ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	if err := r.Push(ctx, desc, from); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return r.failed("store", what, string(desc.Digest), err)
	}
	return nil
}

// send stores the content that open returns.
func (r repository) send(ctx context.Context, what string, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	sender, ok := r.Repository.(Sender)
	if !ok {
		rc, err := open()
		if err != nil {
			return err
		}
		defer rc.Close()
		return r.pushFrom(ctx, what, desc, rc)
	}
	desc = ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	if err := sender.Send(ctx, desc, open); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return r.failed("store", what, string(desc.Digest), err)
	}
	return nil
}

// has reports whether content exists.
func (r repository) has(ctx context.Context, what string, desc ocispec.Descriptor) (bool, error) {
	there, err := r.Exists(ctx, desc)
	if err != nil {
		return false, r.failed("look for", what, string(desc.Digest), err)
	}
	return there, nil
}

// failed adds the operation to an error of the repository.
func (r repository) failed(operation, what, name string, err error) error {
	code := registry.CodeOf(err)
	var network net.Error
	var answer *errcode.ErrorResponse
	switch {
	case isNotFound(err):
		return registry.Errorf(registry.CodeNotFound, "%s: %s %s is not there", r.name, what, name)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), saysDamaged(err):
		code = registry.CodeDigest
	case code == registry.CodeInternal && registry.LastingTLS(err):
		return registry.Lastingf(registry.CodeUnavailable, "%s: %s %s %s: %w", r.name, operation, what, name, err)
	case code == registry.CodeInternal && errors.As(err, &network):
		code = registry.CodeUnavailable
	case code == registry.CodeInternal && errors.As(err, &answer) && answer.StatusCode == http.StatusInsufficientStorage:
		code = registry.CodeFull
	}
	return registry.Errorf(code, "%s: %s %s %s: %w", r.name, operation, what, name, err)
}

// saysDamaged reports whether a registry answered that bytes do not match their digest.
func saysDamaged(err error) bool {
	var said errcode.Error
	return errors.As(err, &said) && said.Code == errcode.ErrorCodeDigestInvalid
}

func isNotFound(err error) bool {
	return errors.Is(err, errdef.ErrNotFound) || registry.HasCode(err, registry.CodeNotFound)
}
