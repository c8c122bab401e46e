package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// A model names files beside it by their size; what is no file, such as a folder, a link or nothing, has none.
func TestOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"file": 5, "link": -1, ".": -1, "none": -1} {
		size, ok := onDisk(filepath.Join(dir, name))
		if ok != (want >= 0) || ok && size != want {
			t.Errorf("%s: got %d, %t; want %d", name, size, ok, want)
		}
	}
}

// The entry of a part is the one file of the engine that the runtime loads in some form; assets and libraries of operators are
// none, and of two files nobody says which is loaded.
func TestEntryOfAPart(t *testing.T) {
	t.Parallel()
	profile := toolchain.Profile{Name: "openvino", Format: "ir", Entry: "model.xml", Forms: []toolchain.Form{{Name: "blob", Format: "blob", Entry: "model.blob"}}}
	file := func(name string, kind artifact.FileKind) artifact.File { return artifact.File{Path: name, Kind: kind} }
	for name, c := range map[string]struct {
		files []artifact.File
		entry string // empty: it is refused
	}{
		"the first form":         {[]artifact.File{file("model.xml", ""), file("model.bin", "")}, "model.xml"},
		"another form":           {[]artifact.File{file("model.blob", "")}, "model.blob"},
		"an asset":               {[]artifact.File{file("model.blob", artifact.FileAsset), file("model.xml", "")}, "model.xml"},
		"a library of operators": {[]artifact.File{file("model.xml", artifact.FileCode), file("model.blob", "")}, "model.blob"},
		"both":                   {[]artifact.File{file("model.xml", ""), file("model.blob", "")}, ""},
		"none":                   {[]artifact.File{file("model.bin", "")}, "model.xml"},
	} {
		for range 20 { // the forms are in a map
			got, err := Material{Files: c.files}.entryOf(profile, "engine-0")
			if c.entry != "" && (err != nil || got.Entry != c.entry) || c.entry == "" && !registry.HasCode(err, registry.CodeInvalid) {
				t.Fatalf("%s: %s, error %v; want %q", name, got.Entry, err, c.entry)
			}
			if err != nil && !strings.Contains(err.Error(), "engine-0 has the files model.blob and model.xml, of which openvino loads one") {
				t.Fatalf("%s: error %v", name, err)
			}
		}
	}
}
