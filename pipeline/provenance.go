package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// builderID names the builder: this program, run by the holder of the builder's key.
const builderID = "https://mlpromote.dev/builder/cli"

// Provenance is the predicate of SLSA provenance v1
// (https://slsa.dev/spec/v1.0/provenance).
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition says what was built of what.
type BuildDefinition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	InternalParameters   map[string]any `json:"internalParameters"`
	ResolvedDependencies []Resource     `json:"resolvedDependencies"`
}

// RunDetails says who built it, and when.
type RunDetails struct {
	Builder    Builder       `json:"builder"`
	Metadata   BuildMetadata `json:"metadata"`
	Byproducts []Resource    `json:"byproducts,omitempty"`
}

// Builder names what made the build, and its versions.
type Builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// BuildMetadata are the times of a build.
type BuildMetadata struct {
	// InvocationID is the URL of the CI run, if a token of the CI names it.
	InvocationID string    `json:"invocationId,omitempty"`
	StartedOn    time.Time `json:"startedOn"`
	FinishedOn   time.Time `json:"finishedOn"`
	// The name is registry.ReproducibleField.
	Reproducible registry.Reproducibility `json:"mlpromote_reproducible,omitempty"`
}

// Resource is an in-toto ResourceDescriptor.
type Resource struct {
	Name        string             `json:"name"`
	URI         string             `json:"uri,omitempty"`
	Digest      registry.DigestSet `json:"digest,omitempty"`
	Annotations map[string]any     `json:"annotations,omitempty"`
}

// maxNamed is how many files of cases provenance names, which engines are measured by and not made
// from. The sources of the release, which it names too, have all of them.
const maxNamed = 64

// dependencies are what all engines of a release are made of and measured by.
func (b build) dependencies(r registry.Release) []Resource {
	all := []Resource{
		{Name: "source", Digest: registry.NewDigestSet(b.plan.Source)},
		{Name: "sources", Digest: registry.NewDigestSet(r.Sources)},
		{Name: "limits", Digest: registry.NewDigestSet(r.Limits)},
		{Name: "interface", Digest: registry.NewDigestSet(r.Interface)},
	}
	for _, d := range b.otherSources() {
		all = append(all, Resource{Name: "source file", Digest: registry.NewDigestSet(d)})
	}
	named := func(what string, inputs ...toolchain.Input) {
		for _, in := range inputs {
			all = append(all, Resource{Name: what + " " + in.Name, Digest: registry.NewDigestSet(in.Digest)})
		}
	}
	named("asset", b.inputs.Assets...)
	named("operators", b.inputs.Operators...)
	if b.inputs.program != nil {
		named("program", *b.inputs.program)
	}
	cases := b.inputs.Cases.Files
	named("cases", cases[:min(len(cases), maxNamed)]...)
	if git := gitOf(b.origin); git.Commit != "" {
		all = append(all, repository(git))
	}
	return all
}

// otherSources lists the files of the model that are not plan.Source: external data, and the
// further files of a source that was imported.
func (b build) otherSources() []registry.Digest {
	var files []registry.Digest
	if b.plan.Import == nil && len(b.inputs.Model) > 0 {
		for _, in := range b.inputs.Model[1:] {
			files = append(files, in.Digest)
		}
	}
	if p := b.plan.Import; p != nil {
		for _, f := range p.Files {
			files = append(files, f.Digest)
		}
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(d registry.Digest) bool { return d == b.plan.Source })
}

