package ingest

import (
	"os"
	"path"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// specFiles opens what a spec names, and is the only thing in this package that does: see
// docs/decisions/0022-what-a-spec-may-name.md.
type specFiles struct{ confined.Folder }

// input opens the file of a path in a spec, lets check look at it, and hashes it, all of
// the same open file. Errors: those of Open and of check.
func (n specFiles) input(written, role, name string, check func(*os.File) error) (toolchain.Input, error) {
	f, err := n.Open(written)
	if err != nil {
		return toolchain.Input{}, err
	}
	defer f.Close()
	if check != nil {
		if err := check(f); err != nil {
			return toolchain.Input{}, err
		}
	}
	return toolchain.InputOf(role, name, f)
}

// look opens the file of a path in a spec for check alone.
func (n specFiles) look(written string, check func(*os.File) error) error {
	f, err := n.Open(written)
	if err != nil {
		return err
	}
	defer f.Close()
	return check(f)
}

// beside is the path of a file that another one, at the path written, names: it starts
// from the folder of that.
func beside(written, name string) string { return path.Join(path.Dir(written), name) }

// inside puts a code before an error of what the spec names there.
func inside(where string, err error) error {
	if err == nil {
		return nil
	}
	return registry.Errorf(registry.CodeOf(err), "%s: %w", where, err)
}
