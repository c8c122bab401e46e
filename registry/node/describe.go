// Package node describes a machine: processor, memory, NVIDIA GPUs and installed runtimes. It
// also reads node documents that were written elsewhere.
//
// Facts come from the processor, from files of the kernel and the dynamic loader, and from
// nvidia-smi if it is installed. A fact that cannot be read is left out, never guessed. An
// absent fact meets no requirement, so the worst effect is that a suitable engine is not
// chosen.
package node

import (
	"context"
	"maps"
	"os"
	"runtime"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/toolchains"
)

// SourceMachine is the Source of a Node that Describe read.
const SourceMachine = artifact.SourceMachine

// NoteEmulated is [artifact.NoteEmulated].
const NoteEmulated = artifact.NoteEmulated

// Describe reads this machine. It fails only if ctx ends. A part that cannot be read is left
// out, with a note if the user should know.
func Describe(ctx context.Context, o Options) (artifact.Node, error) {
	o = o.withDefaults()
	cpuinfo := readCPUInfo(o.path("/proc/cpuinfo"))
	n := artifact.Node{
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
		return artifact.Node{}, registry.Errorf(registry.CodeInternal, "describe this machine: %w", err)
	}
	return n, nil
}

// runtimes merges the runtimes found on the machine with those that the caller knows.
func (o Options) runtimes() map[string]string {
	found := make(map[string]string)
	if version := findONNXRuntime(o); version != "" {
		found[toolchains.Reference] = version
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