// calibrationOf lists the data that decided how an engine was quantized: the files that a step
// read, and the part of the sources that has them. It is empty, and not nil, for an engine
// without such data: restrictions read it, and what is not said counts as restricted.
func (b build) calibrationOf(r stored, e builtEngine) []registry.Digest {
	data := []registry.Digest{}
	for _, s := range e.steps {
		for _, in := range s.job.Inputs {
			switch in.Role {
			case toolchain.RoleCalibration, toolchain.RoleCases:
				data = append(data, in.Digest)
			case toolchain.RoleRanges: // a table that was made of the calibration
				for _, f := range b.inputs.Calibration.Files {
					data = append(data, f.Digest)
				}
			}
		}
	}
	reads := func(f toolchain.Input) bool { return slices.Contains(data, f.Digest) }
	if r.calibration != "" && slices.ContainsFunc(b.inputs.Calibration.Files, reads) {
		data = append(data, r.calibration)
	}
	slices.Sort(data)
	return slices.Compact(data)
}

// gitOf is the state of the repository; the zero GitOrigin where it was not read.
func gitOf(origin *registry.Origin) registry.GitOrigin {
	if origin == nil {
		return registry.GitOrigin{}
	}
	return origin.Git
}

// repository is a commit as SLSA writes it. Source: https://slsa.dev/spec/v1.0/provenance#resourcedescriptor and
// https://github.com/in-toto/attestation/blob/main/spec/v1/digest_set.md.
func repository(git registry.GitOrigin) Resource {
	said := map[string]any{"state": cmp.Or(git.State, "unknown")}
	if git.Ref != "" {
		said["ref"] = git.Ref
	}
	commit := Resource{Name: "repository", Digest: registry.DigestSet{"gitCommit": git.Commit}, Annotations: said}
	if git.Repository != "" {
		commit.URI = "git+" + git.Repository
	}
	return commit
}

// internal are the parameters that the builder set, of a release and of its engines alike.
func (b build) internal() map[string]any {
	all := map[string]any{"node": b.node}
	if b.origin != nil {
		all["origin"] = b.origin
	}
	return all
}

// metadata are the times of the build, and its run.
func (b build) metadata() BuildMetadata {
	m := BuildMetadata{StartedOn: b.began.UTC(), FinishedOn: b.p.now().UTC()}
	if b.origin != nil {
		m.InvocationID = b.origin.CI.Run()
	}
	return m
}

// releaseProvenance says of a release as a whole where its spec came from, and which engines of the spec it was
// made without.
func (b build) releaseProvenance(r registry.Release) Provenance {
	left := make([]registry.LeftOut, len(b.left))
	for i, e := range b.left {
		left[i] = registry.LeftOut{Label: e.Label, Code: e.Code}
	}
	internal := b.internal()
	if len(left) > 0 {
		internal["leftOut"] = left
	}
	external, dependencies := map[string]any{"model": b.plan.Model, "version": b.plan.Version, "plan": b.plan.Digest}, b.dependencies(r)
	if len(b.assembled) > 0 {
		external["assembled"] = assembly{b.parts.key}
		for _, part := range b.assembled {
			dependencies = append(dependencies, Resource{Name: "part", Digest: registry.NewDigestSet(part)})
		}
	}
	return b.provenanceOf(external, internal, dependencies)
}

// provenanceOf is the provenance of what was made of parameters and dependencies.
func (b build) provenanceOf(external, internal map[string]any, dependencies []Resource) Provenance {
	return Provenance{
		BuildDefinition: BuildDefinition{
			BuildType:            registry.BuildType,
			ExternalParameters:   external,
			InternalParameters:   internal,
			ResolvedDependencies: dependencies,
		},
		RunDetails: RunDetails{
			Builder:  Builder{ID: builderID, Version: map[string]string{b.p.Tool.Name: b.p.Tool.Version}},
			Metadata: b.metadata(),
		},
	}
}

