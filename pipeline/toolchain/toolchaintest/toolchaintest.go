// Package toolchaintest gives tests the real toolchains.
package toolchaintest

import (
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// Installer is an installer that has the toolchain of that name: it is installed
// now if this machine's cache lacks it, which needs the network and a minute. The
// cache is MLPROMOTE_TEST_CACHE, or else the one that the program uses.
func Installer(tb testing.TB, name string) *install.Installer {
	tb.Helper()
	root, err := install.Root(os.Getenv("MLPROMOTE_TEST_CACHE"))
	if err != nil {
		tb.Fatal(err)
	}
	installer := &install.Installer{Root: root, Python: os.Getenv("MLPROMOTE_PYTHON")}
	if _, err := installer.Install(tb.Context(), name, func(stage string) { tb.Log(stage) }); err != nil {
		tb.Fatalf("install %s for tests: %v", name, err)
	}
	return installer
}

// Input hashes a file and makes it an input.
func Input(tb testing.TB, role, name, path string) toolchain.Input {
	tb.Helper()
	in, err := toolchain.FileInput(role, name, path)
	if err != nil {
		tb.Fatal(err)
	}
	return in
}
