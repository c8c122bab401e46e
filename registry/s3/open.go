package s3

import (
	"context"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Open connects to a bucket, which must exist. Errors: CodeUnavailable if there are no
// credentials, no response or no bucket.
func Open(ctx context.Context, c Config) (*Bucket, error) {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "endpoint %q: %w", c.Endpoint, err)
	}
	found := chain(c.Region)
	value, err := found.GetWithContext(nil)
	if err != nil || value.AccessKeyID == "" {
		return nil, registry.WithHint(
			registry.Lastingf(registry.CodeUnavailable,
				"no credentials for %s in the environment, in the files of the AWS tools or from a role", c),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE",
		)
	}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "open %s: %w", c, err)
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: found, Secure: secure, Transport: transport, Region: c.Region, MaxRetries: tries,
	})
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "endpoint %q: %w", c.Endpoint, err)
	}
	b := &Bucket{
		core: core, name: c.Bucket, prefix: c.Prefix, config: c,
		client: &http.Client{Transport: transport}, credentials: found,
		partBytes: partBytes, copyBytes: maxCopyBytes, permitTime: storage.PermitTime,
		leftoverAge: LeftoverAge, uploadForm: newUploadForm(),
	}
	b.buffers.New = func() any { return new([]byte) }
	exists, err := core.BucketExists(ctx, c.Bucket)
	if err == nil && !exists {
		err = minio.ErrorResponse{Code: minio.NoSuchBucket, StatusCode: 404}
	}
	if err != nil {
		return nil, b.interpretError("open", "bucket "+c.Bucket, err)
	}
	return b, nil
}
