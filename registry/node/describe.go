// Package node reads what a machine offers: processor, memory, NVIDIA devices and
// the runtimes that are installed. It also reads the files in which somebody else
// wrote that down.
//
// Facts come from the processor itself, from files of the kernel and the loader, and
// from nvidia-smi where it is installed. What cannot be read is left out, never
// guessed: an absent fact meets no requirement, so a gap can cost an engine and
// never choose a wrong one.
package node

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"

	"mlpromote.dev/mlpromote/registry"
)

// SourceMachine is the Source of a Node that Describe read.
const SourceMachine = "machine"

// NoteEmulated is the note on a machine whose processor is translated in software:
// it computes what its processor would, and its times mean nothing.
const NoteEmulated = "emulated"

// Options say where Describe looks. The zero Options describe this machine.
type Options struct {
	// Runtimes are versions by name that the caller knows to be installed, such as those
	// of its own toolchains. They win over what Describe finds.
	Runtimes map[string]string
	// Root is the folder that stands for "/"; empty means "/". The processor is always
	// this machine's.
	Root string
	// Getenv reads PATH and LD_LIBRARY_PATH; nil means os.Getenv.
	Getenv func(string) string
	// Exec gives the standard output of a program of PATH. An error that is
	// exec.ErrNotFound means that the program is not installed. Nil means Run.
	Exec func(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Describe reads this machine. The only error is that of ctx; a part that cannot be
// read is left out, with a note where its owner should know.
func Describe(ctx context.Context, o Options) (registry.Node, error) {
	o = o.withDefaults()
	cpuinfo := readCPUInfo(o.path("/proc/cpuinfo"))
	n := registry.Node{
		V:         documentVersion,
		OS:        runtime.GOOS,
		CPU:       describeCPU(cpuinfo),
		MemoryMiB: memoryMiB(o),
		Runtimes:  o.runtimes(),
		Source:    SourceMachine,
	}
	if emulated(cpuinfo, runtime.GOARCH, hypervisor()) {
		n.Notes = append(n.Notes, NoteEmulated)
	}
	devices, notes := nvidia(ctx, o.Exec)
	n.Accelerators = devices
	n.Notes = append(n.Notes, notes...)
	if err := ctx.Err(); err != nil {
		return registry.Node{}, registry.Errorf(registry.CodeInternal, "describe this machine: %w", err)
	}
	return n, nil
}

// runtimes joins what the machine has with what the caller knows.
func (o Options) runtimes() map[string]string {
	found := make(map[string]string)
	if version := findONNXRuntime(o); version != "" {
		found["onnxruntime"] = version
	}
	maps.Copy(found, o.Runtimes)
	if len(found) == 0 {
		return nil
	}
	return found
}

func (o Options) withDefaults() Options {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Exec == nil {
		o.Exec = Run
	}
	return o
}

// path is an absolute path of the machine under Root.
func (o Options) path(absolute string) string { return filepath.Join(o.Root, absolute) }
