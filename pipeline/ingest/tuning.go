package ingest

import (
	"os"
	"path"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// maxTuning is how many bytes a tuning record that a spec names may have. It is written by
// people, or by a tuner for a few operators.
const maxTuning = 4 << 20

// tuningInput reads the record that a target of a spec names; nil for none.
func tuningInput(files specFiles, t spec.Target) (*toolchain.Input, error) {
	written := t.Toolchain.Tuning.Written
	if written == "" {
		return nil, nil
	}
	in, err := files.input(written, toolchain.RoleTuning, path.Base(written), func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() > maxTuning {
			return registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", written, info.Size(), maxTuning)
		}
		return refuseCode(f)
	})
	return &in, inside("target "+t.Name+": tuning", err)
}
