package build

import (
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// making is a build whose steps are done: what was made waits to be stored.
type making struct {
	env     *run.Env
	options Options
	began   time.Time
	Maker
	made
	origin    *evidence.Origin  // nil: not known
	assembled []registry.Digest // parts that the release was put together from
	given     *storage.Sources  // of the release that this part belongs to; nil: this build stores them
}

// standing is what the first environment has of a build before it begins.
type standing struct {
	result Result // unchanged if nothing is to be made
	// Of a part of a release:
	origin *evidence.Origin // nil: not known
	parts  *wantedParts     // where the parts are
	given  *storage.Sources // nil: there is no part yet
}

// stored is a release that was pushed, and waits to be signed.
type stored struct {
	artifact.Release
	calibration registry.Digest // the manifest of the calibration in the sources; empty for none
}
