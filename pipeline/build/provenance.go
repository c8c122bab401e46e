package build

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// builderID names the builder: this program, run by the holder of the builder's key.
const builderID = "https://mlpromote.dev/builder/cli"

// Provenance is the predicate of SLSA provenance v1
// (https://slsa.dev/spec/v1.0/provenance).
type Provenance struct {
	BuildDefinition Definition `json:"buildDefinition"`
	RunDetails      RunDetails `json:"runDetails"`
}

// Definition says what was built of what.
type Definition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	InternalParameters   map[string]any `json:"internalParameters"`
	ResolvedDependencies []run.Resource `json:"resolvedDependencies"`
}

// RunDetails says who built it, and when.
type RunDetails struct {
	Builder    Builder        `json:"builder"`
	Metadata   Metadata       `json:"metadata"`
	Byproducts []run.Resource `json:"byproducts,omitempty"`
}

// Builder names what made the build, and its versions.
type Builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// Metadata are the times of a build.
type Metadata struct {
	// InvocationID is the URL of the CI run, if a token of the CI names it.
	InvocationID string    `json:"invocationId,omitempty"`
	StartedOn    time.Time `json:"startedOn"`
	FinishedOn   time.Time `json:"finishedOn"`
	// The name is evidence.ReproducibleField.
	Reproducible evidence.Reproducibility `json:"mlpromote_reproducible,omitempty"`
}

// maxNamed is how many files of cases provenance names, which engines are measured by and not made
// from. The sources of the release, which it names too, have all of them.
const maxNamed = 64

// dependencies are what all engines of a release are made of and measured by.
func dependencies(b making, r artifact.Release) []run.Resource {
	all := []run.Resource{
		fetched(run.Resource{Name: "source", Digest: evidence.NewDigestSet(b.Plan.Source)}, b.Inputs.Imported.Origin),
		{Name: "sources", Digest: evidence.NewDigestSet(r.Sources)},
		{Name: "limits", Digest: evidence.NewDigestSet(r.Limits)},
		{Name: "interface", Digest: evidence.NewDigestSet(r.Interface)},
	}
	for _, d := range otherSources(b) {
		all = append(all, run.Resource{Name: "source file", Digest: evidence.NewDigestSet(d)})
	}
	named := func(what string, inputs ...toolchain.Input) {
		for _, in := range inputs {
			all = append(all, run.Resource{Name: what + " " + in.Name, Digest: evidence.NewDigestSet(in.Digest)})
		}
	}
	named("asset", b.Inputs.Assets...)
	named("operators", b.Inputs.Operators...)
	if b.Inputs.Program != nil {
		named("program", *b.Inputs.Program)
	}
	cases := b.Inputs.Cases.Files
	named("cases", cases[:min(len(cases), maxNamed)]...)
	if git := gitOf(b.origin); git.Commit != "" {
		all = append(all, repository(git))
	}
	return all
}

// fetched adds to a source the server that it was fetched from. The builder states it: the server signed nothing.
func fetched(source run.Resource, from *spec.Origin) run.Resource {
	if from == nil {
		return source
	}
	source.URI, source.Annotations = from.URI, map[string]any{"server": from.Server, "digest": from.Digest}
	if from.Run != "" {
		source.Annotations["run"] = from.Run
	}
	return source
}

// otherSources lists the files of the model that are not plan.Source: external data, and the
// further files of a source that was imported.
func otherSources(b making) []registry.Digest {
	var files []registry.Digest
	if b.Plan.Import == nil && len(b.Inputs.Model) > 0 {
		for _, in := range b.Inputs.Model[1:] {
			files = append(files, in.Digest)
		}
	}
	if p := b.Plan.Import; p != nil {
		for _, f := range p.Files {
			files = append(files, f.Digest)
		}
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(d registry.Digest) bool { return d == b.Plan.Source })
}

// calibrationOf lists the data that decided how an engine was quantized: the files that a step
// read, and the part of the sources that has them. It is empty, and not nil, for an engine
// without such data: restrictions read it, and what is not said counts as restricted.
func calibrationOf(b making, r stored, e BuiltEngine) []registry.Digest {
	data := []registry.Digest{}
	for _, s := range e.steps {
		for _, in := range s.Job.Inputs {
			switch in.Role {
			case toolchain.RoleCalibration, toolchain.RoleCases:
				data = append(data, in.Digest)
			case toolchain.RoleRanges: // a table that was made of the calibration
				for _, f := range b.Inputs.Calibration.Files {
					data = append(data, f.Digest)
				}
			}
		}
	}
	reads := func(f toolchain.Input) bool { return slices.Contains(data, f.Digest) }
	if r.calibration != "" && slices.ContainsFunc(b.Inputs.Calibration.Files, reads) {
		data = append(data, r.calibration)
	}
	slices.Sort(data)
	return slices.Compact(data)
}

// gitOf is the state of the repository; the zero GitOrigin where it was not read.
func gitOf(origin *evidence.Origin) evidence.GitOrigin {
	if origin == nil {
		return evidence.GitOrigin{}
	}
	return origin.Git
}

// repository is a commit as SLSA writes it. Source: https://slsa.dev/spec/v1.0/provenance#resourcedescriptor and
// https://github.com/in-toto/attestation/blob/main/spec/v1/digest_set.md.
func repository(git evidence.GitOrigin) run.Resource {
	said := map[string]any{"state": cmp.Or(git.State, "unknown")}
	if git.Ref != "" {
		said["ref"] = git.Ref
	}
	commit := run.Resource{Name: "repository", Digest: evidence.DigestSet{"gitCommit": git.Commit}, Annotations: said}
	if git.Repository != "" {
		commit.URI = "git+" + git.Repository
	}
	return commit
}

