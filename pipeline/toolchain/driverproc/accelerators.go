package driverproc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// accelerators is what a driver gets of a machine so that engines run on its accelerators.
type accelerators struct {
	devices   []string // device files
	libraries []string // folders with the vendor's libraries that the dynamic loader does not search by itself
	shown     []string // variables of fixedEnvironment that hide the devices
}

// vendor is how the accelerators of a vendor show on a Linux machine.
type vendor struct {
	devices   []string // patterns of device files
	library   string   // that the runtimes load
	libraries []string // folders to which container runtimes mount it
	hidden    string   // variable of fixedEnvironment
}

// vendors are those whose accelerators engines run on here. The folders are those of NVIDIA's
// device plugin for Kubernetes, and of Windows' subsystem for Linux. Of NVIDIA's capabilities, 1 and 2 are
// for who partitions and watches devices; later ones are those of a partition.
var vendors = map[string]vendor{
	"nvidia": {
		devices:   []string{"/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap[3-9]", "/dev/nvidia-caps/nvidia-cap[1-9][0-9]*", "/dev/dxg"},
		library:   "libcuda.so.1",
		libraries: []string{"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"},
		hidden:    "CUDA_VISIBLE_DEVICES",
	},
}

// acceleratorsOf finds what the engines of a job need of the machine whose root is given.
func acceleratorsOf(job toolchain.Job, root string) accelerators {
	var found accelerators
	for _, name := range job.Accelerators {
		v, known := vendors[name]
		if !known {
			continue
		}
		for _, pattern := range v.devices {
			files, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well formed
			found.devices = append(found.devices, files...)
		}
		for _, folder := range v.libraries {
			if _, err := os.Stat(filepath.Join(root, folder, v.library)); err == nil {
				found.libraries = append(found.libraries, folder)
			}
		}
		found.shown = append(found.shown, v.hidden)
	}
	return found
}

// environment changes the environment of a driver that has the accelerators.
func (a accelerators) environment(all []string) []string {
	all = slices.DeleteFunc(all, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(a.shown, name)
	})
	if len(a.libraries) > 0 {
		all = append(all, "LD_LIBRARY_PATH="+strings.Join(a.libraries, ":"))
	}
	return all
}
