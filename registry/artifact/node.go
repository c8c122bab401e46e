package artifact

// NoteEmulated is the note on a machine whose processor is emulated. It computes the right
// results, but timings on it are not meaningful.
const NoteEmulated = "emulated"

// SourceMachine is the source of a document that the machine itself described, and so completely.
const SourceMachine = "machine"

// Node describes the hardware, drivers and software of a machine: version 1 of the node
// document.
type Node struct {
	V            int               `json:"v"`
	OS           string            `json:"os"` // as GOOS: "linux"
	CPU          NodeCPU           `json:"cpu"`
	MemoryMiB    int64             `json:"memoryMiB,omitempty"`
	Accelerators []NodeAccelerator `json:"accelerators,omitempty"`
	Runtimes     map[string]string `json:"runtimes,omitempty"` // name to exact version: "onnxruntime": "1.30.0"
	Notes        []string          `json:"notes,omitempty"`    // for example "emulated"
	Source       string            `json:"source,omitempty"`   // "machine", or the origin of the facts
}

// NodeCPU is a machine's processor.
type NodeCPU struct {
	Arch     string   `json:"arch"`            // as GOARCH: "amd64"
	Level    string   `json:"level,omitempty"` // x86-64 psABI level "v1" to "v4"; empty elsewhere
	Vendor   string   `json:"vendor,omitempty"`
	Model    string   `json:"model,omitempty"`
	Features []string `json:"features,omitempty"` // lower case, sorted: "avx2", "avx512_vnni"
}

// NodeAccelerator is one device of a machine.
type NodeAccelerator struct {
	Vendor    string `json:"vendor"`         // "nvidia"
	Product   string `json:"product"`        // as GPU feature discovery names it: "NVIDIA-H200"
	Arch      string `json:"arch,omitempty"` // "sm_90"
	MemoryMiB int64  `json:"memoryMiB,omitempty"`
	MIG       string `json:"mig"`              // MIG profile such as "1g.18gb"; empty for a whole device
	Driver    string `json:"driver,omitempty"` // "580.65.06"
}

// Runtime is the software that loads an engine, with exact versions.
type Runtime struct {
	V        int               `json:"v"`
	Name     string            `json:"name"`
	Runtimes map[string]string `json:"runtimes"` // name to exact version
}

// Runtime returns the software that the node has installed. Resolve uses it if no other runtime
// is named.
func (n Node) Runtime() Runtime { return Runtime{V: 1, Name: "node", Runtimes: n.Runtimes} }
