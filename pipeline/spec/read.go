package spec

import (
	"errors"
	"io/fs"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Options say what a spec may name. The zero Options allow the least.
type Options struct {
	Toolchains []string // that targets may name beside those of [Toolchains]
	// Private are folders into which no path of the spec may lead: the data directory and
	// the keys. They need not exist.
	Private []string
}

// Load reads and checks the spec in the file path. All files that it names must be below its
// folder. Errors: CodeInvalid, with file:line:column for every mistake, or with a hint if
// there is no such file; CodeInternal if it cannot be read.
func Load(path string, o Options) (*Spec, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = registry.Errorf(registry.CodeInvalid, "%s: no such file", path)
		return nil, registry.WithHint(err, "write one with: mlpromote init MODEL.onnx, or name one with -f")
	case registry.HasCode(err, registry.CodeInvalid):
		return nil, err
	case err != nil:
		return nil, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	files, err := confined.New(filepath.Dir(path), "the folder of the spec", o.Private...)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", path, err)
	}
	s := &Spec{File: path, Files: files}
	doc, err := strictyaml.Decode(path, data, s)
	if err != nil {
		return nil, err
	}
	s.complete()
	c := checker{Spec: s, doc: doc, others: o.Toolchains}
	c.check()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	s.doc = doc
	return s, nil
}

// complete fills in what the short forms leave out.
func (s *Spec) complete() {
	for i := range s.Variants {
		s.Variants[i].complete()
	}
	for i := range s.Tune.Variants {
		s.Tune.Variants[i].complete()
	}
	for i := range s.Targets {
		s.Targets[i].complete(s.Variants)
	}
}
