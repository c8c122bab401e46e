package authority

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/sign"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// TimestampsFile in a folder of keys names the authority that timestamps every signature.
const TimestampsFile = "timestamps.yaml"

// Timestamps is an authority for timestamps.
type Timestamps struct {
	// URL takes RFC 3161 requests over HTTP; it has the path.
	URL string `yaml:"url,required"`
}

// LoadTimestamps reads the file in a folder of keys. Errors: CodeInvalid; CodeUnavailable if it cannot be
// read, with [os.ErrNotExist] in the chain if it does not exist.
func LoadTimestamps(dir string) (Timestamps, error) {
	var t Timestamps
	err := load(filepath.Join(dir, TimestampsFile), &t)
	if err != nil {
		return Timestamps{}, err
	}
	return t, t.Validate()
}

// Validate checks the address. Errors: CodeInvalid.
func (t Timestamps) Validate() error {
	if err := checkURL(t.URL, false); err != nil {
		return registry.Errorf(registry.CodeInvalid, "timestamp authority: %w", err)
	}
	return nil
}

// Text is the file.
func (t Timestamps) Text() string {
	return "# Every signature of the keys in this folder gets a timestamp (RFC 3161) by:\nurl: " + t.URL + "\n"
}

// Options asks for a timestamp and nothing else: for keys.
func (t Timestamps) Options(ctx context.Context) sign.BundleOptions {
	return sign.BundleOptions{TimestampAuthorities: t.authorities(ctx)}
}

// authorities asks without a nonce: what is stamped is the hash of a fresh signature, which no
// earlier answer covers.
func (t Timestamps) authorities(ctx context.Context) []*sign.TimestampAuthority {
	if t.URL == "" {
		return nil
	}
	return []*sign.TimestampAuthority{sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{
		URL: t.URL, Timeout: callTime, Transport: call{ctx: ctx, what: "timestamp authority"},
	})}
}

// load reads a YAML file. Text that a URL would not survive is refused by Validate.
func load(path string, into any) error {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		if registry.HasCode(err, registry.CodeInvalid) {
			return err
		}
		return registry.Lastingf(registry.CodeUnavailable, "read %s: %w", filepath.Base(path), err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return registry.Errorf(registry.CodeInvalid, "%s is empty", path)
	}
	_, err = strictyaml.Decode(path, data, into)
	return err
}
