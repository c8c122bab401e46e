package oci

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// maxCases bounds the number of cases in a set, far above any real one.
const maxCases = 1 << 40

// readSet reads the config of a part with cases, golden outputs or calibration, and checks it
// against the part's files: the shards must follow one another, cover all cases and be exactly
// the files. Errors: CodeInvalid.
func readSet(raw []byte, files []artifact.File) (*artifact.CaseSet, error) {
	var set artifact.CaseSet
	if err := decode(raw, &set); err != nil {
		return nil, err
	}
	switch set.Origin {
	case "", artifact.OriginRecorded, artifact.OriginGenerated:
	default:
		return nil, registry.Errorf(registry.CodeInvalid,
			"the origin of the cases is %q: want %s or %s", set.Origin, artifact.OriginRecorded, artifact.OriginGenerated)
	}
	named := make(map[string]bool, len(files))
	for _, f := range files {
		named[f.Path] = true
	}
	next := 0
	for _, shard := range set.Shards {
		switch {
		case !named[shard.File]:
			return nil, registry.Errorf(registry.CodeInvalid, "shard %q is not a file of the part, or is listed twice", shard.File)
		case shard.First != next || shard.Count < 1 || shard.Count > maxCases-next:
			return nil, registry.Errorf(registry.CodeInvalid,
				"shard %q holds %d cases from %d on: want at least one, from %d on", shard.File, shard.Count, shard.First, next)
		}
		delete(named, shard.File)
		next += shard.Count
	}
	if len(named) > 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "%d files of the part are not shards of its set", len(named))
	}
	if next != set.Count {
		return nil, registry.Errorf(registry.CodeInvalid, "the set names %d cases and its shards hold %d", set.Count, next)
	}
	return &set, nil
}
