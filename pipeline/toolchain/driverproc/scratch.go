package driverproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// scratch is the private directory of one job: in/<role>/<name> has the inputs, work is the
// working directory, tmp replaces /tmp, answer is for the response.
type scratch struct {
	held   *tempdir.Dir
	dir    string // the same without symbolic links
	inputs []input
}

type input struct {
	toolchain.Input
	staged string
	solid  bool // no symbolic link
	before fs.FileInfo
}

func newScratch() (*scratch, error) {
	held, err := tempdir.New("job")
	if err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(held.Path)
	if err != nil {
		return nil, errors.Join(err, held.Remove())
	}
	s := &scratch{held: held, dir: dir}
	for _, folder := range []string{s.in(), s.work(), s.temp(), s.answer()} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, errors.Join(err, s.remove())
		}
	}
	return s, nil
}

func (s *scratch) in() string { return filepath.Join(s.dir, "in") }

func (s *scratch) work() string { return filepath.Join(s.dir, "work") }

func (s *scratch) temp() string { return filepath.Join(s.dir, "tmp") }

func (s *scratch) answer() string { return filepath.Join(s.dir, "answer") }

func (s *scratch) response() string { return filepath.Join(s.answer(), "response.json") }

func (s *scratch) progress() string { return filepath.Join(s.answer(), "progress") }

func (s *scratch) role(r string) string { return filepath.Join(s.in(), r) }

func (s *scratch) remove() error { return s.held.Remove() }

func (s *scratch) path(r, n string) string { return filepath.Join(s.role(r), filepath.FromSlash(n)) }

// stage returns the paths at which the driver will see the inputs. Names there are those of the
// inputs, not those of the user's files. Errors: CodeDigest for an input of another size than
// announced, or a file other than the one that was hashed.
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
		info, err := statInput(in)
		if err != nil {
			return err
		}
		if info.Size() != in.Size {
			return registry.Errorf(registry.CodeDigest,
				"input %s/%s: %s is %d bytes, expected a file of %d", in.Role, in.Name, in.Path, info.Size(), in.Size)
		}
		staged := input{in, s.path(in.Role, in.Name), files[in.Role] > 1 && in.Role == toolchain.RoleModel, info}
		staged.Path = target
		s.inputs = append(s.inputs, staged)
	}
	return nil
}

// statInput opens the file of an input, which checks that it is the file that was hashed.
func statInput(in toolchain.Input) (fs.FileInfo, error) {
	f, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// files returns the inputs for a sandbox.
func (s *scratch) files() []sandbox.File {
	files := make([]sandbox.File, len(s.inputs))
	for i, in := range s.inputs {
		files[i] = sandbox.FileOf(in.before, in.Path, in.staged, in.solid)
	}
	return files
}

// unchanged checks that no input was modified. If the driver worked on the user's file, it
// checks size and time; if on a copy, it checks the copy.
func (s *scratch) unchanged(e toolchain.Enforced) error {
	for _, in := range s.inputs {
		now, err := os.Stat(in.Path)
		same := err == nil && os.SameFile(now,
			in.before) && now.Size() == in.before.Size() && now.ModTime().Equal(in.before.ModTime())
		if same && e.Inputs == toolchain.InputsCopied {
			d, _, err := toolchain.HashFile(in.staged)
			same = err == nil && d == in.Digest
		}
		if !same {
			return registry.Errorf(registry.CodeInternal, "the driver wrote to its input %s/%s (%s)", in.Role, in.Name, in.Path)
		}
	}
	return nil
}
