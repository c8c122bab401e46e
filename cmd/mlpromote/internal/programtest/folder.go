package programtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Example makes dir a copy of an example of the repository; an empty name is all of them.
// What the example's own use left in it stays there.
func Example(name, dir string) error {
	return copyTree(Root("examples", name), dir, copyFile, ".mlpromote", "pulled")
}

// Digits makes dir a copy of the digits example with one of its two targets, and int8 as the variant that nodes get.
func Digits(dir string) error {
	if err := Example("digits", dir); err != nil {
		return err
	}
	return editSpec(dir, func(line string) string {
		switch {
		case strings.Contains(line, "linux/amd64/v3"), line == "  - fp32\n":
			return ""
		case strings.HasPrefix(line, "  - {name: int8"):
			return line + "  - fp32\n"
		}
		return line
	})
}

// editSpec replaces each line, with its end, of the spec in a folder.
func editSpec(dir string, edit func(line string) string) error {
	path := filepath.Join(dir, "mlpromote.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var edited strings.Builder
	for line := range strings.Lines(string(data)) {
		edited.WriteString(edit(line))
	}
	return os.WriteFile(path, []byte(edited.String()), 0o600)
}

// CopyTree copies folders, files and their permissions.
func CopyTree(from, to string) error { return copyTree(from, to, copyFile) }

// LinkTree is like [CopyTree], but files that match keep, which gets their path, are hard links: for folders with
// many files that their owner replaces and never writes again, such as blobs. Who changes one has to replace it too.
func LinkTree(from, to string, keep func(path string) bool) error {
	return copyTree(from, to, func(path, target string, entry os.DirEntry) error {
		if keep(path) {
			return os.Link(path, target)
		}
		return copyFile(path, target, entry)
	})
}

func copyFile(path, target string, entry os.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(target, data, info.Mode().Perm())
}

func copyTree(from, to string, file func(path, target string, entry os.DirEntry) error, except ...string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(except, entry.Name()) {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return file(path, target, entry)
	})
}
