package build

import (
	"context"
	"slices"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// store pushes what was made, signs it and moves the first environment's head. A
// crash before the last step leaves the old head; a re-run finishes the job.
func store(ctx context.Context, b making) (Result, error) {
	environments, err := b.env.Registry.Environments(ctx)
	if err != nil {
		return Result{}, err
	}
	first := environments.First().Name
	done := b.env.Step("store in " + first)
	r, err := push(ctx, b, first, nil)
	done("", err)
	if err != nil {
		return Result{}, err
	}
	attached, err := attest(ctx, b, first, r)
	if err != nil {
		return Result{}, err
	}
	head, err := b.env.Registry.Publish(ctx, api.Publication{Model: b.Plan.Model, Release: r.Digest})
	if err != nil {
		return Result{}, err
	}
	steps, cached := count(b)
	compressions := make(map[string]*Compression)
	for _, e := range b.engines {
		if e.compression != nil {
			compressions[e.Engine.Label()] = e.compression
		}
	}
	classes := make(map[string]evidence.Reproducibility)
	for _, e := range b.engines {
		if class := reproducible(b, e); class != "" {
			classes[e.Engine.Label()] = class
		}
	}
	return Result{
		Reproducible: classes, Compression: compressions,
		Ref:     registry.Ref{Environment: first, Model: b.Plan.Model, Tag: head.Version, Digest: r.Digest},
		Release: r.Release, Plan: b.Plan.Digest, Steps: steps, Cached: cached, Attached: attached,
		CrossCheck: &b.golden.CrossCheck, ReferenceLatency: b.golden.Latency, Elapsed: b.env.Time().Sub(b.began),
	}, nil
}

func count(b making) (steps, cached int) {
	var all []run.Step
	if b.known == nil {
		all = append(all, b.golden.Step)
	}
	if b.Plan.Import != nil {
		all = append(all, b.imported)
	}
	if b.golden.CrossChecking.Driver != nil {
		all = append(all, b.golden.CrossChecking)
	}
	for _, e := range b.engines {
		all = append(all, e.steps...)
	}
	for _, s := range all {
		if s.Outcome.Cached {
			cached++
		}
	}
	return len(all), cached
}

// push stores sources and limits first, since every engine names their digests. given are the sources of the release that
// this part belongs to; nil stores them. Of a build of some targets it makes a part of a release.
func push(ctx context.Context, b making, environment string, given *storage.Sources) (stored, error) {
	repository := registry.Repository(environment, b.Plan.Model)
	var part registry.Digest
	if b.parts != nil {
		part = b.parts.key
	}
	var sources registry.Digest
	var roles map[artifact.PartKind]registry.Digest
	var err error
	if in := registry.SourcesRepository(environment, b.Plan.Model); given != nil {
		sources, roles, err = checkSources(ctx, b, in, *given)
	} else {
		sources, roles, err = pushSources(ctx, b, in)
	}
	if err != nil {
		return stored{}, err
	}
	reference := roles[artifact.PartReference]
	limits, err := pushDocument(ctx, b, repository, artifact.PartLimits, b.Plan.Limits)
	if err != nil {
		return stored{}, err
	}
	iface, err := pushDocument(ctx, b, repository, artifact.PartInterface, b.Plan.Interface)
	if err != nil {
		return stored{}, err
	}
	labels, err := b.Inputs.LabelFiles()
	if err != nil {
		return stored{}, err
	}
	parts := []storage.PartRef{limits, iface}
	for _, e := range b.engines {
		engine := e.Engine
		engine.Reference, engine.Sources, engine.Limits, engine.Interface = reference, sources, limits.Digest, iface.Digest
		files := slices.Concat(run.OutputFiles(e.Files), b.Inputs.AssetFiles(), labels, b.Inputs.OperatorFiles())
		part, err := b.env.Parts.PutPart(ctx, repository, storage.Part{
			Role: artifact.PartEngine, Files: files, Engine: engine, Model: b.Plan.Model, Format: e.Tool.Profile.Format})
		if err != nil {
			return stored{}, err
		}
		engine.Digest = part.Digest
		image, err := b.env.Parts.PutPart(ctx, repository, storage.Part{Role: artifact.PartImage, Files: files, Engine: engine})
		if err != nil {
			return stored{}, err
		}
		parts = append(parts, part, image)
	}
	d, err := b.env.Parts.Assemble(ctx, repository, storage.Assembly{
		Model: b.Plan.Model, Version: b.Plan.Version, Revision: 1, Sources: sources, Plan: b.Plan.Digest, Part: part, Parts: parts})
	if err != nil {
		return stored{}, err
	}
	r, err := b.env.Registry.Release(ctx, environment, b.Plan.Model, string(d))
	return stored{r, roles[artifact.PartCalibration]}, err
}

func pushDocument(ctx context.Context, b making, repository string,
	role artifact.PartKind, document any) (storage.PartRef, error) {
	data, err := registry.CanonicalJSON(document)
	if err != nil {
		return storage.PartRef{}, err
	}
	file := run.BytesFile(string(role)+".json", digest.FromBytes(data), data)
	return b.env.Parts.PutPart(ctx, repository, storage.Part{Role: role, Files: []storage.PartFile{file}})
}
