package parts

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Cases reads single cases of sources, and the labels of all, without reading the rest.
type Cases struct {
	Parts storage.PartStore
	// Open opens a file of a part by its digest, as [storage.Blobs] does.
	Open func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error)
}

// Bounds on what is read of cases.
const (
	maxCaseBytes  = 4 << 20  // of one input of one case
	maxLabelBytes = 16 << 20 // of all labels of a shard
	maxLabelCases = 1 << 20
)

// set is the cases of sources.
type set struct {
	storage.FetchedPart
	repository string
}

func (c Cases) set(ctx context.Context, repository string, sources registry.Digest) (set, error) {
	found, err := c.Parts.Sources(ctx, repository, sources)
	if err != nil {
		return set{}, err
	}
	part, ok := found.Parts[artifact.PartCases]
	if !ok {
		return set{}, registry.Errorf(registry.CodeNotFound, "sources %s of %s have no cases", sources, repository)
	}
	fetched, err := c.Parts.Fetch(ctx, repository, part.Digest, "")
	if err == nil && fetched.Set == nil {
		err = registry.Errorf(registry.CodeTrust, "part %s of %s does not describe its cases", part.Digest, repository)
	}
	return set{fetched, repository}, err
}

// shard opens a file of the cases. Its bytes are not compared with its digest, which would take all of them: what is
// read of it is only shown.
func (c Cases) shard(ctx context.Context, s set, name string, limit int64) (*tensorfile.File, func(), error) {
	i := slices.IndexFunc(s.Files, func(f artifact.File) bool { return f.Path == name })
	if i < 0 {
		return nil, nil, registry.Errorf(registry.CodeTrust, "the cases of %s have no file %.100q", s.repository, name)
	}
	blob, size, err := c.Open(ctx, s.Files[i].Digest)
	if err != nil {
		return nil, nil, err
	}
	file, err := tensorfile.NewFile(blob, size, tensorfile.Limits{MaxTensorBytes: limit})
	if err != nil {
		_ = blob.Close()
		return nil, nil, registry.Errorf(registry.CodeInvalid, "cases of %s: %s: %w", s.repository, name, err)
	}
	return file, func() { _ = blob.Close() }, nil
}

// Input is an input of a case.
type Input struct {
	Name  string
	Value tensor.Tensor // with a leading dimension of 1
}

// Inputs returns the inputs of a case by its number, from 0, without its label, by name. Errors: CodeNotFound if there
// is no such case; CodeInvalid for files that are malformed or inputs that are too large.
func (c Cases) Inputs(ctx context.Context, repository string, sources registry.Digest, n int) ([]Input, error) {
	s, err := c.set(ctx, repository, sources)
	if err != nil {
		return nil, err
	}
	for _, shard := range s.Set.Shards {
		if n < shard.First || n >= shard.First+shard.Count {
			continue
		}
		file, done, err := c.shard(ctx, s, shard.File, maxCaseBytes)
		if err != nil {
			return nil, err
		}
		defer done()
		var all []Input
		for _, name := range file.Names() {
			if name == s.Set.Labels {
				continue
			}
			value, err := file.Rows(name, int64(n-shard.First), int64(n-shard.First+1))
			if err != nil {
				return nil, registry.Errorf(registry.CodeInvalid, "case %d of %s: %w", n, repository, err)
			}
			all = append(all, Input{name, value})
		}
		return all, nil
	}
	return nil, registry.Errorf(registry.CodeNotFound, "the cases of %s have no case %d", repository, n)
}

// Labels returns the label of each case; nil if they have none, or not one integer each.
func (c Cases) Labels(ctx context.Context, repository string, sources registry.Digest) ([]int64, error) {
	s, err := c.set(ctx, repository, sources)
	if err != nil || s.Set.Labels == "" || s.Set.Count > maxLabelCases {
		return nil, err
	}
	var all []int64
	for _, shard := range s.Set.Shards {
		labels, ok, err := c.labels(ctx, s, shard.File)
		if err != nil || !ok {
			return nil, err
		}
		all = append(all, labels...)
	}
	return all, nil
}

func (c Cases) labels(ctx context.Context, s set, name string) ([]int64, bool, error) {
	file, done, err := c.shard(ctx, s, name, maxLabelBytes)
	if err != nil {
		return nil, false, err
	}
	defer done()
	of, err := file.Tensor(s.Set.Labels)
	if err != nil {
		return nil, false, registry.Errorf(registry.CodeInvalid, "labels of the cases of %s: %w", s.repository, err)
	}
	labels, ok := validators.ClassLabels(of)
	return labels, ok, nil
}
