package pull

import (
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Expectation has the caller's own knowledge about a pulled folder; the record in the folder is not
// signed. Empty fields accept any value. The zero Expectation requires a promoter's summary, for the
// repository that the folder names.
type Expectation struct {
	Registry    string // name of the registry
	Environment string
	Model       string
	Version     string        // tag of the release
	MaxAge      time.Duration // since the promoter verified it
	// Restrictions is a signed restriction list of the environment that the caller got elsewhere. It
	// counts in addition to the list in the folder, and must not be older. Nil: only that in the folder.
	Restrictions []byte
	// Known returns a signed restriction list of the environment with a URI, such as oci://local/prod/, that counts
	// unless the folder has a newer one; nil if there is none. Nil: only that in the folder.
	Known func(environment string) []byte
	// Unpromoted accepts an engine without a promoter's summary. Its version is then not proven.
	Unpromoted bool
	// Node is the machine that loads the engine, with its runtimes. A report that did not pass on a machine like it, or
	// that it may be like because it does not state a fact, keeps the engine from it. The zero Node states nothing.
	Node artifact.Node
}

// Checker checks pulled folders without the network.
type Checker struct {
	Verify storage.VerifyEvidence
	// ReadPart reads the description of a part from the exact bytes of its manifest.
	ReadPart func(manifest []byte) (storage.FetchedPart, error)
	Now      storage.Clock // nil means time.Now
}

func (c Checker) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}
