package drivers_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	known := drivers.Versions{Package: "torch", Oldest: "2.11", Newest: "2.15"}
	for version, want := range map[string]bool{
		"2.11.0": true, "2.11": true, "2.13.1": true, "2.15.0": true, "2.15.3": true, "2.10.9": false, "2.16.0": false, "2.150": false, "3.0": false, "1.15": false,
	} {
		if got := known.Has(version); got != want {
			t.Errorf("%s has %s: %t, want %t", known, version, got, want)
		}
	}
}

// A program that shares an install has the lock of that, its modules, and a main module of its own.
func TestShared(t *testing.T) {
	t.Parallel()
	shared, err := drivers.Find("torch")
	if err != nil {
		t.Fatal(err)
	}
	sharing, err := drivers.Find("torch-inductor")
	if err != nil {
		t.Fatal(err)
	}
	if sharing.LockDigest() != shared.LockDigest() || sharing.Install() != "torch" || sharing.Version() != shared.Version() {
		t.Errorf("install %s with the lock %s, want that of torch, %s", sharing.Install(), sharing.LockDigest(), shared.LockDigest())
	}
	if !slices.Equal(sharing.Code["exported.py"], shared.Code["exported.py"]) || slices.Equal(sharing.Code["driver.py"], shared.Code["driver.py"]) || sharing.Code["building.py"] == nil {
		t.Error("the modules are not those of torch with a program of its own")
	}
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range source.Known() {
			if version := source.Version(); known.Package == source.Package && !known.Has(version) {
				t.Errorf("%s does not know the version of its own lock, %s: it knows %s", name, version, known)
			}
		}
	}
}

// What `make test` installs is a toolchain of each kind, and little enough to be downloaded.
func TestRoutineInstalls(t *testing.T) {
	t.Parallel()
	const most = 2600 // MiB
	var size int64
	kinds := map[string]bool{"a runtime of graphs": false, "machine code": false, "JavaScript": false, "a source as it is": false, "an importer": false, "a quantizer": false}
	for _, name := range drivers.Names() {
		s, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Routine {
			continue
		}
		size += s.Installed
		for kind, is := range map[string]bool{
			"a runtime of graphs": s.Profile.Format == "onnx", "machine code": s.Profile.NativeCode, "JavaScript": s.Language == drivers.JavaScript,
			"a source as it is": len(s.AsIs) > 0, "an importer": s.Profile.Name == "" && len(s.Imports) > 0, "a quantizer": s.Quantizes,
		} {
			kinds[kind] = kinds[kind] || is
		}
	}
	if size > most {
		t.Errorf("make test installs %d MiB of toolchains, want at most %d: leave one to make toolchains-all", size, most)
	}
	for kind, is := range kinds {
		if !is {
			t.Errorf("make test installs no toolchain for %s", kind)
		}
	}
}
