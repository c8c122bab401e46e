// Package environments reads environments.yaml, the file that says which
// environments there are, what each asks of a release, and which keys are trusted
// to say what. Where a directory has none, a default of two environments and one key
// for all roles stands in for it.
//
// The file is policy, and a misspelt policy is a weaker one: everything in it that
// is not understood is an error with its line.
package environments

import (
	_ "embed"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// File is the name of the file in its directory.
const File = "environments.yaml"

// SchemaFile is the name of the JSON Schema of the file.
const SchemaFile = "environments.schema.json"

//go:embed default.yaml
var defaults []byte

//go:generate cp environments.schema.json ../../docs/reference/environments.schema.json
//go:embed environments.schema.json
var schema []byte

// Default gives the bytes of the file that stands in where there is none.
func Default() []byte { return append([]byte(nil), defaults...) }

// Schema gives the JSON Schema (draft 2020-12) of the file, for editors.
func Schema() []byte { return append([]byte(nil), schema...) }

// Load reads dir/environments.yaml, or the default where dir has none. Key paths
// stay as they are written: [KeyPath] resolves them. Errors: those of [Parse];
// CodeInternal where the file cannot be read.
func Load(dir string) (registry.Environments, error) {
	es, err := LoadFile(filepath.Join(dir, File))
	if registry.HasCode(err, registry.CodeNotFound) {
		return Parse("default "+File, defaults)
	}
	return es, err
}

// LoadFile reads the file at path, under any name. Errors: those of [Load];
// CodeNotFound without the file.
func LoadFile(path string) (registry.Environments, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return registry.Environments{}, registry.Errorf(registry.CodeNotFound, "%s: no such file", path)
	case registry.HasCode(err, registry.CodeInvalid):
		return registry.Environments{}, err
	case err != nil:
		return registry.Environments{}, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	return Parse(path, data)
}

// KeyPath gives the path of a trust entry's key: relative to dir, which holds the
// file that names it, unless it is absolute.
func KeyPath(dir, key string) string {
	if filepath.IsAbs(key) {
		return filepath.Clean(key)
	}
	return filepath.Join(dir, filepath.FromSlash(key))
}

// Parse reads the bytes of the file that messages call name. The environments keep
// their order, a protected one without require asks for [registry.DefaultRequire],
// and Digest is that of data. Errors: CodeInvalid with line and column.
func Parse(name string, data []byte) (registry.Environments, error) {
	var f file
	doc, err := strictyaml.Decode(name, data, &f)
	if err != nil {
		return registry.Environments{}, err
	}
	es := registry.Environments{
		Registry: f.Registry, List: f.Environments,
		Trust: checkTrust(doc, checkVersion(doc, f.Version), f.Trust), Digest: digest.FromBytes(data),
	}
	checkEnvironments(doc, es)
	return es, doc.Err()
}

// The versions of the file. One without a version is of version 1. Version 2 adds
// identities, key states and node types to trust entries.
const (
	version1 = 1
	version2 = 2
)

// checkVersion reports an unknown version, and returns the version by which to read the file.
func checkVersion(doc *strictyaml.Document, written *int) int {
	switch {
	case written == nil:
		return version1
	case *written != version1 && *written != version2:
		doc.At("version").Problemf("version %d of the file: this program knows %d and %d", *written, version1, version2)
		return version2 // other mistakes are reported by the newer version
	}
	return *written
}

// file is the content of environments.yaml.
type file struct {
	Version      *int    `yaml:"version"`
	Registry     string  `yaml:"registry,required"`
	Environments chain   `yaml:"environments,required"`
	Trust        []entry `yaml:"trust,required"`
}

// chain is a mapping whose order counts.
type chain []registry.Environment

// environment is what the mapping says of one name.
type environment struct {
	From      string    `yaml:"from"`
	Require   *[]string `yaml:"require"`
	Registry  host      `yaml:"registry"`
	Operators digests   `yaml:"operators"`
}

// host is the host of another registry.
type host string

// DecodeYAML reads the host where it stands, so that a problem has that place.
func (h *host) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Scalar {
		n.Problemf("registry is %s: want HOST[:PORT]", n.Kind())
		return
	}
	if err := registry.ValidateHost(n.Text()); err != nil {
		n.Problemf("%s", err)
		return
	}
	*h = host(n.Text())
}

// digests are of libraries of operators.
type digests []registry.Digest

// DecodeYAML reads the list. In brackets and without quotes YAML takes a digest for a
// mapping.
func (ds *digests) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Sequence {
		n.Problemf("operators is %s: want a list of digests of libraries", n.Kind())
	}
	for _, item := range n.Items() {
		d := registry.Digest(item.Text())
		if item.Kind() != strictyaml.Scalar || d.Validate() != nil {
			item.Problemf("want the digest of a library in quotes, \"sha256:\" and what sha256sum prints")
		}
		*ds = append(*ds, d)
	}
}

// DecodeYAML reads the mapping. "name:" alone is an environment without more to say.
func (c *chain) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping {
		n.Problemf("environments is %s: want a mapping from name to from and require", n.Kind())
		return
	}
	for _, e := range n.Entries() {
		var written environment
		if e.Value.Kind() != strictyaml.Null {
			e.Value.Decode(&written)
		}
		*c = append(*c, registry.Environment{Name: e.Key, From: written.From, Require: written.require(), Registry: string(written.Registry), Operators: written.Operators})
	}
}

// require is what is asked for: nothing of who is not protected, the default where
// the key is absent.
func (e environment) require() []string {
	switch {
	case e.Require != nil:
		return *e.Require
	case e.From != "":
		return registry.DefaultRequire()
	}
	return nil
}

// checkEnvironments finds the environment that the rules of [registry.Environments]
// object to by growing the chain one by one.
func checkEnvironments(doc *strictyaml.Document, es registry.Environments) {
	if err := (registry.Environments{Registry: es.Registry, List: []registry.Environment{{Name: "x"}}}).Validate(); err != nil {
		doc.At("registry").Problemf("%s", err)
		return
	}
	if len(es.List) == 0 {
		doc.At("environments").Problemf("%s", es.Validate())
		return
	}
	for i, e := range es.List {
		at := doc.At("environments").Entries()[i]
		if e.Protected() && len(e.Require) == 0 {
			doc.At("environments", e.Name, "require").Problemf("environment %s: require is empty, which would ask for nothing: remove the key for the default %v", e.Name, registry.DefaultRequire())
			continue
		}
		grown := es
		grown.List = es.List[:i+1]
		if err := grown.Validate(); err != nil {
			at.Name.Problemf("%s", err)
			return
		}
	}
}
