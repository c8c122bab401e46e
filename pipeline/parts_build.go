package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// assembly is what provenance says of a release that was put together from parts.
type assembly struct {
	Key registry.Digest `json:"key"`
}

// saidOfParts is what provenance can say of parts.
type saidOfParts struct {
	BuildDefinition struct {
		ExternalParameters struct {
			Part      *plan.Part `json:"part"`
			Assembled *assembly  `json:"assembled"`
		} `json:"externalParameters"`
	} `json:"buildDefinition"`
}

// partIn reads what a builder says of a part.
func partIn(s registry.Statement) (plan.Part, bool) {
	var said saidOfParts
	if s.PredicateType != registry.PredicateProvenance || registry.DecodeSigned(s.Predicate, &said) != nil ||
		said.BuildDefinition.ExternalParameters.Part == nil {
		return plan.Part{}, false
	}
	return *said.BuildDefinition.ExternalParameters.Part, true
}

// commitIn reads the commit that a build was made from; empty if it is not known.
func commitIn(s registry.Statement) string {
	if origin := s.Origin(); origin != nil {
		return origin.Git.Commit
	}
	return ""
}

// assembled finds the release at the head, if it was put together from parts with this key.
func (w wantedParts) assembled(ctx context.Context, from registry.Interface) (BuildResult, error) {
	r, err := from.Release(ctx, w.environment, w.common.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return BuildResult{}, nil
	}
	if err != nil || r.Version != w.common.Version {
		return BuildResult{}, err
	}
	claims, _, err := from.Claims(ctx, w.environment, r)
	if err != nil {
		return BuildResult{}, err
	}
	counted, _ := registry.Accept(r, claims)
	same := slices.ContainsFunc(counted, func(c registry.Claim) bool {
		var said saidOfParts
		if c.Subject != r.Digest || c.Statement.PredicateType != registry.PredicateProvenance ||
			registry.DecodeSigned(c.Statement.Predicate, &said) != nil {
			return false
		}
		by := said.BuildDefinition.ExternalParameters.Assembled
		return by != nil && by.Key == w.key
	})
	signed := registry.Policy{Require: []string{registry.RequireSignature, registry.RequireProvenance}}.Check(r, claims)
	return BuildResult{
		Ref:     registry.Ref{Environment: w.environment, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release: r, Plan: r.Plan, Unchanged: same && signed.Allowed(),
	}, nil
}

// joinParts looks at the parts that are there before anything is made. If they have all engines that are to be made, the
// result is unchanged. Otherwise the sources of the first part are those of this one.
func (p *Pipeline) joinParts(ctx context.Context, prepared prepared, origin *registry.Origin, o BuildOptions) (standing, error) {
	environments, err := p.Registry.Environments(ctx)
	if err != nil {
		return standing{}, err
	}
	w := *prepared.parts
	w.environment, w.commit = environments.First().Name, gitOf(origin).Commit
	at := standing{origin: origin, parts: &w}
	if !o.CheckReproducible {
		if result, err := w.assembled(ctx, p.Registry); err != nil || result.Unchanged {
			at.result = result
			return at, err
		}
	}
	parts, _, err := w.find(ctx, p.Registry)
	if err != nil || len(parts) == 0 {
		return at, err
	}
	all, _ := choose(parts)
	missing := slices.ContainsFunc(prepared.inputs.Engines, func(r plan.Requested) bool { _, ok := all[r.Label()]; return !ok })
	if !missing && !o.CheckReproducible {
		r := all[prepared.inputs.Engines[0].Label()].part.release
		at.result = BuildResult{Ref: w.ref(r), Release: r, Plan: r.Plan, Unchanged: true}
		return at, nil
	}
	at.given, err = p.sourcesOf(ctx, w, parts[0].release.Sources)
	return at, err
}

// ref names a part, which has no tag.
func (w wantedParts) ref(r registry.Release) registry.Ref {
	return registry.Ref{Environment: w.environment, Model: r.Model, Digest: r.Digest}
}

// sourcesOf reads the sources of the first part.
func (p *Pipeline) sourcesOf(ctx context.Context, w wantedParts, d registry.Digest) (*registry.Sources, error) {
	sources, err := p.Parts.Sources(ctx, registry.SourcesRepository(w.environment, w.common.Model), d)
	if err != nil {
		return nil, registry.WithHint(registry.Errorf(registry.CodeOf(err), "the sources that the first part names: %w", err),
			"whoever builds a part reads the sources of the model")
	}
	return &sources, nil
}

// givenGolden fetches the golden outputs of given sources.
func (p *Pipeline) givenGolden(ctx context.Context, repository string, given registry.Sources, scratch string) (*goldenSet, error) {
	done := p.step("fetch the golden outputs of the first part")
	golden, err := p.fetchGolden(ctx, repository, given, scratch)
	done("", err)
	return golden, err
}

func (p *Pipeline) fetchGolden(ctx context.Context, repository string, given registry.Sources, scratch string) (*goldenSet, error) {
	dir, err := os.MkdirTemp(scratch, "golden-*")
	if err != nil {
		return nil, err
	}
	part, err := p.Parts.Fetch(ctx, repository, given.Parts[registry.PartGolden].Digest, dir)
	if err != nil {
		return nil, err
	}
	if part.Set == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "sources %s have no golden outputs", given.Digest)
	}
	golden := goldenSet{set: *part.Set}
	for _, shard := range part.Set.Shards {
		at := slices.IndexFunc(part.Files, func(f registry.File) bool { return f.Path == shard.File })
		if at < 0 {
			return nil, registry.Errorf(registry.CodeInvalid, "golden outputs of sources %s have no shard %s", given.Digest, shard.File)
		}
		f := part.Files[at]
		golden.files = append(golden.files, toolchain.OutputFile{Name: f.Path,
			Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size})
	}
	return &golden, nil
}

