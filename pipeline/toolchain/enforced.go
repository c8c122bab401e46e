package toolchain

import (
	"fmt"
	"strings"
	"time"
)

// Enforced is what held a driver while it did a job, as it was in fact set up. The zero
// Enforced is a driver that nothing held.
type Enforced struct {
	Sandbox          Sandbox  `json:"sandbox"`
	Inputs           string   `json:"inputs"`           // InputsReadOnly or InputsCopied
	NoOtherFiles     bool     `json:"noOtherFiles"`     // it saw the files of the job, its install and the system's software
	NoNetwork        bool     `json:"noNetwork"`        // of no protocol, loopback included
	NoOtherProcesses bool     `json:"noOtherProcesses"` // it saw none but its own
	NoNewPrivileges  bool     `json:"noNewPrivileges"`
	UnprivilegedUser bool     `json:"unprivilegedUser"` // it was not root
	WallSeconds      int64    `json:"wallSeconds,omitempty"`
	CPUSeconds       int64    `json:"cpuSeconds,omitempty"`
	MemoryBytes      int64    `json:"memoryBytes,omitempty"` // private writable memory of one process
	FileBytes        int64    `json:"fileBytes,omitempty"`   // of one file
	Processes        int64    `json:"processes,omitempty"`   // and threads
	OpenFiles        int64    `json:"openFiles,omitempty"`   // of one process
	Lacks            []string `json:"lacks,omitempty"`       // what could not be had here, and why
}

// Sandbox is the means that held a driver.
type Sandbox string

// The sandboxes, the strongest first.
const (
	SandboxContainer  Sandbox = "container"  // of an image that the user names, by podman or docker; never chosen by itself
	SandboxNamespaces Sandbox = "namespaces" // a file system, network and process table of its own
	SandboxLandlock   Sandbox = "landlock"   // rules on the file system and TCP that the kernel checks
	SandboxNone       Sandbox = "none"       // limits alone
)

// The ways to keep the inputs of a job as they are.
const (
	InputsReadOnly = "read-only" // the kernel refuses to write
	InputsCopied   = "copied"    // what the driver could write to was a copy
)

// String says it for people, in a line.
func (e Enforced) String() string {
	if e.Sandbox == "" {
		return "no sandbox"
	}
	parts := []string{"inputs " + e.Inputs}
	for _, p := range []struct {
		is   bool
		text string
	}{
		{e.NoOtherFiles, "no other files"}, {e.NoNetwork, "no network"}, {e.NoOtherProcesses, "no other processes"},
		{e.NoNewPrivileges, "no new privileges"}, {e.UnprivilegedUser, "not root"},
	} {
		if p.is {
			parts = append(parts, p.text)
		}
	}
	parts = append(parts, e.limits()...)
	text := fmt.Sprintf("sandbox %s: %s", e.Sandbox, strings.Join(parts, ", "))
	if len(e.Lacks) > 0 {
		text += "; not " + strings.Join(e.Lacks, "; not ")
	}
	return text
}

func (e Enforced) limits() []string {
	var parts []string
	add := func(n int64, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(e.WallSeconds, (time.Duration(e.WallSeconds) * time.Second).String())
	add(e.CPUSeconds, (time.Duration(e.CPUSeconds)*time.Second).String()+" of CPU")
	add(e.MemoryBytes, fmt.Sprintf("%d MiB of memory", e.MemoryBytes>>20))
	add(e.FileBytes, fmt.Sprintf("%d MiB a file", e.FileBytes>>20))
	add(e.Processes, fmt.Sprintf("%d processes", e.Processes))
	return parts
}
