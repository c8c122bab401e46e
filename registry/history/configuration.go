package history

import (
	"context"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Configuration identifies, by digest, the files in which an operator configures a process. All
// processes of one catalog must agree on it. An empty part is not recorded, or the process does
// not have it.
type Configuration struct {
	// Environments covers environments.yaml and the public keys that it names.
	Environments registry.Digest `json:"environments,omitempty"`
	// Access covers access.yaml and the certificates that it names. Without that file it is the
	// digest of zero bytes.
	Access registry.Digest `json:"access,omitempty"`
	// Promoter is the SHA-256 of the public key that signs promotions, which is the
	// identifier of that key.
	Promoter registry.Digest `json:"promoter,omitempty"`
}

// ConfigurationPart is one part of a configuration, with its name.
type ConfigurationPart struct {
	Name   string
	Digest registry.Digest
}

// Parts lists all parts in their order, empty ones too.
func (c Configuration) Parts() []ConfigurationPart {
	return []ConfigurationPart{{"environments", c.Environments}, {"access", c.Access}, {"promoter", c.Promoter}}
}

// Set sets a part by its name. It ignores unknown names.
func (c *Configuration) Set(name string, d registry.Digest) {
	switch name {
	case "environments":
		c.Environments = d
	case "access":
		c.Access = d
	case "promoter":
		c.Promoter = d
	}
}

// Differs names the parts that are set in both configurations and differ.
func (c Configuration) Differs(other Configuration) []string {
	var names []string
	others := other.Parts()
	for i, p := range c.Parts() {
		if p.Digest != "" && others[i].Digest != "" && p.Digest != others[i].Digest {
			names = append(names, p.Name)
		}
	}
	return names
}

// Over returns c with its empty parts filled from base.
func (c Configuration) Over(base Configuration) Configuration {
	if c.Environments == "" {
		c.Environments = base.Environments
	}
	if c.Access == "" {
		c.Access = base.Access
	}
	if c.Promoter == "" {
		c.Promoter = base.Promoter
	}
	return c
}

// Digest identifies the whole configuration.
func (c Configuration) Digest() (registry.Digest, error) { return registry.CanonicalDigest(c) }

// String lists the parts that are not empty, with their digests.
func (c Configuration) String() string {
	var said []string
	for _, p := range c.Parts() {
		if p.Digest != "" {
			said = append(said, p.Name+" "+string(p.Digest))
		}
	}
	return strings.Join(said, ", ")
}

// Configurations stores the configuration that the processes of a catalog agreed on. A
// [storage.Change] replaces it, with an event in the history.
type Configurations interface {
	// Agreed returns the agreed configuration. It records the parts of first that are not yet
	// recorded. If several processes record at once, one wins and all get the same answer. A zero
	// first records nothing.
	Agreed(ctx context.Context, first Configuration) (Configuration, error)
}

// ConfigurationMove replaces the agreed configuration by compare-and-swap.
type ConfigurationMove struct {
	Expect Configuration // the agreed one before
	To     Configuration // the agreed one after; empty parts stay as they are
}

// Check returns CodeConflict if the agreed configuration is not the expected one.
func (m ConfigurationMove) Check(agreed Configuration) error {
	if agreed == m.Expect {
		return nil
	}
	return registry.Errorf(
		registry.CodeConflict,
		"the agreed configuration is not the expected one (%s): another process replaced it; review the change and try again",
		m.Expect,
	)
}

// ConfigurationState says how the configuration of a process relates to the agreed one.
type ConfigurationState string

// The states of a configuration.
const (
	// ConfigurationAgreed: the configuration in use, the agreed one and the files are equal.
	ConfigurationAgreed ConfigurationState = "agreed"
	// ConfigurationPending: the files have changed, but the change is not adopted yet.
	ConfigurationPending ConfigurationState = "pending"
	// ConfigurationUnreadable: the files cannot be used; the agreed configuration stays in use.
	ConfigurationUnreadable ConfigurationState = "unreadable"
	// ConfigurationDiffers: the configuration in use is not the agreed one. The process refuses
	// changes and resolve.
	ConfigurationDiffers ConfigurationState = "differs"
)

// ConfigurationStates lists every state.
func ConfigurationStates() []ConfigurationState {
	return []ConfigurationState{ConfigurationAgreed, ConfigurationPending, ConfigurationUnreadable, ConfigurationDiffers}
}

// ConfigurationStatus is the state of a process's configuration.
type ConfigurationStatus struct {
	State   ConfigurationState `json:"state"`
	Agreed  Configuration      `json:"agreed"`
	InForce Configuration      `json:"inForce"`
	OnDisk  Configuration      `json:"onDisk"`            // of the files when they were last valid
	Changes []string           `json:"changes,omitempty"` // from InForce to OnDisk, as sentences
	Problem string             `json:"problem,omitempty"` // why the files cannot be used
}
