package toolchain

import (
	"fmt"
	"strings"
	"time"
)

// Enforced has the restrictions that were in effect while a driver did a job. The zero Enforced
// means no restrictions.
type Enforced struct {
	Sandbox          Sandbox  `json:"sandbox"`
	Inputs           string   `json:"inputs"`           // InputsReadOnly or InputsCopied
	NoOtherFiles     bool     `json:"noOtherFiles"`     // it could see only the files of the job, its install and system software
	NoNetwork        bool     `json:"noNetwork"`        // none that reaches beyond its own processes
	NoOtherProcesses bool     `json:"noOtherProcesses"` // it could see only its own processes
	NoNewPrivileges  bool     `json:"noNewPrivileges"`
	UnprivilegedUser bool     `json:"unprivilegedUser"` // it was not root
	WallSeconds      int64    `json:"wallSeconds,omitempty"`
	CPUSeconds       int64    `json:"cpuSeconds,omitempty"`
	MemoryBytes      int64    `json:"memoryBytes,omitempty"` // private writable memory of one process
	FileBytes        int64    `json:"fileBytes,omitempty"`   // of one file
	Processes        int64    `json:"processes,omitempty"`   // and threads
	OpenFiles        int64    `json:"openFiles,omitempty"`   // of one process
	Lacks            []string `json:"lacks,omitempty"`       // restrictions that are missing on this machine, and why
}

// Sandbox is the mechanism that restricts a driver.
type Sandbox string

// The sandboxes, the strongest first.
const (
	SandboxContainer  Sandbox = "container"  // of an image that the user names, with podman or docker; never selected automatically
	SandboxNamespaces Sandbox = "namespaces" // a file system, network and process table of its own
	SandboxLandlock   Sandbox = "landlock"   // rules on the file system and TCP that the kernel checks
	SandboxNone       Sandbox = "none"       // only limits
)

// How the inputs of a job are protected from changes.
const (
	InputsReadOnly = "read-only" // the kernel refuses to write
	InputsCopied   = "copied"    // the driver could write only to a copy
)

// String describes it in one line.
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
