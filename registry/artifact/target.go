package artifact

import (
	"bytes"
	"encoding/json"
	"regexp"

	"mlpromote.dev/mlpromote/registry"
)

// Target is what an engine requires of a machine and its software: version 1 of the target
// document. An absent field requires nothing. The zero Target has no version and matches no
// machine.
type Target struct {
	V                 int                   `json:"v"`
	Name              string                `json:"name"`
	OS                string                `json:"os"`
	CPU               TargetCPU             `json:"cpu"`
	Accelerator       *TargetAccelerator    `json:"accelerator,omitempty"`
	Runtimes          map[string]Constraint `json:"runtimes,omitempty"`
	Compatibility     Compatibility         `json:"stretch,omitempty"`
	RequiredNodeTypes []string              `json:"witnesses,omitempty"` // node types on which a pass is required

	unknown string // why a reader of this version must not match it
	raw     []byte // the document as it was read, if unknown is set
}

// TargetCPU is the processor that an engine requires.
type TargetCPU struct {
	Arch     string   `json:"arch"`
	Level    string   `json:"level,omitempty"`
	Features []string `json:"features,omitempty"`
}

// TargetAccelerator is the device that an engine requires.
type TargetAccelerator struct {
	Vendor    string      `json:"vendor"`
	Arch      string      `json:"arch,omitempty"`
	Product   string      `json:"product,omitempty"`
	Count     int         `json:"count,omitempty"` // devices; 0 means 1
	MemoryMiB int64       `json:"memoryMiB,omitempty"`
	MIG       string      `json:"mig"`
	Driver    *Constraint `json:"driver,omitempty"`
}

// Compatibility says how far a device may differ from the one that an accelerator engine was compiled
// on.
type Compatibility string

// The degrees of compatibility. The default of an accelerator target is Exact.
const (
	CompatibilityExact             Compatibility = "exact"                   // same product, architecture and MIG profile
	CompatibilityComputeCapability Compatibility = "same-compute-capability" // same architecture, any product
	CompatibilityVersionCompatible Compatibility = "version-compatible"      // same or later architecture of the vendor
)

// TargetVersion is the version of the target document that this program reads.
const TargetVersion = 1

var targetNamePattern = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// ParseTarget parses a target document. It also accepts documents of other versions and with
// unknown keys. They match no machine, because a reader cannot check a requirement that it does
// not understand. Errors: CodeInvalid if data is not a target document.
func ParseTarget(data []byte) (Target, error) {
	var t Target
	if err := json.Unmarshal(data, &t); err != nil {
		return Target{}, registry.Errorf(registry.CodeInvalid, "target: %w", err)
	}
	if t.V != TargetVersion {
		return t, nil
	}
	return t, t.Validate()
}

// plainTarget is a Target with the default JSON encoding.
type plainTarget Target

// UnmarshalJSON parses a target document like [ParseTarget], but does not validate it.
func (t *Target) UnmarshalJSON(data []byte) error {
	var read plainTarget
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&plainTarget{}); err != nil {
		read.unknown = "the target document has a requirement that this program does not know: " + err.Error()
	}
	if read.V != 0 && read.V != TargetVersion {
		read.unknown = "the target document has a version that this program does not know"
	}
	if read.unknown != "" {
		read.raw = bytes.Clone(data)
	}
	*t = Target(read)
	return nil
}

// MarshalJSON writes the target document. A document with unknown parts is written as it was
// read, so that it matches nothing for the next reader either.
func (t Target) MarshalJSON() ([]byte, error) {
	if t.raw != nil {
		return t.raw, nil
	}
	return json.Marshal(plainTarget(t))
}

// Validate checks that some machine could meet the target. Errors: CodeInvalid.
func (t Target) Validate() error {
	switch {
	case !targetNamePattern.MatchString(t.Name) || len(t.Name) > 48:
		return registry.Errorf(registry.CodeInvalid,
			"target name %q: want lower-case letters and digits with inner '.', '_' or '-', at most 48", t.Name)
	case t.OS == "":
		return registry.Errorf(registry.CodeInvalid, "target %s: os is missing", t.Name)
	case t.CPU.Arch == "":
		return registry.Errorf(registry.CodeInvalid, "target %s: cpu.arch is missing", t.Name)
	case t.CPU.Level != "" && (t.CPU.Arch != "amd64" || levelRank(t.CPU.Level) == 0):
		return registry.Errorf(registry.CodeInvalid, "target %s: cpu.level %q: want v1, v2, v3 or v4, and only for amd64", t.Name, t.CPU.Level)
	case t.Accelerator == nil && t.Compatibility != "":
		return registry.Errorf(registry.CodeInvalid, "target %s: compatibility %q applies only to accelerators: remove it", t.Name, t.Compatibility)
	case t.Accelerator != nil && (t.Accelerator.Count < 0 || t.Accelerator.MemoryMiB < 0):
		return registry.Errorf(registry.CodeInvalid, "target %s: accelerator has %d devices of %d MiB: want both at least 0", t.Name,
			t.Accelerator.Count, t.Accelerator.MemoryMiB)
	case !t.Compatibility.known():
		return registry.Errorf(registry.CodeInvalid, "target %s: compatibility %q: want exact, same-compute-capability or version-compatible",
			t.Name, t.Compatibility)
	}
	for name, c := range t.Runtimes {
		if err := c.Validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "target %s: runtime %s: %w", t.Name, name, err)
		}
	}
	return nil
}

func (c Compatibility) known() bool {
	return c == "" || c == CompatibilityExact || c == CompatibilityComputeCapability || c == CompatibilityVersionCompatible
}

// levelRank is 1 to 4 for the x86-64 psABI levels, 0 for anything else.
func levelRank(level string) int {
	if len(level) == 2 && level[0] == 'v' && level[1] >= '1' && level[1] <= '4' {
		return int(level[1] - '0')
	}
	return 0
}
