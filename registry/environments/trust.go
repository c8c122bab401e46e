package environments

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// resourceScheme begins every resource URI.
const resourceScheme = "oci://"

// entry is one trust entry as it is written.
type entry struct {
	Key       string   `yaml:"key,required"`
	Roles     []string `yaml:"roles,required"`
	Resources []string `yaml:"resources,required"`
}

// Trust is who may say what about a registry: what a node needs of environments.yaml.
type Trust struct {
	Registry string
	Entries  []registry.TrustEntry
	Dir      string          // that relative key paths start from, for KeyPath
	Digest   registry.Digest // of the file's bytes
}

// LoadTrust reads a file that holds only registry and trust, written as in
// environments.yaml. Errors: CodeInvalid with line and column; CodeNotFound without
// the file; CodeInternal where it cannot be read.
func LoadTrust(path string) (Trust, error) {
	data, err := readTrust(path)
	if err != nil {
		return Trust{}, err
	}
	var f struct {
		Registry string  `yaml:"registry,required"`
		Trust    []entry `yaml:"trust,required"`
	}
	doc, err := strictyaml.Decode(path, data, &f)
	if err != nil {
		return Trust{}, err
	}
	t := Trust{Registry: f.Registry, Entries: checkTrust(doc, f.Trust), Dir: filepath.Dir(path), Digest: digest.FromBytes(data)}
	checkEnvironments(doc, registry.Environments{Registry: f.Registry, List: []registry.Environment{{Name: "any"}}})
	return t, doc.Err()
}

// readTrust reads a file that somebody named, and that has to be there.
func readTrust(path string) ([]byte, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, registry.Errorf(registry.CodeNotFound, "trust file %s: no such file: want a file with the keys registry and trust", path)
	case err != nil && !registry.HasCode(err, registry.CodeInvalid):
		return nil, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	return data, err
}

// checkTrust notes what is wrong with the entries and gives them as nouns.
func checkTrust(doc *strictyaml.Document, written []entry) []registry.TrustEntry {
	if len(written) == 0 {
		doc.At("trust").Problemf("trust is empty: want at least one key, since nothing verifies without")
	}
	var out []registry.TrustEntry
	for i, e := range written {
		if e.Key == "" || strings.ContainsRune(e.Key, 0) {
			doc.At("trust", i, "key").Problemf("key is empty: want the path of a public key in PEM")
		}
		if len(e.Resources) == 0 {
			doc.At("trust", i, "resources").Problemf("resources is empty: want prefixes such as %q", resourceScheme+"local/")
		}
		for j, r := range e.Resources {
			if len(r) <= len(resourceScheme) || !strings.HasPrefix(r, resourceScheme) {
				doc.At("trust", i, "resources", j).Problemf("resource %q: want %s and the name of a registry, for example %q", r, resourceScheme, resourceScheme+"local/")
			}
		}
		out = append(out, registry.TrustEntry{Key: e.Key, Roles: checkRoles(doc, i, e.Roles), Resources: e.Resources})
	}
	return out
}

func checkRoles(doc *strictyaml.Document, i int, written []string) []registry.Role {
	if len(written) == 0 {
		doc.At("trust", i, "roles").Problemf("roles is empty: want some of %s", roleNames())
	}
	var roles []registry.Role
	for j, name := range written {
		role := registry.Role(name)
		switch {
		case !slices.Contains(registry.Roles(), role):
			doc.At("trust", i, "roles", j).Problemf("unknown role %q%s: want one of %s", name, strictyaml.Suggest(name, strings.Split(roleNames(), ", ")), roleNames())
		case slices.Contains(roles, role):
			doc.At("trust", i, "roles", j).Problemf("role %q is here twice", name)
		}
		roles = append(roles, role)
	}
	return roles
}

func roleNames() string {
	var names []string
	for _, r := range registry.Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}
