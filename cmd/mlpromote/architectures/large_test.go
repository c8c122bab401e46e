//go:build cgo && linux

package architectures

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry/node"
)

// architectures are those of testdata/export.py, the quickest first.
var architectures = []string{"lstm", "crnn", "vit", "encoder", "unet", "mobilenet", "resnet", "efficientnet"}

// runtimes are those that run engines on this kind of machine.
var runtimes = []string{"onnxruntime", "openvino", "onnxruntime-openvino", "iree", "litert", "onnxruntime-web"}

// TestLargeArchitectures is the long form. MLPROMOTE_ARCHITECTURES is a folder for models and results, from which
// it goes on where it was stopped: remove the results of an architecture and a runtime to run them again.
// MLPROMOTE_ARCHITECTURES_ONLY names some as ARCHITECTURE or ARCHITECTURE/RUNTIME, and
// MLPROMOTE_ARCHITECTURES_PAGE the page that it writes.
func TestLargeArchitectures(t *testing.T) {
	folder := os.Getenv("MLPROMOTE_ARCHITECTURES")
	if folder == "" && os.Getenv("MLPROMOTE_LARGE") == "" {
		t.Skip("the long form runs by make test-large and make architectures")
	}
	if folder == "" {
		folder = t.TempDir()
	}
	e := newExporter(t, folder)
	var all []record
	for _, architecture := range architectures {
		for _, runtime := range runtimes {
			if !wanted(architecture, runtime) {
				continue
			}
			t.Run(architecture+"/"+runtime, func(t *testing.T) {
				all = append(all, one(t, e, folder, architecture, runtime)...)
			})
		}
	}
	if path := os.Getenv("MLPROMOTE_ARCHITECTURES_PAGE"); path != "" {
		writePage(t, path, everyRecord(t, filepath.Join(folder, e.of, "results")))
	}
	check(t, all)
}

func wanted(architecture, runtime string) bool {
	only := strings.Fields(os.Getenv("MLPROMOTE_ARCHITECTURES_ONLY"))
	return len(only) == 0 || slices.Contains(only, architecture) || slices.Contains(only, architecture+"/"+runtime)
}

// one runs an architecture on a runtime, or finds what came of it before.
func one(t *testing.T, e exporter, folder, architecture, runtime string) []record {
	t.Helper()
	path := filepath.Join(folder, e.of, "results", architecture+"-"+runtime+".json")
	if all := kept(t, path); all != nil {
		return all
	}
	if _, err := (&install.Installer{Root: programtest.Cache(t)}).Find(runtime); err != nil {
		t.Skip(err)
	}
	r := &release{architecture: architecture, runtime: runtime, model: e.model(t, folder, architecture), dir: t.TempDir(), variants: everyVariant}
	r.cache = sharedCache(t, filepath.Join(folder, e.of, architecture, "cache"))
	began := time.Now()
	all := r.run(t)
	keep(t, path, all)
	fmt.Fprintf(os.Stderr, "%s on %s: %v\n", architecture, runtime, time.Since(began).Round(time.Second))
	return all
}

// sharedCache is an MLPROMOTE_CACHE of its own, with the installs of the one that tests share.
func sharedCache(t *testing.T, folder string) string {
	t.Helper()
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = os.Symlink(filepath.Join(programtest.Cache(t), "toolchains"), filepath.Join(folder, "toolchains"))
	}
	if err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return folder
}

// check says what must hold whatever a runtime can do: what passed, loads plainly and gives what torch gives; what
// did not come about has its reason; and ONNX Runtime takes every architecture in fp32.
func check(t *testing.T, all []record) {
	t.Helper()
	for _, r := range all {
		name := r.Architecture + " " + r.Runtime + " " + r.Variant
		switch {
		case r.built() && !r.verified() && r.Reason == "":
			t.Errorf("%s: verdict %q without a reason", name, r.Verdict)
		case r.verified() && !r.pulled():
			t.Errorf("%s: passed and was not pulled: %s", name, r.Pulled)
		case r.pulled() && !r.agrees():
			t.Errorf("%s: passed, and a plain load gives other outputs than torch, or none: %v", name, r.Plain)
		case r.Runtime == "onnxruntime" && r.Variant == "fp32" && !r.pulled():
			t.Errorf("%s: %s%s, want a pass", name, r.Error, r.Reason)
		}
	}
}

// everyRecord reads the results that there are, in the order of the page.
func everyRecord(t *testing.T, folder string) []record {
	t.Helper()
	var all []record
	for _, architecture := range architectures {
		for _, runtime := range runtimes {
			all = append(all, kept(t, filepath.Join(folder, architecture+"-"+runtime+".json"))...)
		}
	}
	return all
}

// writePage writes docs/validation-architectures.md.
func writePage(t *testing.T, path string, all []record) {
	t.Helper()
	versions := make(map[string]string)
	for _, r := range all {
		if versions[r.Runtime] != "" {
			continue
		}
		found, err := (&install.Installer{Root: programtest.Cache(t)}).Find(r.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		versions[r.Runtime] = r.Runtime + " " + found.Version
	}
	machine, err := node.Describe(t.Context(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, runtime := range runtimes {
		if versions[runtime] != "" {
			listed = append(listed, versions[runtime])
		}
	}
	made := fmt.Sprintf("on %s, with %s,\non %s", time.Now().UTC().Format(time.DateOnly), strings.Join(listed, ", "), machine.Kind())
	if err := os.WriteFile(path, []byte(page(all, made)), 0o644); err != nil {
		t.Fatal(err)
	}
}
