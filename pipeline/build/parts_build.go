package build

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// assembled finds the release at the head, if it was put together from parts with this key.
func (w wantedParts) assembled(ctx context.Context, from api.Interface) (Result, error) {
	r, err := from.Release(ctx, w.environment, w.common.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return Result{}, nil
	}
	if err != nil || r.Version != w.common.Version {
		return Result{}, err
	}
	claims, _, err := from.Claims(ctx, w.environment, r)
	if err != nil {
		return Result{}, err
	}
	counted, _ := evidence.Accept(r, claims)
	same := slices.ContainsFunc(counted, func(c evidence.Claim) bool {
		var said saidOfParts
		if c.Subject != r.Digest || c.Statement.PredicateType != evidence.PredicateProvenance ||
			registry.DecodeSigned(c.Statement.Predicate, &said) != nil {
			return false
		}
		by := said.BuildDefinition.ExternalParameters.Assembled
		return by != nil && by.Key == w.key
	})
	signed := policy.Policy{Require: []string{policy.RequireSignature, policy.RequireProvenance}}.Check(r, claims)
	return Result{
		Ref:     registry.Ref{Environment: w.environment, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release: r, Plan: r.Plan, Unchanged: same && signed.Allowed(),
	}, nil
}

// joinParts looks at the parts that are there before anything is made. If they have all engines that are to be made, the
// result is unchanged. Otherwise the sources of the first part are those of this one.
func joinParts(ctx context.Context, env *run.Env, prepared Prepared, origin *evidence.Origin, o Options) (standing, error) {
	environments, err := env.Registry.Environments(ctx)
	if err != nil {
		return standing{}, err
	}
	w := *prepared.parts
	w.environment, w.commit = environments.First().Name, gitOf(origin).Commit
	at := standing{origin: origin, parts: &w}
	if !o.CheckReproducible {
		if result, err := w.assembled(ctx, env.Registry); err != nil || result.Unchanged {
			at.result = result
			return at, err
		}
	}
	parts, _, err := w.find(ctx, env.Registry)
	if err != nil || len(parts) == 0 {
		return at, err
	}
	all, _ := choose(parts)
	missing := slices.ContainsFunc(prepared.Inputs.Engines, func(r plan.Requested) bool { _, ok := all[r.Label()]; return !ok })
	if !missing && !o.CheckReproducible {
		r := all[prepared.Inputs.Engines[0].Label()].part.release
		at.result = Result{Ref: w.ref(r), Release: r, Plan: r.Plan, Unchanged: true}
		return at, nil
	}
	at.given, err = sourcesOf(ctx, env, w, parts[0].release.Sources)
	return at, err
}

// ref names a part, which has no tag.
func (w wantedParts) ref(r artifact.Release) registry.Ref {
	return registry.Ref{Environment: w.environment, Model: r.Model, Digest: r.Digest}
}

// sourcesOf reads the sources of the first part.
func sourcesOf(ctx context.Context, env *run.Env, w wantedParts, d registry.Digest) (*storage.Sources, error) {
	sources, err := env.Parts.Sources(ctx, registry.SourcesRepository(w.environment, w.common.Model), d)
	if err != nil {
		return nil, registry.WithHint(registry.Errorf(registry.CodeOf(err), "the sources that the first part names: %w", err),
			"whoever builds a part reads the sources of the model")
	}
	return &sources, nil
}

// givenGolden fetches the golden outputs of given sources.
func givenGolden(ctx context.Context, env *run.Env, repository string, given storage.Sources, scratch string) (*goldenset.Set, error) {
	done := env.Step("fetch the golden outputs of the first part")
	golden, err := fetchGolden(ctx, env, repository, given, scratch)
	done("", err)
	return golden, err
}

func fetchGolden(ctx context.Context, env *run.Env, repository string, given storage.Sources, scratch string) (*goldenset.Set, error) {
	dir, err := os.MkdirTemp(scratch, "golden-*")
	if err != nil {
		return nil, err
	}
	part, err := env.Parts.Fetch(ctx, repository, given.Parts[artifact.PartGolden].Digest, dir)
	if err != nil {
		return nil, err
	}
	if part.Set == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "sources %s have no golden outputs", given.Digest)
	}
	golden := goldenset.Set{Set: *part.Set}
	for _, shard := range part.Set.Shards {
		at := slices.IndexFunc(part.Files, func(f artifact.File) bool { return f.Path == shard.File })
		if at < 0 {
			return nil, registry.Errorf(registry.CodeInvalid, "golden outputs of sources %s have no shard %s", given.Digest, shard.File)
		}
		f := part.Files[at]
		golden.Files = append(golden.Files, toolchain.OutputFile{Name: f.Path,
			Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size})
	}
	return &golden, nil
}

// partRounds is how often a part is stored again with other sources. The first part that the history has stays the
// first, so two are enough.
const partRounds = 3

// storePart stores the engines and signs them as a part of a release. Of machines that began at the same time, the
// sources of the one count whose part the history has first: the others store their engines again, which name those.
func storePart(ctx context.Context, b making) (Result, error) {
	w := b.parts
	given, attached := b.given, 0
	for range partRounds {
		done := b.env.Step("store a part in " + w.environment)
		r, err := push(ctx, b, w.environment, given)
		done("", err)
		if err != nil {
			return Result{}, err
		}
		n, err := attest(ctx, b, w.environment, r)
		if err != nil {
			return Result{}, err
		}
		attached += n
		parts, _, err := w.find(ctx, b.env.Registry)
		if err != nil {
			return Result{}, err
		}
		if !slices.ContainsFunc(parts, func(p foundPart) bool { return p.release.Digest == r.Digest }) {
			return Result{}, registry.Errorf(registry.CodeTrust,
				"the part %s was stored and signed, and does not count: is this builder trusted in %s?", r.Digest, w.environment)
		}
		if parts[0].release.Sources == r.Sources {
			steps, cached := count(b)
			return Result{Ref: w.ref(r.Release), Release: r.Release, Plan: b.Plan.Digest, Steps: steps, Cached: cached, Attached: attached,
				ReferenceLatency: b.golden.Latency, Elapsed: b.env.Time().Sub(b.began)}, nil
		}
		if given, err = sourcesOf(ctx, b.env, *w, parts[0].release.Sources); err != nil {
			return Result{}, err
		}
	}
	return Result{}, registry.Errorf(registry.CodeConflict, "the first part of %s %s changed %d times", b.Plan.Model, b.Plan.Version, partRounds)
}
