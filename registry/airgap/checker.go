package airgap

import (
	"context"
	"encoding/json"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/gate"
	"mlpromote.dev/mlpromote/registry/oci/layout"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Expectation has the receiving side's demands on a file. Registry and Environment are required.
type Expectation struct {
	Registry    string        // name of the registry that it was saved from
	Environment string        // its promoter must have let the release in
	Model       string        // empty: any
	MaxAge      time.Duration // since the promoter verified it; 0: any
	// Restrictions is a signed restriction list of that environment that the caller got elsewhere;
	// nil: only that in the file counts.
	Restrictions []byte
}

// Checker checks saved releases. All fields are required.
type Checker struct {
	// Trust lists whom the receiving side trusts for the sending one. It is given the trust bundle in the file,
	// which may be nil, and decides by its own rules whether that counts.
	Trust func(ctx context.Context, bundle []byte) (Trusted, error)
	Now   storage.Clock
	// Inspect looks at the bytes of every file.
	Inspect gate.Inspect
}

// titled returns a file that was saved beside the release, nil if there is none. Errors: CodeTrust for
// a file that save did not write.
func titled(in *layout.Layout, r artifact.Release, title string) ([]byte, error) {
	all := in.Referrers(r.Digest, OriginType)
	if len(all) != 1 {
		return nil, registry.Errorf(registry.CodeTrust, "the file has %d manifests of type %s: want one", len(all), OriginType)
	}
	raw, err := in.Manifest(all[0].Digest)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "manifest %s: %w", all[0].Digest, err)
	}
	for _, layer := range m.Layers {
		if layer.Annotations[ocispec.AnnotationTitle] == title {
			return in.Manifest(layer.Digest)
		}
	}
	return nil, nil
}
