// Package environments parses environments.yaml. The file defines the environments, what each
// requires of a release, and which keys are trusted for which roles. If a directory has no such
// file, an embedded default applies: two environments, rules that bound every limit, and one key with all roles.
//
// A misspelled key would silently weaken a policy, so everything that Parse does not recognize
// is an error with its line.
package environments

import (
	_ "embed"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
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

// Default returns the content of the default environments.yaml: the rules of a registry without the file, and the file that
// mlpromote init writes.
func Default() []byte { return append([]byte(nil), defaults...) }

// Schema returns the JSON Schema (draft 2020-12) of the file, for editors.
func Schema() []byte { return append([]byte(nil), schema...) }

// Load reads dir/environments.yaml, or returns the default if dir has no such file. Key paths
// stay as written: [KeyPath] resolves them. Errors: those of [Parse]; CodeInternal if the file
// cannot be read.
func Load(dir string) (policy.Environments, error) {
	es, err := LoadFile(filepath.Join(dir, File))
	if registry.HasCode(err, registry.CodeNotFound) {
		return Parse("default "+File, defaults)
	}
	return es, err
}

// LoadFile reads the file at path. Errors: those of [Load]; CodeNotFound if the file does not
// exist.
func LoadFile(path string) (policy.Environments, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return policy.Environments{}, registry.Errorf(registry.CodeNotFound, "%s: no such file", path)
	case registry.HasCode(err, registry.CodeInvalid):
		return policy.Environments{}, err
	case err != nil:
		return policy.Environments{}, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	return Parse(path, data)
}

// KeyPath returns the path of a trust entry's key. A relative path starts at dir, the folder of
// the file that names the key.
func KeyPath(dir, key string) string {
	if filepath.IsAbs(key) {
		return filepath.Clean(key)
	}
	return filepath.Join(dir, filepath.FromSlash(key))
}

// Parse parses a file. Messages call it name. The environments keep their order, a protected
// environment without require gets [policy.DefaultRequire], and Digest is that of data.
// Errors: CodeInvalid with line and column.
func Parse(name string, data []byte) (policy.Environments, error) {
	var f file
	doc, err := strictyaml.Decode(name, data, &f)
	if err != nil {
		return policy.Environments{}, err
	}
	checkVersion(doc, f.Version)
	es := policy.Environments{
		Registry: f.Registry, List: f.Environments,
		Trust: checkTrust(doc, f.Trust), Roots: checkRoots(doc, f.Roots), Digest: digest.FromBytes(data),
	}
	checkApprovals(doc, es)
	checkEnvironments(doc, es)
	return es, doc.Err()
}

// fileVersion is the version of the file. A file can leave it out.
const fileVersion = 1

// checkVersion reports an unknown version.
func checkVersion(doc *strictyaml.Document, written *int) {
	if written != nil && *written != fileVersion {
		doc.At("version").Problemf("version %d of the file: this program knows %d", *written, fileVersion)
	}
}

// file is the content of environments.yaml.
type file struct {
	Version      *int    `yaml:"version"`
	Registry     string  `yaml:"registry,required"`
	Environments chain   `yaml:"environments,required"`
	Trust        []entry `yaml:"trust,required"`
	Roots        []root  `yaml:"roots"`
}

// chain is a mapping that keeps the order of its keys.
type chain []policy.Environment

// environment is the value of one name in the mapping.
type environment struct {
	From      string    `yaml:"from"`
	Require   *[]string `yaml:"require"`
	Registry  host      `yaml:"registry"`
	Operators digests   `yaml:"operators"`
	Accuracy  *accuracy `yaml:"accuracy"`
	Ceilings  ceilings  `yaml:"ceilings"`
	CIJob     *ciJob    `yaml:"ci-job"`
	Approvals approvals `yaml:"approvals"`
	Reports   reports   `yaml:"reports"`
	Coverage  coverage  `yaml:"coverage"`
	Served    served    `yaml:"served"`
	Freeze    freezes   `yaml:"freeze"`
	Break     []string  `yaml:"break-glass"`
}

// host is the host of an external registry.
type host string

// DecodeYAML reads the host here, so that an error has its line and column.
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

// DecodeYAML reads the mapping. "name:" alone is an environment with default settings.
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
		*c = append(*c, policy.Environment{Name: e.Key, From: written.From, Require: written.require(), Registry: string(written.Registry),
			Operators: written.Operators, Accuracy: written.Accuracy.requirement(), Ceilings: policy.Ceilings(written.Ceilings), CIJob: written.CIJob.rule(),
			Approvals: written.Approvals.ApprovalRule, Reports: written.Reports.rule(), Coverage: written.Coverage.rule(), Served: written.Served.ServedRule,
			Freeze: written.Freeze, BreakGlass: written.Break})
	}
}

// require returns the requirements of an environment: an empty list if it is not protected, the
// default if the key is absent.
func (e environment) require() []string {
	switch {
	case e.Require != nil:
		return *e.Require
	case e.From != "":
		return policy.DefaultRequire()
	}
	return nil
}

// checkEnvironments adds the environments one by one, to find the one that violates the rules
// of [policy.Environments].
func checkEnvironments(doc *strictyaml.Document, es policy.Environments) {
	if err := (policy.Environments{Registry: es.Registry, List: []policy.Environment{{Name: "x"}}}).Validate(); err != nil {
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
			doc.At("environments", e.Name,
				"require").Problemf("environment %s: require is empty, which would ask for nothing: remove the key for the default %v",
				e.Name, policy.DefaultRequire())
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
