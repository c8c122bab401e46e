package environments

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Trust is the part of environments.yaml that a node needs: who may sign what in a registry.
type Trust struct {
	Registry string
	Entries  []trust.TrustEntry
	Roots    []trust.Root
	Dir      string          // that relative key paths start from, for KeyPath
	Digest   registry.Digest // of the file's bytes
	// Follow is set in a file that follows the trust bundles of the registry. It has no Entries and no Roots.
	Follow *Follow
}

// Follow says whose trust bundles a machine accepts, and where it remembers them.
type Follow struct {
	Publishers []string // paths of public keys, for KeyPath
	State      string   // path of a folder
}

// follow is the mapping as it is written.
type follow struct {
	Publishers []string `yaml:"publishers,required"`
	State      string   `yaml:"state,required"`
}

// LoadTrust reads a file that holds only registry and trust, written as in environments.yaml, or
// registry and follow.
// Errors: CodeInvalid with line and column; CodeNotFound if the file does not exist;
// CodeInternal if it cannot be read.
func LoadTrust(path string) (Trust, error) {
	data, err := readTrust(path)
	if err != nil {
		return Trust{}, err
	}
	var f struct {
		Version  *int    `yaml:"version"`
		Registry string  `yaml:"registry,required"`
		Trust    []entry `yaml:"trust"`
		Roots    []root  `yaml:"roots"`
		Follow   *follow `yaml:"follow"`
	}
	doc, err := strictyaml.Decode(path, data, &f)
	if err != nil {
		return Trust{}, err
	}
	checkVersion(doc, f.Version)
	t := Trust{Registry: f.Registry, Dir: filepath.Dir(path), Digest: digest.FromBytes(data)}
	if f.Follow != nil {
		t.Follow = checkFollow(doc, *f.Follow, t.Dir)
	} else {
		if !slices.ContainsFunc(doc.Root().Entries(), func(e strictyaml.Entry) bool { return e.Key == "trust" }) {
			doc.Root().Problemf("key %q is missing, or %q", "trust", "follow")
		} else {
			t.Entries = checkTrust(doc, f.Trust)
		}
		t.Roots = checkRoots(doc, f.Roots)
	}
	checkEnvironments(doc, policy.Environments{Registry: f.Registry, List: []policy.Environment{{Name: "any"}}})
	return t, doc.Err()
}

// checkFollow reads whom to follow, and reports mistakes.
func checkFollow(doc *strictyaml.Document, f follow, dir string) *Follow {
	for _, e := range doc.Root().Entries() {
		if e.Key == "trust" || e.Key == "roots" {
			e.Name.Problemf("%s stands beside follow: want one of them, since trust comes with the bundles that are followed", e.Key)
		}
	}
	if len(f.Publishers) == 0 {
		doc.At("follow", "publishers").Problemf("publishers is empty: want the path of the public key of a publisher")
	}
	for i, key := range f.Publishers {
		if key == "" || strings.ContainsRune(key, 0) {
			doc.At("follow", "publishers", i).Problemf("want the path of a public key in PEM")
		}
	}
	if f.State == "" || strings.ContainsRune(f.State, 0) {
		doc.At("follow", "state").Problemf("want the path of a folder, which remembers what was accepted")
	}
	return &Follow{Publishers: f.Publishers, State: KeyPath(dir, f.State)}
}

// readTrust reads a file that the user named, so a missing file is an error.
func readTrust(path string) ([]byte, error) {
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, registry.Errorf(registry.CodeNotFound,
			"trust file %s: no such file: want a file with the keys registry and trust", path)
	case err != nil && !registry.HasCode(err, registry.CodeInvalid):
		return nil, registry.Errorf(registry.CodeInternal, "read %s: %w", path, err)
	}
	return data, err
}
