package child

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// scratch is the private directory of one job: in/<role>/<name> are the inputs,
// work is the working directory, response.json the answer.
type scratch struct {
	dir    string
	inputs []input
}

type input struct {
	toolchain.Input
	staged string
	before fs.FileInfo
}

func newScratch() (*scratch, error) {
	dir, err := os.MkdirTemp("", "mlpromote-")
	if err != nil {
		return nil, err
	}
	s := &scratch{dir: dir}
	if err := os.Mkdir(s.work(), 0o700); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

func (s *scratch) work() string            { return filepath.Join(s.dir, "work") }
func (s *scratch) response() string        { return filepath.Join(s.dir, "response.json") }
func (s *scratch) role(r string) string    { return filepath.Join(s.dir, "in", r) }
func (s *scratch) remove() error           { return os.RemoveAll(s.dir) }
func (s *scratch) path(r, n string) string { return filepath.Join(s.role(r), filepath.FromSlash(n)) }

// stage lays the inputs out under their names, whatever they are called where they
// lie. A model of several files is linked or copied, since runtimes refuse external
// data that a symbolic link leads out of the model's folder. Errors: CodeDigest for
// an input of another size than announced.
func (s *scratch) stage(inputs []toolchain.Input) error {
	files := make(map[string]int)
	for _, in := range inputs {
		files[in.Role]++
	}
	for _, in := range inputs {
		target, err := filepath.EvalSymlinks(in.Path)
		if err != nil {
			return err
		}
		if target, err = filepath.Abs(target); err != nil {
			return err
		}
		info, err := os.Stat(target)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() != in.Size {
			return registry.Errorf(registry.CodeDigest, "input %s/%s: %s is %d bytes, expected a file of %d", in.Role, in.Name, in.Path, info.Size(), in.Size)
		}
		staged := input{in, s.path(in.Role, in.Name), info}
		staged.Path = target
		if err := staged.place(files[in.Role] > 1 && in.Role == toolchain.RoleModel); err != nil {
			return err
		}
		s.inputs = append(s.inputs, staged)
	}
	return nil
}

func (in input) place(solid bool) error {
	if err := os.MkdirAll(filepath.Dir(in.staged), 0o700); err != nil {
		return err
	}
	if !solid {
		return os.Symlink(in.Path, in.staged)
	}
	if os.Link(in.Path, in.staged) == nil {
		return nil
	}
	return copyFile(in.Path, in.staged)
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// unchanged checks as far as it is cheap that no input was written to.
func (s *scratch) unchanged() error {
	for _, in := range s.inputs {
		now, err := os.Stat(in.Path)
		if err != nil || now.Size() != in.before.Size() || !now.ModTime().Equal(in.before.ModTime()) {
			return registry.Errorf(registry.CodeInternal, "the driver wrote to its input %s/%s (%s)", in.Role, in.Name, in.Path)
		}
	}
	return nil
}