// tools are what an engine was made with: lock files or images, and tuning records.
func (e builtEngine) tools() []Resource {
	var dependencies []Resource
	if e.engine.Toolchain.Lock != "" {
		name := "toolchain lock"
		switch {
		case e.tool.identity.Image != "":
			name = "toolchain image"
		case e.tool.identity.Adopted:
			name = "toolchain packages"
		}
		dependencies = append(dependencies, Resource{Name: name, Digest: registry.NewDigestSet(e.engine.Toolchain.Lock)})
	}
	if q := e.planned.Quantizer; q != nil && q.Lock != "" {
		dependencies = append(dependencies, Resource{Name: "quantizer lock", Digest: registry.NewDigestSet(q.Lock)})
	}
	if c := e.planned.Compressor; c != nil && c.Lock != "" {
		dependencies = append(dependencies, Resource{Name: "compressor lock", Digest: registry.NewDigestSet(c.Lock)})
	}
	if lock := toolchain.FirstLock(e.planned.Compile); lock != "" {
		dependencies = append(dependencies, Resource{Name: "first toolchain lock", Digest: registry.NewDigestSet(lock)})
	}
	for _, s := range e.steps {
		for _, in := range s.job.Inputs {
			if in.Role == toolchain.RoleTuning {
				dependencies = append(dependencies, Resource{Name: "tuning record " + in.Name, Digest: registry.NewDigestSet(in.Digest)})
			}
		}
	}
	return dependencies
}

// provenance says how an engine of a release was made.
func (b build) provenance(r stored, e builtEngine) Provenance {
	dependencies := append(b.dependencies(r.Release), e.tools()...)
	internal := b.internal()
	maps.Copy(internal, map[string]any{
		"toolchain": e.tool.identity, "referenceLatency": b.golden.latency, "made": e.made,
		"tied": e.tie, "loaded": e.loaded, "crossCheck": b.golden.crossCheck,
	})
	if e.census != nil {
		internal["operators"] = e.census
	}
	if e.compression != nil {
		internal["compression"] = e.compression
	}
	if student := b.inputs.students[e.planned.Variant]; student != nil {
		dependencies = append(dependencies, studentResources(student)...)
	}
	calibration := b.calibrationOf(r, e)
	internal["calibration"] = calibration
	for _, d := range calibration {
		dependencies = append(dependencies, Resource{Name: "calibration", Digest: registry.NewDigestSet(d)})
	}
	taken := b.stepsOf(e)
	if p := b.plan.Import; p != nil {
		internal["importer"] = b.inputs.imported.importer()
		dependencies = append(dependencies, Resource{Name: "imported model", Digest: registry.NewDigestSet(b.inputs.Model[0].Digest)})
		if p.Toolchain.Lock != "" {
			dependencies = append(dependencies, Resource{Name: "importer lock", Digest: registry.NewDigestSet(p.Toolchain.Lock)})
		}
	}
	external := map[string]any{
		"model": b.plan.Model, "version": b.plan.Version, "plan": b.plan.Digest,
		"target": e.engine.Target, "variant": e.engine.Variant,
	}
	if len(e.engine.Providers) > 0 {
		external["providers"] = e.engine.Providers
	}
	steps := make([]Resource, len(taken))
	for i, s := range taken {
		steps[i] = s.provenance()
	}
	said := b.provenanceOf(external, internal, dependencies)
	said.RunDetails.Metadata.Reproducible, said.RunDetails.Byproducts = b.reproducible(e), steps
	return said
}

// provenance says how a step was done, or had been done when it was not done again.
func (s takenStep) provenance() Resource {
	said := map[string]any{"cached": s.outcome.Cached, "elapsedNs": s.outcome.Elapsed.Nanoseconds(), "options": s.options}
	if origin := s.outcome.Origin; origin.Cache != "" {
		said["cachedIn"], said["doneBy"] = origin.Cache, origin.Signer
	}
	if s.reproducible != "" {
		said["reproducible"] = s.reproducible
	}
	if s.outcome.Enforced.Sandbox != "" {
		said["enforced"] = s.outcome.Enforced
	}
	if s.ranges != "" {
		said["ranges"] = s.ranges
	}
	return Resource{Name: s.name, Digest: registry.NewDigestSet(s.outcome.Key), Annotations: said}
}
