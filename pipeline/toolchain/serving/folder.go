package serving

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// folder is an exported folder: what a server reads.
type folder struct {
	path  string
	files []toolchain.OutputFile // as they were exported
}

// nameOf returns the name of the input of role model at a path, which is what a request of mlpromote.driver/v1 has of an engine.
func nameOf(inputs []driverproc.RequestInput, path string) string {
	for _, in := range inputs {
		if in.Role == toolchain.RoleModel && in.Path == path {
			return in.Name
		}
	}
	return path
}

// export makes the folder of a server at a path, with the engine that has an entry. If blank is true, the bytes of the engine's files are zeros.
func export(c Config, inputs []driverproc.RequestInput, entry, at string, blank bool) (folder, error) {
	id, _, _ := strings.Cut(entry, "/") // files of an engine are in the folder of its name
	engines := 0
	for _, in := range inputs {
		var name string
		ofEngine := false
		switch in.Role {
		case RoleServer:
			name = in.Name
		case toolchain.RoleModel:
			of, file, found := strings.Cut(in.Name, "/")
			if !found || of != id {
				continue
			}
			name, ofEngine = path.Join(c.Engine, file), true
			engines++
		default:
			continue
		}
		to := filepath.Join(at, filepath.FromSlash(name))
		if err := place(in.Path, to, ofEngine && blank); err != nil {
			if os.IsExist(err) {
				err = fmt.Errorf("%s is both in the folder of the server and a file of the engine: take it out of the folder", name)
			}
			return folder{}, driverproc.Errorf(driverproc.BadInput, "export the folder of the server: %v", err)
		}
	}
	if engines == 0 {
		return folder{}, driverproc.Errorf(driverproc.BadInput, "no input of role model belongs to %s", entry)
	}
	files, err := toolchain.Collect(at)
	return folder{at, files}, err
}

// place copies a file, or writes as many zeros.
func place(from, to string, blank bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if blank {
		err = out.Truncate(info.Size())
	} else {
		_, err = io.Copy(out, in)
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// changed names a file that differs from what was exported; empty for none. New files count: a server that compiles the engine anew leaves
// some. Python's copies of its own modules do not.
func (f folder) changed() (string, error) {
	now, err := toolchain.Collect(f.path)
	if err != nil {
		return "", err
	}
	for _, file := range now {
		if strings.Contains("/"+file.Name, "/__pycache__/") {
			continue
		}
		at := slices.IndexFunc(f.files, func(was toolchain.OutputFile) bool { return was.Name == file.Name })
		if at < 0 || f.files[at].Digest != file.Digest {
			return file.Name, nil
		}
	}
	for _, was := range f.files {
		if !slices.ContainsFunc(now, func(file toolchain.OutputFile) bool { return file.Name == was.Name }) {
			return was.Name, nil
		}
	}
	return "", nil
}

// inputs returns the inputs of a role, in the order of the request.
func inputs(r driverproc.Request, role string) []driverproc.RequestInput {
	return slices.DeleteFunc(slices.Clone(r.Inputs), func(in driverproc.RequestInput) bool { return in.Role != role })
}
