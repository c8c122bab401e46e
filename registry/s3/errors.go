package s3

import (
	"context"
	"errors"
	"net/http"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
)

// interpretError converts a failure of the store to an error of the port. It returns nil and
// errors with a code unchanged.
func (b *Bucket) interpretError(operation, subject string, err error) error {
	var coded *registry.Error
	if err == nil || errors.As(err, &coded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	err = b.interpret(operation, subject, err)
	if registry.CodeOf(err) == registry.CodeUnavailable {
		return registry.ForClients(err, "%s %s: the object store does not respond, or refuses the service; try again",
			operation, subject)
	}
	return err
}

func (b *Bucket) interpret(operation, subject string, err error) error {
	said, ok := response(err)
	if !ok {
		return registry.Errorf(registry.CodeUnavailable,
			"%s %s: the object store of %s does not respond: %w", operation, subject, b, err)
	}
	switch said.Code {
	case minio.NoSuchKey, minio.NoSuchUpload:
		return registry.Errorf(registry.CodeNotFound, "%s: not found in the object store", subject)
	case minio.NoSuchBucket:
		return registry.Lastingf(registry.CodeUnavailable,
			"%s %s: bucket %s does not exist at its endpoint: create it, or configure another", operation, subject, b.name)
	case minio.AccessDenied,
		"InvalidAccessKeyId",
		"SignatureDoesNotMatch",
		"ExpiredToken",
		"InvalidToken",
		"AuthorizationHeaderMalformed",
		"RequestTimeTooSkewed":
		return registry.WithHint(
			registry.Lastingf(registry.CodeUnavailable, "%s %s: the object store refuses this service in %s: %w",
				operation, subject, b, err),
			"it needs permissions to read, write, delete and list; check AWS_ACCESS_KEY_ID or the role, the region, and the "+
				"clock",
		)
	}
	if said.StatusCode >= http.StatusInternalServerError || said.StatusCode == http.StatusTooManyRequests {
		return registry.Errorf(registry.CodeUnavailable,
			"%s %s: the object store of %s fails: %w", operation, subject, b, err)
	}
	return registry.Errorf(registry.CodeInternal, "%s %s in %s: %w", operation, subject, b, err)
}

// response returns the error response of the store, if there is one.
func response(err error) (minio.ErrorResponse, bool) {
	var said minio.ErrorResponse
	ok := errors.As(err, &said)
	return said, ok && said.StatusCode != 0
}

// saidCode reports whether the store returned an error with the code.
func saidCode(err error, code string) bool {
	said, ok := response(err)
	return ok && said.Code == code
}
