package cases

import (
	"errors"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/accuracy"
)

// Set is a set of cases on disk, checked against the model's inputs.
type Set struct {
	Record   artifact.CaseSet
	Files    []toolchain.Input // one for each shard, named as in the record
	Warnings []string          // about values that are probably a mistake
	Copies   map[int]bool      // numbers of the cases with the inputs of an earlier one; nil: not looked for
	Changed  map[int]bool      // numbers of the cases that engines get with changed values; nil unless Converted

	converted []toolchain.Input // what engines run on; nil for Files
	rounded   rounding          // what the conversion changes

	texts map[string]string // tensors of text: the user's file

	from  []string          // the user's file of each shard that was read, for errors
	right *accuracy.Counter // of answers that are the labels, where a metric of classes or boxes wants these; else nil
}

// Add adds a shard of count cases.
func (cs *Set) Add(shard toolchain.Input, count int) {
	cs.Record.Shards = append(cs.Record.Shards, artifact.Shard{File: shard.Name, First: cs.Record.Count, Count: count})
	cs.Record.Count += count
	cs.Files = append(cs.Files, shard)
}

// NamedIn adds to the error of a run the user's file with the shard that the run failed in, see [toolchain.Failure].
func (cs *Set) NamedIn(err error) error {
	var failed *toolchain.Failure
	if !errors.As(err, &failed) {
		return err
	}
	return cs.InShard(err, failed.Shard)
}

// InShard adds to an error about a shard the user's file that the shard was read from.
func (cs *Set) InShard(err error, shard string) error {
	for i, file := range cs.from {
		if cs.Record.Shards[i].File == shard {
			return registry.WithHint(err, "%s was read from %s; rows and cases count from 0", shard, file)
		}
	}
	return err
}
