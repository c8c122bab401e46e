package defaults_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/defaults"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A table through which nothing shows is a table.
func TestOverNothing(t *testing.T) {
	t.Parallel()
	registrytest.TestTables(t, func(t *testing.T) registrytest.Tables {
		folder := defaults.Folder[artifact.Node]{Dir: filepath.Join(t.TempDir(), "none"), Read: node.ParseFile}
		return registrytest.Tables{
			NodeTypes: defaults.Over(mem.NewTable[artifact.Node](), folder),
			Runtimes:  defaults.Over(mem.NewTable[artifact.Runtime](), defaults.Documents[artifact.Runtime]{}),
		}
	})
}

func TestOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, n := range map[string]artifact.Node{"box": registrytest.Node("v1"), "a-b": registrytest.Node("v2"), "a": registrytest.Node("v2")} {
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"README": "no document", ".hidden.json": "{}", "broken.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table := defaults.Over(mem.NewTable[artifact.Node](), defaults.Folder[artifact.Node]{Dir: dir, Read: node.ParseFile})
	for name, level := range map[string]string{"big": "v4", "box": "v3"} {
		if err := table.Put(t.Context(), name, registrytest.Node(level)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(after string, limit int) []string {
		page, err := table.List(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, named := range page {
			got = append(got, named.Name+" "+named.Document.CPU.Level)
		}
		return got
	}
	want := []string{"a v2", "a-b v2", "big v4", "box v3"}
	if got := list("", 10); !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	if got := list("a", 2); !slices.Equal(got, want[1:3]) {
		t.Errorf("behind a stand %v", got)
	}
	if err := table.Delete(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	if got, err := table.Get(t.Context(), "box"); err != nil || got.CPU.Level != "v1" {
		t.Errorf("below is %+v, %v", got, err)
	}
	for name, code := range map[string]registry.Code{"box": registry.CodeConflict, "none": registry.CodeNotFound} {
		if err := table.Delete(t.Context(), name); registry.CodeOf(err) != code {
			t.Errorf("delete %s: %v, want %s", name, err, code)
		}
	}
}

func TestFolderRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := defaults.Folder[artifact.Node]{Dir: filepath.Join(dir, "."), Read: node.ParseFile}
	for name, code := range map[string]registry.Code{
		"broken": registry.CodeInternal, "none": registry.CodeNotFound, "../broken": registry.CodeInvalid,
		"a/b": registry.CodeNotFound, "": registry.CodeInvalid, ".x": registry.CodeInvalid, "a\x00": registry.CodeInvalid,
	} {
		if _, err := folder.Get(t.Context(), name); registry.CodeOf(err) != code {
			t.Errorf("%q: %v, want %s", name, err, code)
		}
	}
	if _, err := folder.List(t.Context(), "", 10); registry.CodeOf(err) != registry.CodeInternal {
		t.Errorf("a list with a broken document: %v", err)
	}
}

// What ships with the program is made of names and documents that are accepted.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	all, err := defaults.Runtimes().List(t.Context(), "", 1000)
	if err != nil || len(all) < 20 {
		t.Fatalf("%d runtimes, %v", len(all), err)
	}
	for _, r := range all {
		data, err := json.Marshal(r.Document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.ParseRuntimeDocument(r.Name, data); err != nil || registry.ValidateName(r.Name) != nil {
			t.Errorf("%s: %v, %v", r.Name, err, registry.ValidateName(r.Name))
		}
	}
}
