package script_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// Every driver that compiles and runs in Python, where it is installed.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, name := range drivers.Names() {
		source, err := drivers.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == ort.Name || source.Profile.CompileOptions == nil {
			continue // its engines are made and run by package ort, or it only imports
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installer := toolchaintest.Installed(t, name)
			toolchaintest.TestDigits(t, name, func() toolchain.Driver { return script.New(script.Installed(installer, name), driverproc.Budget{}) })
		})
	}
}

// What the drivers answer is what the published schema says.
func TestResponsesFollowTheSchema(t *testing.T) {
	t.Parallel()
	for _, name := range drivers.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := script.Installed(toolchaintest.Installed(t, name), name)()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for module, code := range program.Code {
				if err := os.WriteFile(filepath.Join(dir, module), code, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			args := slices.Concat([]string{program.Interpreter}, program.Flags, []string{filepath.Join(dir, program.Main)}, program.Args)
			toolchaintest.CheckResponses(t, driverproc.Program{Path: program.Interpreter, Args: args, Library: program.Identity.Library})
		})
	}
}
