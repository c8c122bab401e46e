package run

import (
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Name is what messages call the engine.
func (c Candidate) Name() string {
	if c.ID == ReferenceID {
		return "the reference"
	}
	return c.Engine.Label()
}

// Same reports whether another candidate has the same bytes, and runs as they do.
func (c Candidate) Same(other Candidate) bool {
	within := func(in toolchain.Input) string {
		_, name, _ := strings.Cut(in.Name, "/") // in the folder of the candidate
		return name
	}
	return c.Engine.Precision == other.Engine.Precision && c.Tool.LoadsAlike(c.Engine, other.Tool, other.Engine) &&
		slices.EqualFunc(c.Model.Inputs, other.Model.Inputs, func(a, b toolchain.Input) bool {
			return within(a) == within(b) && a.Digest == b.Digest
		})
}

// Candidate is an engine that runs here.
type Candidate struct {
	ID     string // names it among the engines of a run
	Engine artifact.Engine
	Tool   Tool
	Model  Loadable
}

// Material is a part that was fetched.
type Material struct {
	Ref   storage.PartRef
	Dir   string
	Files []artifact.File
	Set   *artifact.CaseSet
}

// Inputs names the files of a fetched part as the inputs of a job.
func (m Material) Inputs(role string) []toolchain.Input {
	inputs := make([]toolchain.Input, len(m.Files))
	for i, f := range m.Files {
		inputs[i] = toolchain.Input{Role: role, Name: f.Path,
			Path: filepath.Join(m.Dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
	}
	return inputs
}
