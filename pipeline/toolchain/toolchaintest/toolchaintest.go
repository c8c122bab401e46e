// Package toolchaintest provides real toolchains for tests.
package toolchaintest

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/conformance"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/installed"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Installer returns an installer that has the toolchain of that name. It installs the toolchain
// now if the cache lacks it, which needs the network and a minute. The cache is
// MLPROMOTE_TEST_CACHE, or else the one that the program uses.
func Installer(tb testing.TB, name string) *install.Installer {
	tb.Helper()
	installer := newInstaller(tb)
	stage := ""
	tell := func(p install.Progress) {
		if p.Stage != stage {
			stage = p.Stage
			tb.Log(stage)
		}
	}
	if _, err := installer.Install(tb.Context(), name, tell); err != nil {
		tb.Fatalf("install %s for tests: %v", name, err)
	}
	return installer
}

// Installed returns an installer that has the toolchain already. If the toolchain is missing,
// it skips the test; with MLPROMOTE_TEST_TOOLCHAINS=all it installs it as [Installer] does.
func Installed(tb testing.TB, name string) *install.Installer {
	tb.Helper()
	if os.Getenv("MLPROMOTE_TEST_TOOLCHAINS") == "all" {
		return Installer(tb, name)
	}
	installer := newInstaller(tb)
	if _, err := installer.Find(name); err != nil {
		tb.Skipf("%v, or test with MLPROMOTE_TEST_TOOLCHAINS=all", err)
	}
	return installer
}

func newInstaller(tb testing.TB) *install.Installer {
	tb.Helper()
	root, err := installed.Root(os.Getenv("MLPROMOTE_TEST_CACHE"))
	if err != nil {
		tb.Fatal(err)
	}
	return &install.Installer{Root: root, Python: os.Getenv("MLPROMOTE_PYTHON")}
}

// Input hashes a file and returns it as an input.
func Input(tb testing.TB, role, name, path string) toolchain.Input {
	tb.Helper()
	in, err := toolchain.FileInput(role, name, path)
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

// TestDigits runs [TestDriver] for a toolchain on examples/digits, or on a source that its compiler takes: the same model
// as a program of PyTorch, or a language model of llama.cpp, with a target for any processor, or for a device of a toolchain that compiles only for some. The
// tests must be three folders below the repository's root.
func TestDigits(t *testing.T, name string, driver func() toolchain.Driver) {
	t.Helper()
	source, err := drivers.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	target := artifact.Target{Name: "any", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v1"}}
	if source.Example.OS != "" {
		target = source.Example
		target.Name = "any"
	}
	options, err := source.Profile.CompileOptions(target, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	if source.Profile.Sizes {
		options["sizes"] = map[string]any{"batch": []any{8, 8, 8}}
		if !source.Profile.CompileOnly { // it runs cases one by one
			options["sizes"] = map[string]any{"batch": []any{1, 1, 8}}
		}
	}
	const digits = "../../../examples/digits/"
	c := Conformance{New: driver, Subject: &conformance.Subject{Profile: source.Profile, Options: options,
		Model: digits + "digits.onnx", Cases: digits + "cases/cases-00000.safetensors", Count: 360}}
	switch {
	case len(source.AsIs) > 0:
		c.Model, c.Input = "../../../cmd/mlpromote/testdata/models/gguf/q8_0.gguf", "source.gguf"
		c.Cases, c.Count = tokens(t, 12, 7, 60), 12
	case len(source.Profile.Sources) > 0:
		c.Model, c.Input = "../../../cmd/mlpromote/testdata/models/torch/digits.pt2", "source."+source.Profile.Sources[0]
	}
	TestDriver(t, c)
}

// tokens writes cases of so many token ids each, of a vocabulary, and returns the file.
func tokens(t *testing.T, cases, length, vocabulary int) string {
	t.Helper()
	ids := tensor.Tensor{DType: tensor.Int64, Shape: []int64{int64(cases), int64(length)}}
	for i := range cases * length {
		ids.Data = binary.LittleEndian.AppendUint64(ids.Data, uint64(i*i)%uint64(vocabulary))
	}
	path := filepath.Join(t.TempDir(), "cases.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tensorfile.Write(f, map[string]tensor.Tensor{"input_ids": ids}, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