// internal are the parameters that the builder set, of a release and of its engines alike.
func internal(b making) map[string]any {
	all := map[string]any{"node": b.Node}
	if b.origin != nil {
		all["origin"] = b.origin
	}
	return all
}

// metadata are the times of the build, and its run.
func metadata(b making) Metadata {
	m := Metadata{StartedOn: b.began.UTC(), FinishedOn: b.env.Time().UTC()}
	if b.origin != nil {
		m.InvocationID = b.origin.CI.Run()
	}
	return m
}

// releaseProvenance says of a release as a whole where its spec came from, and which engines of the spec it was
// made without.
func releaseProvenance(b making, r artifact.Release) Provenance {
	left := make([]evidence.LeftOut, len(b.left))
	for i, e := range b.left {
		left[i] = evidence.LeftOut{Label: e.Label, Code: e.Code}
	}
	internal := internal(b)
	if len(left) > 0 {
		internal["leftOut"] = left
	}
	external, dependencies := map[string]any{"model": b.Plan.Model, "version": b.Plan.Version, "plan": b.Plan.Digest}, dependencies(b, r)
	if len(b.assembled) > 0 {
		external["assembled"] = assembly{b.parts.key}
		for _, part := range b.assembled {
			dependencies = append(dependencies, run.Resource{Name: "part", Digest: evidence.NewDigestSet(part)})
		}
	}
	return provenanceOf(b, external, internal, dependencies)
}

// provenanceOf is the provenance of what was made of parameters and dependencies.
func provenanceOf(b making, external, internal map[string]any, dependencies []run.Resource) Provenance {
	return Provenance{
		BuildDefinition: Definition{
			BuildType:            restriction.BuildType,
			ExternalParameters:   external,
			InternalParameters:   internal,
			ResolvedDependencies: dependencies,
		},
		RunDetails: RunDetails{
			Builder:  Builder{ID: builderID, Version: map[string]string{b.env.Tool.Name: b.env.Tool.Version}},
			Metadata: metadata(b),
		},
	}
}

// tools are what an engine was made with: lock files or images, and tuning records.
func (e BuiltEngine) tools() []run.Resource {
	var dependencies []run.Resource
	if e.Engine.Toolchain.Lock != "" {
		name := "toolchain lock"
		switch {
		case e.Tool.Identity.Image != "":
			name = "toolchain image"
		case e.Tool.Identity.Adopted:
			name = "toolchain packages"
		}
		dependencies = append(dependencies, run.Resource{Name: name, Digest: evidence.NewDigestSet(e.Engine.Toolchain.Lock)})
	}
	if q := e.planned.Quantizer; q != nil && q.Lock != "" {
		dependencies = append(dependencies, run.Resource{Name: "quantizer lock", Digest: evidence.NewDigestSet(q.Lock)})
	}
	if c := e.planned.Compressor; c != nil && c.Lock != "" {
		dependencies = append(dependencies, run.Resource{Name: "compressor lock", Digest: evidence.NewDigestSet(c.Lock)})
	}
	if lock := toolchain.FirstLock(e.planned.Compile); lock != "" {
		dependencies = append(dependencies, run.Resource{Name: "first toolchain lock", Digest: evidence.NewDigestSet(lock)})
	}
	for _, s := range e.steps {
		for _, in := range s.Job.Inputs {
			if in.Role == toolchain.RoleTuning {
				dependencies = append(dependencies, run.Resource{Name: "tuning record " + in.Name, Digest: evidence.NewDigestSet(in.Digest)})
			}
		}
	}
	return dependencies
}

// provenance says how an engine of a release was made.
func provenance(b making, r stored, e BuiltEngine) Provenance {
	dependencies := append(dependencies(b, r.Release), e.tools()...)
	internal := internal(b)
	maps.Copy(internal, map[string]any{
		"toolchain": e.Tool.Identity, "referenceLatency": b.golden.Latency, "made": e.made,
		"tied": e.tie, "loaded": e.loaded, "crossCheck": b.golden.CrossCheck,
	})
	if e.census != nil {
		internal["operators"] = e.census
	}
	if len(b.golden.LabelWarnings) > 0 {
		internal["labelWarnings"] = b.golden.LabelWarnings
	}
	if e.compression != nil {
		internal["compression"] = e.compression
	}
	if student := b.Inputs.Students[e.planned.Variant]; student != nil {
		dependencies = append(dependencies, ingest.StudentResources(student)...)
	}
	calibration := calibrationOf(b, r, e)
	internal["calibration"] = calibration
	for _, d := range calibration {
		dependencies = append(dependencies, run.Resource{Name: "calibration", Digest: evidence.NewDigestSet(d)})
	}
	taken := stepsOf(b, e)
	if p := b.Plan.Import; p != nil {
		internal["importer"] = b.Inputs.Imported.Importer()
		dependencies = append(dependencies, run.Resource{Name: "imported model", Digest: evidence.NewDigestSet(b.Inputs.Model[0].Digest)})
		if p.Toolchain.Lock != "" {
			dependencies = append(dependencies, run.Resource{Name: "importer lock", Digest: evidence.NewDigestSet(p.Toolchain.Lock)})
		}
	}
	external := map[string]any{
		"model": b.Plan.Model, "version": b.Plan.Version, "plan": b.Plan.Digest,
		"target": e.Engine.Target, "variant": e.Engine.Variant,
	}
	if len(e.Engine.Providers) > 0 {
		external["providers"] = e.Engine.Providers
	}
	steps := make([]run.Resource, len(taken))
	for i, s := range taken {
		steps[i] = s.Provenance()
	}
	said := provenanceOf(b, external, internal, dependencies)
	said.RunDetails.Metadata.Reproducible, said.RunDetails.Byproducts = reproducible(b, e), steps
	return said
}