// checkSources compares the given sources with what the spec names here, and returns their digest and those of their parts.
func (b build) checkSources(ctx context.Context, repository string, given registry.Sources) (sources registry.Digest,
	roles map[registry.PartKind]registry.Digest, err error) {
	roles = make(map[registry.PartKind]registry.Digest)
	for role, ref := range given.Parts {
		roles[role] = ref.Digest
	}
	for _, part := range b.writtenSources() {
		ref, err := b.p.Parts.PutPart(ctx, repository, part)
		if err != nil {
			return "", nil, err
		}
		if roles[part.Role] != ref.Digest {
			return "", nil, registry.WithHint(
				registry.Errorf(registry.CodeInvalid, "the %s here is %s, and that of the first part of this release is %s (sources %s)",
					part.Role, ref.Digest, roles[part.Role], given.Digest),
				"a model that is imported must come out the same on every machine: share a build cache, or build on machines of one kind")
		}
	}
	return given.Digest, roles, nil
}

// partRounds is how often a part is stored again with other sources. The first part that the history has stays the
// first, so two are enough.
const partRounds = 3

// storePart stores the engines and signs them as a part of a release. Of machines that began at the same time, the
// sources of the one count whose part the history has first: the others store their engines again, which name those.
func (b build) storePart(ctx context.Context) (BuildResult, error) {
	w := b.parts
	given, attached := b.given, 0
	for range partRounds {
		done := b.p.step("store a part in " + w.environment)
		r, err := b.push(ctx, w.environment, given)
		done("", err)
		if err != nil {
			return BuildResult{}, err
		}
		n, err := b.attest(ctx, w.environment, r)
		if err != nil {
			return BuildResult{}, err
		}
		attached += n
		parts, _, err := w.find(ctx, b.p.Registry)
		if err != nil {
			return BuildResult{}, err
		}
		if !slices.ContainsFunc(parts, func(p foundPart) bool { return p.release.Digest == r.Digest }) {
			return BuildResult{}, registry.Errorf(registry.CodeTrust,
				"the part %s was stored and signed, and does not count: is this builder trusted in %s?", r.Digest, w.environment)
		}
		if parts[0].release.Sources == r.Sources {
			steps, cached := b.count()
			return BuildResult{Ref: w.ref(r.Release), Release: r.Release, Plan: b.plan.Digest, Steps: steps, Cached: cached, Attached: attached,
				ReferenceLatency: b.golden.latency, Elapsed: b.p.now().Sub(b.began)}, nil
		}
		if given, err = b.p.sourcesOf(ctx, *w, parts[0].release.Sources); err != nil {
			return BuildResult{}, err
		}
	}
	return BuildResult{}, registry.Errorf(registry.CodeConflict, "the first part of %s %s changed %d times", b.plan.Model, b.plan.Version, partRounds)
}

// missingPart makes the statement about a part, unless a builder said the same at this commit.
func (b build) missingPart(r registry.Release, claims []registry.Claim) ([][]byte, error) {
	for _, c := range claims {
		if said, ok := partIn(c.Statement); ok && c.Subject == r.Digest && said.Key == b.parts.key && commitIn(c.Statement) == b.parts.commit {
			return nil, nil
		}
	}
	about := b.releaseProvenance(r)
	about.BuildDefinition.ExternalParameters["part"] = b.plan.PartOf(b.parts.key, b.seen)
	statement, err := registry.NewStatement(registry.PredicateProvenance, about,
		registry.StatementSubject{Name: b.plan.Model, Digest: registry.NewDigestSet(r.Digest)})
	return [][]byte{statement}, err
}
