package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// AccessFile names the trusted issuers, and what their identities may do.
const AccessFile = "access.yaml"

// Files locates the configuration of a process.
type Files struct {
	// Dir has environments.yaml and access.yaml. Relative paths in them start there.
	Dir string
	// File, if set, is read in place of environments.yaml.
	File string
	// Promoter is the key with which this process signs promotions, or "".
	Promoter registry.Digest
	// PromoterFile is the path of that public key as an entry of the trust list would name
	// it, or "".
	PromoterFile string
	// PromoterIdentity means that this process signs promotions with certificates for an identity, which it has no key for.
	PromoterIdentity bool
	// KeyID returns the identifier of a public key in PEM, and fails for anything else. Nil
	// checks no key.
	KeyID func(pem []byte) (string, error)
	// CheckRoot checks the bytes of a root, as [trust.Root] has them. Nil checks none.
	CheckRoot func(r trust.Root, data []byte) error
}

// Snapshot is the configuration at one moment.
type Snapshot struct {
	history.Configuration
	Environments policy.Environments
	Access       oidc.Config // zero without access.yaml

	isDefault    bool                 // without environments.yaml, the embedded default is used
	keys         map[string]publicKey // by path in the trust list; without missing files
	promoterFile string
	// promoterIdentity is [Files.PromoterIdentity].
	promoterIdentity bool
}

// publicKey is the file of a public key.
type publicKey struct {
	pem []byte
	id  string // empty without [Files.KeyID]
}

// Key returns the PEM file of a public key that the trust list names. If the file was missing,
// the error wraps [fs.ErrNotExist].
func (s Snapshot) Key(path string) ([]byte, error) {
	key, ok := s.keys[path]
	if !ok {
		return nil, registry.Errorf(registry.CodeNotFound, "public key %s: %w", path, fs.ErrNotExist)
	}
	return key.pem, nil
}

// MissingKeys lists the paths in the trust list that have no file.
func (s Snapshot) MissingKeys() []string {
	var missing []string
	for _, e := range s.Environments.Trust {
		if _, exists := s.keys[e.Key]; !exists && e.Identity == nil {
			missing = append(missing, e.Key)
		}
	}
	return missing
}

// attempts bounds how often Read starts again because files changed while it read them.
const attempts = 5

// Read reads all files until two reads in a row return the same. If a folder is replaced
// meanwhile, Read does not combine the old half of one file with the new half of another.
// Errors: CodeInvalid, with the line, for unusable files; CodeConflict for files that keep
// changing; CodeInternal for unreadable files.
func (f Files) Read() (Snapshot, error) {
	before, err := f.read()
	for range attempts {
		if err != nil {
			return Snapshot{}, err
		}
		var again Snapshot
		if again, err = f.read(); err == nil && again.Configuration == before.Configuration {
			return again, nil
		}
		before = again
	}
	return Snapshot{}, registry.Errorf(registry.CodeConflict, "the files in %s change while they are read: try again", f.Dir)
}

func (f Files) read() (Snapshot, error) {
	es, isDefault, err := f.environments()
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Environments: es, isDefault: isDefault, keys: make(map[string]publicKey), promoterFile: f.PromoterFile, promoterIdentity: f.PromoterIdentity}
	for _, e := range es.Trust {
		if err := f.readKey(e, s.keys); err != nil {
			return Snapshot{}, err
		}
	}
	if f.KeyID != nil {
		s.Environments.KeyIDs = s.keyIDs()
	}
	if err := trust.CheckPublishersAlone(es.Trust, func(e trust.TrustEntry) string { return s.keys[e.Key].id }); err != nil {
		return Snapshot{}, err
	}
	for _, r := range es.Roots {
		if err := f.readRoot(r, s.keys); err != nil {
			return Snapshot{}, err
		}
	}
	if s.Environments.Configuration, err = s.environmentsDigest(); err != nil {
		return Snapshot{}, err
	}
	s.Access, err = oidc.Load(filepath.Join(f.Dir, AccessFile))
	access := s.Access.Digest
	if registry.HasCode(err, registry.CodeNotFound) {
		access, err = digest.FromBytes(nil), nil
	}
	s.Configuration = history.Configuration{Environments: s.Environments.Configuration, Access: access, Promoter: f.Promoter}
	return s, err
}

// keyIDs are the identifiers of the keys that were read.
func (s Snapshot) keyIDs() map[string]string {
	ids := make(map[string]string)
	for _, e := range s.Environments.Trust {
		if key, exists := s.keys[e.Key]; exists {
			ids[e.Key] = key.id
		}
	}
	return ids
}

// environments reads the file, or the embedded default if the file is missing, and reports
// which.
func (f Files) environments() (es policy.Environments, isDefault bool, err error) {
	if f.File != "" {
		es, err = environments.LoadFile(f.File)
		return es, false, err
	}
	es, err = environments.LoadFile(filepath.Join(f.Dir, environments.File))
	if registry.HasCode(err, registry.CodeNotFound) {
		es, err = environments.Load(f.Dir)
		return es, true, err
	}
	return es, false, err
}

// readKey reads the key of an entry. An entry whose file is missing has no effect, as on a
// laptop before the first build.
func (f Files) readKey(e trust.TrustEntry, into map[string]publicKey) error {
	if e.Identity != nil {
		return nil
	}
	path := environments.KeyPath(f.Dir, e.Key)
	data, err := strictyaml.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return registry.Errorf(registry.CodeInvalid, "public key %s: %w", path, err)
	}
	key := publicKey{pem: data}
	if f.KeyID != nil {
		if key.id, err = f.KeyID(data); err != nil {
			return registry.Errorf(registry.CodeInvalid, "public key %s: %w", path, err)
		}
	}
	into[e.Key] = key
	return nil
}

// readRoot reads a file with trusted authorities. Without it statements against releases could no
// longer be verified, so a missing one is an error.
func (f Files) readRoot(r trust.Root, into map[string]publicKey) error {
	path := environments.KeyPath(f.Dir, r.Path())
	data, err := strictyaml.ReadFile(path)
	if err == nil && f.CheckRoot != nil {
		err = f.CheckRoot(r, data)
	}
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "root %s of environments.yaml: %w", path, err)
	}
	into[r.Path()] = publicKey{pem: data}
	return nil
}

// environmentsDigest covers the bytes of environments.yaml and of the keys and roots that it names,
// in its order. The file itself covers their paths.
func (s Snapshot) environmentsDigest() (registry.Digest, error) {
	covered := []registry.Digest{s.Environments.Digest}
	for _, e := range s.Environments.Trust {
		if e.Identity != nil {
			continue
		}
		var of registry.Digest
		if key, exists := s.keys[e.Key]; exists {
			of = digest.FromBytes(key.pem)
		}
		covered = append(covered, of)
	}
	for _, r := range s.Environments.Roots {
		covered = append(covered, digest.FromBytes(s.keys[r.Path()].pem))
	}
	return registry.CanonicalDigest(covered)
}
