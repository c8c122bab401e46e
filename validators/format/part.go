package format

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CheckPart looks at the bytes of every file of a part, whose files are in dir, as [Gate.Check] does.
// Native code passes if the part declares it. Errors: those of [Gate.Check], with the
// name of the file in the part.
func CheckPart(dir string, part storage.FetchedPart) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	sizes := make(map[string]int64, len(part.Files))
	for _, f := range part.Files {
		sizes[f.Path] = f.Size
	}
	for _, f := range part.Files {
		g := Gate{NativeCode: part.Engine.NativeCode || f.Kind == artifact.FileCode}
		g.Beside = func(name string) (int64, bool) { size, ok := sizes[path.Clean(name)]; return size, ok }
		if err := g.checkIn(root, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// checkIn checks the file of that name in a folder.
func (g Gate) checkIn(root *os.Root, name string) error {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return g.Check(name, f, info.Size())
}
