package origin

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's own identifiers
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree is the working tree of a repository.
type tree struct {
	git git
	top string // absolute
}

// entry is a tracked file as the index has it.
type entry struct{ mode, object string }

// changed lists the tracked files that differ from HEAD, and the used files that are not tracked, relative to top.
func (t tree) changed(ctx context.Context, used []string) ([]string, error) {
	var err error
	if t.git, err = t.git.withoutFilters(ctx); err != nil {
		return nil, err
	}
	index, err := t.index(ctx)
	if err != nil {
		return nil, err
	}
	differs := make(map[string]bool)
	staged, err := t.names(ctx, "diff-index", "--cached", "HEAD")
	if err != nil {
		return nil, err
	}
	for _, name := range staged {
		differs[name] = true
	}
	// These have another time or size than when git last looked. Their content decides.
	touched, err := t.names(ctx, "diff-files")
	if err != nil {
		return nil, err
	}
	for _, name := range touched {
		same, err := t.same(ctx, name, index[name])
		if err != nil {
			return nil, err
		}
		if !same {
			differs[name] = true
		}
	}
	untracked, err := t.untracked(used, index)
	if err != nil {
		return nil, err
	}
	for _, name := range untracked {
		differs[name] = true
	}
	var all []string
	for name := range differs {
		all = append(all, name)
	}
	return all, nil
}

// index lists tracked files.
func (t tree) index(ctx context.Context) (map[string]entry, error) {
	out, err := t.git.run(ctx, "-C", t.top, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	all := make(map[string]entry)
	for _, line := range fields(out) { // MODE OBJECT STAGE\tNAME
		about, name, ok := strings.Cut(line, "\t")
		words := strings.Fields(about)
		if !ok || len(words) != 3 {
			return nil, fmt.Errorf("git ls-files printed %.100q", line)
		}
		all[name] = entry{words[0], words[1]}
	}
	return all, nil
}

// names runs a command that compares, and lists the names of what differs.
func (t tree) names(ctx context.Context, command string, args ...string) ([]string, error) {
	all := append([]string{"-C", t.top, command, "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"}, args...)
	out, err := t.git.run(ctx, all...)
	return fields(out), err
}

// same reports whether a file is what the index has: the same bytes, or the bytes of which the index has a pointer of
// git LFS.
func (t tree) same(ctx context.Context, name string, e entry) (bool, error) {
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return false, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(e.mode, "100") {
		return false, err // links and submodules that differ by their time count as changed
	}
	if executable := info.Mode()&0o100 != 0; executable != (e.mode == "100755") {
		return false, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	object, content := hashOf(e.object), sha256.New()
	fmt.Fprintf(object, "blob %d\x00", info.Size())
	if _, err := io.Copy(io.MultiWriter(object, content), f); err != nil {
		return false, err
	}
	if hex.EncodeToString(object.Sum(nil)) == e.object {
		return true, nil
	}
	return t.pointsTo(ctx, e.object, hex.EncodeToString(content.Sum(nil)))
}

// hashOf is the hash that made an object's identifier.
func hashOf(object string) hash.Hash {
	if len(object) == 2*sha256.Size {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // as git has it
}

// pointer begins an object that stands for a file of git LFS. Source:
// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
const pointer = "version https://git-lfs.github.com/spec/v1\n"

// pointsTo reports whether an object is a pointer of git LFS to content with a SHA-256.
func (t tree) pointsTo(ctx context.Context, object, content string) (bool, error) {
	size, err := t.git.line(ctx, "cat-file", "-s", object)
	if err != nil || len(size) > 4 { // a pointer has less than 1024 bytes
		return false, err
	}
	text, err := t.git.run(ctx, "cat-file", "blob", object)
	return err == nil && strings.HasPrefix(string(text), pointer) && strings.Contains(string(text), "\noid sha256:"+content+"\n"), err
}

// untracked lists the used files that are not tracked.
func (t tree) untracked(used []string, index map[string]entry) ([]string, error) {
	var all []string
	for _, path := range used {
		found, err := files(path)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			name, err := filepath.Rel(t.top, file)
			if err != nil || !filepath.IsLocal(name) {
				return nil, fmt.Errorf("%s is not in the repository", file)
			}
			if _, ok := index[filepath.ToSlash(name)]; !ok {
				all = append(all, filepath.ToSlash(name))
			}
		}
	}
	return all, nil
}
