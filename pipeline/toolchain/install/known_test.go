package install_test

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry"
)

// Known returns the version and lock of a later install, and nothing that can run.
func TestKnown(t *testing.T) {
	t.Parallel()
	installer, pips := newFake(t, "3.12.1", "", "")
	known, bytes, err := installer.Known(name)
	if err != nil || bytes < 100<<20 {
		t.Fatalf("known %+v, %d bytes (%v), want at least 100 MiB", known, bytes, err)
	}
	found, err := installer.Find(name)
	if err != nil || found.Version != known.Version || found.Lock != known.Lock {
		t.Errorf("found %+v (%v), want %+v", found, err, known)
	}
	if _, err := install.Hold(t.Context(), found); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("hold a toolchain that is not installed: error %v, want %s", err, registry.CodeUnavailable)
	}
	made, err := (&install.Installer{Root: installer.Root, Python: installer.Python}).Install(t.Context(), name, nil)
	if err != nil || made.Version != known.Version || made.Lock != known.Lock {
		t.Errorf("installed %+v (%v), want the version and lock of %+v; pip's calls are in %s", made, err, known, pips)
	}
	if _, _, err := installer.Known("caffe"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an unknown toolchain: error %v, want %s", err, registry.CodeNotFound)
	}
}

// The sizes and versions in messages are those of real installs, as far as this machine has
// any.
func TestInstalledSizes(t *testing.T) {
	t.Parallel()
	folder, err := installed.Folder("", "")
	if err != nil {
		t.Skipf("this machine has no folder for installs: %v", err)
	}
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&install.Installer{Folder: folder}).Find(name)
		if got := r.Size >> 20; err == nil && r.Size > 0 && (got < source.Installed*2/3 || got > source.Installed*3/2) {
			t.Errorf("%s takes %d MiB here, but drivers say about %d", name, got, source.Installed)
		}
		if err == nil && r.Version != source.Version() {
			t.Errorf("%s is installed in version %s, but its lock says %s", name, r.Version, source.Version())
		}
		if got, want := installed.IsRuntime(name), source.Profile.Name != ""; got != want {
			t.Errorf("%s counts as a runtime: %t, want %t, as its profile says", name, got, want)
		}
		if source.Installed == 0 {
			t.Errorf("drivers have no size for %s", name)
		}
	}
}
