// Package policyfile changes environments.yaml by commands: who is trusted, and in which state a key is.
package policyfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Addition is what trust add adds.
type Addition struct {
	Key   string // file with the public key
	Name  string // of its copy, without .pub
	Roles []string
	Envs  []string
	From  string
	Until string
}

// Propose edits the file, after it put the public key where the file names it.
func (n Addition) Propose(c *Change) (string, []byte, error) {
	e, err := n.entry(c.Was.Environments)
	if err != nil {
		return "", nil, err
	}
	pem, id, err := readPublicKey(n.Key)
	if err != nil {
		return "", nil, err
	}
	for _, other := range c.Was.Environments.Trust {
		if other.Key == "" || c.Was.KeyID(other) != id {
			continue
		}
		if state := other.EffectiveState(); state != evidence.KeyTrusted {
			return "", nil, registry.WithHint(registry.Lastingf(registry.CodeConflict,
				"key %s is %s in %s: it is not trusted again", other.Key, state, c.Path),
				"make a new key with mlpromote key generate")
		}
		e.Key = other.Key
		if holds(other, e) && !c.Missing {
			return e.Key, c.Data, nil
		}
	}
	if e.Key == "" {
		if e.Key, err = n.place(filepath.Dir(c.Path), pem); err != nil {
			return "", nil, err
		}
	}
	if c.Missing && len(c.Was.MissingKeys()) == len(c.Was.Environments.Trust) {
		return e.Key, environments.First(e), nil
	}
	if c.Missing && slices.ContainsFunc(c.Was.Environments.Trust, func(o trust.TrustEntry) bool { return o.Key == e.Key && holds(o, e) }) {
		return e.Key, c.Data, nil // the default says so: it is written as it is
	}
	data, err := environments.AddTrust(c.Path, c.Data, e)
	return e.Key, data, err
}

// entry checks roles and environments.
func (n Addition) entry(es policy.Environments) (trust.TrustEntry, error) {
	var e trust.TrustEntry
	for _, name := range n.Roles {
		role := evidence.Role(name)
		if !slices.Contains(evidence.KeyRoles(), role) {
			return e, registry.Errorf(registry.CodeInvalid, "--role %q: want one of %v", name, evidence.KeyRoles())
		}
		if !slices.Contains(e.Roles, role) {
			e.Roles = append(e.Roles, role)
		}
	}
	for _, alone := range []evidence.Role{evidence.RolePublisher, evidence.RoleAttester} {
		if slices.Contains(e.Roles, alone) && len(e.Roles) > 1 {
			return e, registry.Errorf(registry.CodeInvalid, "--role %s: want it alone: %[1]s is the role of a key of its own", alone)
		}
	}
	var err error
	if e.Window.From, err = FlagTime("from", n.From); err != nil {
		return e, err
	}
	if e.Window.Until, err = FlagTime("until", n.Until); err != nil {
		return e, err
	}
	root := "oci://" + es.Registry + "/"
	for _, name := range n.Envs {
		if _, err := es.Find(name); err != nil {
			return e, err
		}
		if resource := root + name + "/"; !slices.Contains(e.Resources, resource) {
			e.Resources = append(e.Resources, resource)
		}
	}
	if len(e.Resources) == 0 {
		e.Resources = []string{root}
	}
	return e, nil
}

// holds reports whether an entry of the same key gives all that e gives.
func holds(other, e trust.TrustEntry) bool {
	if !e.Window.Equal(other.Window) {
		return false
	}
	for _, role := range e.Roles {
		if !slices.Contains(other.Grants(), role) {
			return false
		}
	}
	for _, resource := range e.Resources {
		if !other.Covers(strings.TrimSuffix(resource, "/")) && !slices.Contains(other.Resources, resource) {
			return false
		}
	}
	return true
}

// place returns how the file names the key: where it is in the policy folder, or else as a copy in
// keys/.
func (n Addition) place(folder string, pem []byte) (string, error) {
	if n.Name == "" {
		if inside, err := relative(folder, n.Key); err == nil && filepath.IsLocal(inside) {
			return filepath.ToSlash(inside), nil
		}
	}
	name := n.Name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(n.Key), ".pub")
	}
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", registry.Errorf(registry.CodeInvalid, "--name %q: want a file name without its extension", name)
	}
	path := filepath.Join(folder, "keys", name+".pub")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "make folder for keys: %w", err)
	}
	err := atomicfile.Create(path, pem, 0o644)
	if errors.Is(err, fs.ErrExist) {
		have, readErr := strictyaml.ReadFile(path)
		if readErr != nil || !bytes.Equal(have, pem) {
			return "", registry.WithHint(registry.Lastingf(registry.CodeConflict, "%s is another key", path), "choose a name for this one: --name NAME")
		}
		err = nil
	}
	if err != nil {
		return "", registry.Lastingf(registry.CodeUnavailable, "copy key to %s: %w", path, err)
	}
	return "keys/" + name + ".pub", nil
}

// relative is the path of a file from a folder, after symbolic links.
func relative(folder, path string) (string, error) {
	var at [2]string
	for i, p := range []string{folder, path} {
		place, err := filepath.EvalSymlinks(p)
		if err == nil {
			at[i], err = filepath.Abs(place)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Rel(at[0], at[1])
}
