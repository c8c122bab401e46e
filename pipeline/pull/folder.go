package pull

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// maxPulledDocument bounds the size of a pulled folder's record, manifest and bundles.
const maxPulledDocument = 4 << 20

// pulledFolder lists a folder that Pull made, at one moment: only regular files and folders. It
// follows no link, and reads a file only if it is still the one that was listed.
type pulledFolder struct {
	dir   string
	root  *os.Root
	found map[string]fs.FileInfo // by path with '/', folders too
}

// openPulled lists a folder. The caller closes its root. Errors: CodeInvalid if it is not a
// folder; CodeTrust if something in it is neither a file nor a folder.
func openPulled(dir string) (*pulledFolder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s was not made by pull: %w", dir, err)
	}
	f := &pulledFolder{dir: dir, root: root, found: make(map[string]fs.FileInfo)}
	if err := f.scan(root, ""); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// scan lists a folder, at a path of the pulled one.
func (f *pulledFolder) scan(folder *os.Root, at string) error {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
	}
	for _, e := range entries {
		name := path.Join(at, e.Name())
		info, err := folder.Lstat(e.Name())
		if err != nil {
			return registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return registry.Errorf(registry.CodeTrust, "%s: %s is neither a file nor a folder, and no pull made it: pull again", f.dir, name)
		}
		f.found[name] = info
		if !info.IsDir() {
			continue
		}
		if err := f.scanFolder(folder, e.Name(), name, info); err != nil {
			return err
		}
	}
	return nil
}

// scanFolder scans a folder inside another, if it is still the one that was listed.
func (f *pulledFolder) scanFolder(parent *os.Root, base, name string, seen fs.FileInfo) error {
	folder, err := parent.OpenRoot(base)
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
	}
	defer folder.Close()
	if now, err := folder.Stat("."); err != nil || !os.SameFile(seen, now) {
		return f.exchanged(name)
	}
	return f.scan(folder, name)
}

func (f *pulledFolder) exchanged(name string) error {
	return registry.Errorf(registry.CodeTrust, "%s: %s was exchanged while it was looked at", f.dir, name)
}

// open opens a listed file. Errors: CodeDigest if it does not exist; CodeTrust if it is another
// file now.
func (f *pulledFolder) open(name string) (*os.File, error) {
	seen, ok := f.found[name]
	if !ok || seen.IsDir() {
		return nil, registry.Errorf(registry.CodeDigest, "%s: file %s is missing: pull again", f.dir, name)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
	}
	if now, err := file.Stat(); err != nil || !os.SameFile(seen, now) {
		return nil, errors.Join(f.exchanged(name), file.Close())
	}
	return file, nil
}

// read reads a file of .mlpromote.
func (f *pulledFolder) read(name string) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPulledDocument+1))
	if err == nil && len(data) > maxPulledDocument {
		err = fmt.Errorf("%s: want at most %d bytes", name, maxPulledDocument)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
	}
	return data, nil
}

// record reads the record of the pull. Errors: CodeInvalid if there is none.
func (f *pulledFolder) record() (Record, error) {
	name := path.Join(Dir, pulledRecord)
	if _, ok := f.found[name]; !ok {
		return Record{}, registry.Errorf(registry.CodeInvalid, "%s was not made by pull: it has no %s", f.dir, name)
	}
	data, err := f.read(name)
	if err != nil {
		return Record{}, err
	}
	return parseRecord(f.dir, data)
}

// check compares the folder with the manifest of the engine: every file exists with its digest,
// and there are no others. It returns the description in the manifest.
func (f *pulledFolder) check(engine registry.Digest, read func([]byte) (storage.FetchedPart, error)) (storage.FetchedPart, error) {
	manifest, err := f.read(path.Join(Dir, pulledManifest))
	if err != nil {
		return storage.FetchedPart{}, err
	}
	if got := digest.FromBytes(manifest); got != engine {
		return storage.FetchedPart{}, registry.Errorf(registry.CodeDigest, "%s: the manifest is %s, and %s was pulled: pull again", f.dir, got, engine)
	}
	part, err := read(manifest)
	if err != nil {
		return storage.FetchedPart{}, err
	}
	if part.Role != artifact.PartEngine {
		return storage.FetchedPart{}, registry.Errorf(registry.CodeTrust,
			"%s: its manifest is a part with the role %q, want an engine", f.dir, part.Role)
	}
	if err := f.strangers(part); err != nil {
		return storage.FetchedPart{}, err
	}
	for _, file := range part.Files {
		if err := f.checkFile(file); err != nil {
			return storage.FetchedPart{}, err
		}
	}
	return part, nil
}

// strangers refuses files that are not in the manifest.
func (f *pulledFolder) strangers(part storage.FetchedPart) error {
	expected := expectedPaths(part)
	for _, name := range slices.Sorted(maps.Keys(f.found)) {
		folder := f.found[name].IsDir()
		if isFolder, known := expected[name]; known && isFolder == folder || !folder && isBundle(name) {
			continue
		}
		kind := "file"
		if folder {
			kind = "folder"
		}
		return registry.Errorf(registry.CodeTrust, "%s: %s %s is not part of the pulled engine", f.dir, kind, name)
	}
	return nil
}

func (f *pulledFolder) checkFile(want artifact.File) error {
	if want.Path == Dir || strings.HasPrefix(want.Path, Dir+"/") {
		return registry.Errorf(registry.CodeTrust, "%s: the engine has a file %s, where pull keeps its own", f.dir, want.Path)
	}
	file, err := f.open(want.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	got, err := want.Digest.Algorithm().FromReader(file)
	if err != nil {
		return registry.Errorf(registry.CodeTrust, "%s: %w", f.dir, err)
	}
	if got != want.Digest {
		return registry.Errorf(registry.CodeDigest, "%s: file %s differs from the pulled one (%s): pull again", f.dir, want.Path, want.Digest)
	}
	return nil
}

// bundles reads the evidence of the folder, by the digest that names its manifest.
func (f *pulledFolder) bundles() (map[registry.Digest][]byte, error) {
	bundles := make(map[registry.Digest][]byte)
	for _, name := range slices.Sorted(maps.Keys(f.found)) {
		if !isBundle(name) {
			continue
		}
		data, err := f.read(name)
		if err != nil {
			return nil, err
		}
		hex := strings.TrimSuffix(path.Base(name), bundleSuffix)
		bundles[digest.NewDigestFromEncoded(digest.SHA256, hex)] = data
	}
	return bundles, nil
}

// bundleSuffix ends the names of files with evidence.
const bundleSuffix = ".sigstore.json"

// isBundle reports whether a path is that of a file with evidence.
func isBundle(name string) bool {
	matches, _ := path.Match(path.Join(Dir, pulledBundles, "*"+bundleSuffix), name)
	return matches
}

// expectedPaths returns the paths that Pull creates for an engine, except the evidence, and
// whether each is a folder.
func expectedPaths(part storage.FetchedPart) map[string]bool {
	files := []string{path.Join(Dir, pulledRecord), path.Join(Dir, pulledManifest)}
	for _, f := range part.Files {
		files = append(files, f.Path)
	}
	expected := map[string]bool{path.Join(Dir, pulledBundles): true}
	for _, f := range files {
		expected[f] = false
		for above := path.Dir(f); above != "." && above != "/"; above = path.Dir(above) {
			expected[above] = true
		}
	}
	return expected
}
