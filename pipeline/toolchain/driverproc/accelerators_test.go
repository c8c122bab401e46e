package driverproc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// A driver gets the devices of the vendors that its job names, the folder with their library, and an
// environment that does not hide them.
func TestAccelerators(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvme0",
		"dev/nvidia-caps/nvidia-cap1", "dev/nvidia-caps/nvidia-cap2", "dev/nvidia-caps/nvidia-cap21", "usr/local/nvidia/lib64/libcuda.so.1"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hides := func(a accelerators) bool {
		return slices.Contains(a.environment(environment("/scratch", loadEnvironment{})), "CUDA_VISIBLE_DEVICES=")
	}
	found := acceleratorsOf(toolchain.Job{Accelerators: []string{"nvidia"}}, root)
	var want []string
	for _, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap21"} {
		want = append(want, filepath.Join(root, "dev", name))
	}
	if !slices.Equal(found.devices, want) || hides(found) {
		t.Errorf("found %+v, want devices %v, not hidden", found, want)
	}
	if all := found.environment(nil); !slices.Equal(all, []string{"LD_LIBRARY_PATH=/usr/local/nvidia/lib64"}) {
		t.Errorf("environment %q", all)
	}
	for _, vendors := range [][]string{nil, {"acme"}} {
		if found := acceleratorsOf(toolchain.Job{Accelerators: vendors}, root); len(found.devices)+len(found.libraries) > 0 || !hides(found) {
			t.Errorf("vendors %v: found %+v", vendors, found)
		}
	}
}
