package script_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/script"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// IREE compiles for GPUs that this machine does not have, each engine says what it is tied to, and one that is
// run without its GPU says what is missing; that is no fault of the engine.
func TestCompileForGPUs(t *testing.T) {
	t.Parallel()
	driver := script.New(script.Installed(toolchaintest.Installed(t, "iree"), "iree"), driverproc.Budget{})
	compile := func(device, arch, dir string) error {
		job := toolchain.Job{Verb: toolchain.VerbCompile, Options: map[string]any{"device": device, "arch": arch}, Inputs: []toolchain.Input{
			toolchaintest.Input(t, toolchain.RoleModel, "model.onnx", digits+"digits.onnx")}}
		_, err := driver.Do(t.Context(), job, dir)
		return err
	}
	for arch, want := range map[string]tie.Tie{
		"sm_80":  {Backend: "cuda", Arch: "sm_80", PTX: "7.6", Driver: "510"},
		"sm_89":  {Backend: "cuda", Arch: "sm_89", PTX: "8.4", Driver: "550"},
		"gfx942": {Backend: "rocm", Arch: "gfx942"},
	} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			device, dir := "cuda", t.TempDir()
			if want.Backend == "rocm" {
				device = "hip"
			}
			if err := compile(device, arch, dir); err != nil {
				t.Fatal(err)
			}
			if got, err := tie.Open(filepath.Join(dir, "model.vmfb"), tie.Module); err != nil || got != want {
				t.Errorf("tie %+v (%v), want %+v", got, err, want)
			}
			job := toolchain.Job{Verb: toolchain.VerbRun, Run: &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "e", Path: "e/model.vmfb", Load: map[string]string{}}}},
				Inputs: []toolchain.Input{toolchaintest.Input(t, toolchain.RoleCases, "cases-00000.safetensors", digits+"cases/cases-00000.safetensors")}}
			for _, name := range []string{"model.vmfb", "model.json"} {
				job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleModel, "e/"+name, filepath.Join(dir, name)))
			}
			_, err := driver.Do(t.Context(), job, t.TempDir())
			if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), "IREE can use no device "+device+" of this machine") {
				t.Errorf("a run without the device: %v", err)
			}
		})
	}
	if err := compile("cuda", "sm_90", t.TempDir()); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "knows no cuda architecture sm_90") {
		t.Errorf("an architecture that the compiler does not know: %v", err)
	}
}
