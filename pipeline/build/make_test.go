package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Files that a compiler leaves are looked at: one that runs code when it is loaded is refused, whichever it is.
func TestCheckMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) toolchain.OutputFile {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return toolchain.OutputFile{Name: name, Path: path}
	}
	const pickle = "\x80\x04]\x94."
	profile := toolchain.Profile{Format: "openvino-ir", Entry: "model.xml"}
	native := profile
	native.NativeCode = true
	plain, code, elf := write("a.txt", "hello"), write("b.bin", pickle), write("c.so", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 57))
	for name, c := range map[string]struct {
		profile toolchain.Profile
		files   []toolchain.OutputFile
		ok      bool
	}{
		"nothing": {profile, nil, true}, "text": {profile, []toolchain.OutputFile{plain}, true}, "a pickle": {profile, []toolchain.OutputFile{code}, false},
		"a pickle behind text": {profile, []toolchain.OutputFile{plain, code}, false}, "a pickle before text": {profile, []toolchain.OutputFile{code, plain}, false},
		"code":                {profile, []toolchain.OutputFile{elf}, false},
		"code of a toolchain": {native, []toolchain.OutputFile{elf}, true},
		"a pickle beside it":  {native, []toolchain.OutputFile{elf, code}, false},
		"a file that is gone": {profile, []toolchain.OutputFile{{Name: "x", Path: filepath.Join(dir, "none")}}, false},
	} {
		if err := checkMade(c.profile, c.files); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want that it passes: %t", name, err, c.ok)
		}
	}
}

// A compiler that needs the device is run only on a machine that has it; the others cross-compile.
func TestDevices(t *testing.T) {
	t.Parallel()
	here := Maker{Worker: run.Worker{}}
	here.Node.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Arch: "sm_90"}, {Vendor: "amd", Arch: "gfx942"}}
	on := func(a *artifact.TargetAccelerator) plan.Engine {
		return plan.Engine{Target: artifact.Target{Name: "gpu", Accelerator: a}}
	}
	needs := toolchain.Profile{Name: "torch-inductor", NeedsDevice: true}
	for name, c := range map[string]struct {
		engine  plan.Engine
		profile toolchain.Profile
		want    []string
		refused bool
	}{
		"of a processor":          {on(nil), needs, nil, false},
		"compiled without":        {on(&artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), toolchain.Profile{}, nil, false},
		"here":                    {on(&artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}), needs, []string{"nvidia"}, false},
		"of another age":          {on(&artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_80"}), needs, nil, true},
		"of another manufacturer": {on(&artifact.TargetAccelerator{Vendor: "amd", Arch: "sm_90"}), needs, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := devices(here, c.engine, c.profile)
			if !slices.Equal(got, c.want) || registry.HasCode(err, registry.CodeWrongNode) != c.refused || (err != nil) != c.refused {
				t.Errorf("got %q, %v; want %q, refused %t", got, err, c.want, c.refused)
			}
		})
	}
}
