package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// maxPulledDocument bounds what is read of a pulled folder's manifest and bundles.
const maxPulledDocument = 4 << 20

// TrustResult says why a pulled folder may be trusted.
type TrustResult struct {
	Record   PullRecord       `json:"record"`
	Builder  string           `json:"builder"`            // key that signed the engine
	Promoter string           `json:"promoter,omitempty"` // key that signed its summary
	Claims   []registry.Claim `json:"-"`
}

// trustHint says where a machine keeps whom it trusts.
const trustHint = "whom this machine trusts stands in environments.yaml of the data directory, or in the file that --trust names"

// Expectation is what is known about environments from elsewhere than a pulled folder,
// whose own record nobody signed. The zero Expectation wants a summary of a promoter,
// for whatever repository the folder names.
type Expectation struct {
	Registry    string                        // name of the registry; empty accepts any
	Unprotected func(environment string) bool // environments that are pulled from without a summary; nil means none
}

// TrustDir checks a folder that Pull made: every file is what the manifest says and
// none is there besides; the manifest is the engine that was resolved; a trusted
// builder signed it, and for a protected environment a trusted promoter allowed it
// there. It reads only the folder. Errors: CodeInvalid for a folder that Pull did not
// make; CodeDigest and CodeTrust for one that was changed or cannot be trusted.
func (p *Pipeline) TrustDir(ctx context.Context, dir string, want Expectation) (TrustResult, error) {
	record, err := readRecord(dir)
	if err != nil {
		return TrustResult{}, err
	}
	ref, err := registry.ParseReference(record.Reference)
	if err != nil {
		return TrustResult{}, err
	}
	if err := want.check(dir, record, ref); err != nil {
		return TrustResult{}, err
	}
	if err := p.checkFiles(dir, ref.Digest); err != nil {
		return TrustResult{}, err
	}
	claims, err := p.pulledClaims(ctx, dir, record.Resource, ref.Digest)
	if err != nil {
		return TrustResult{}, err
	}
	result := TrustResult{Record: record, Claims: claims}
	for _, c := range claims {
		switch {
		case c.Statement.PredicateType == registry.PredicateSign && slices.Contains(c.Roles, registry.RoleBuilder):
			result.Builder = c.Signer
		case allows(c, record.Resource):
			result.Promoter = c.Signer
		}
	}
	if result.Builder == "" {
		return result, registry.WithHint(registry.Errorf(registry.CodeTrust, "no signature of a trusted builder on %s", record.Reference), "%s", trustHint)
	}
	if result.Promoter == "" && (want.Unprotected == nil || !want.Unprotected(ref.Environment)) {
		return result, registry.WithHint(registry.Errorf(registry.CodeTrust, "no verification summary of a trusted promoter for %s on %s", record.Resource, record.Reference), "%s", trustHint)
	}
	return result, nil
}

// check refuses a record whose repository and resource disagree, or that names another
// registry.
func (want Expectation) check(dir string, record PullRecord, ref registry.Reference) error {
	name, ok := strings.CutPrefix(record.Resource, "oci://")
	name, fits := strings.CutSuffix(name, "/"+ref.Repository())
	if !ok || !fits || (want.Registry != "" && name != want.Registry) {
		return registry.Errorf(registry.CodeTrust, "%s: its record names %s as the resource of %s: pull again", dir, record.Resource, record.Reference)
	}
	return nil
}

// allows reports whether the claim is a summary that lets its subjects into the resource.
func allows(c registry.Claim, resource string) bool {
	var v registry.VSA
	return c.Statement.PredicateType == registry.PredicateVSA && slices.Contains(c.Roles, registry.RolePromoter) &&
		json.Unmarshal(c.Statement.Predicate, &v) == nil && v.ResourceURI == resource && v.VerificationResult == registry.VSAPassed
}

// checkFiles compares the folder with the manifest of the engine.
func (p *Pipeline) checkFiles(dir string, engine registry.Digest) error {
	manifest, err := readBounded(filepath.Join(dir, PulledDir, pulledManifest))
	if err != nil {
		return err
	}
	if got := digest.FromBytes(manifest); got != engine {
		return registry.Errorf(registry.CodeDigest, "%s: the manifest is %s, and %s was pulled: pull again", dir, got, engine)
	}
	part, err := p.ReadPart(manifest)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, f := range part.Files {
		known[f.Path] = true
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return registry.Errorf(registry.CodeTrust, "%s: %s is no regular file: pull again", dir, f.Path)
		}
		got, _, err := toolchain.HashFile(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && got != f.Digest {
			return registry.Errorf(registry.CodeDigest, "%s: file %s is not what was pulled (%s): pull again", dir, f.Path, f.Digest)
		}
		if err != nil {
			return err
		}
	}
	return strangers(dir, known)
}

// strangers refuses files that the manifest does not know.
func strangers(dir string, known map[string]bool) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case name == PulledDir:
			return fs.SkipDir
		case !entry.IsDir() && !known[filepath.ToSlash(name)]:
			return registry.Errorf(registry.CodeTrust, "%s: file %s is not part of what was pulled", dir, name)
		}
		return nil
	})
}

// pulledClaims verifies the bundles of the folder that are about the engine.
func (p *Pipeline) pulledClaims(ctx context.Context, dir, resource string, engine registry.Digest) ([]registry.Claim, error) {
	folder := filepath.Join(dir, PulledDir, pulledBundles)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "%s: no bundles: %w", dir, err)
	}
	var claims []registry.Claim
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := readBounded(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		claim, err := p.CheckBundle(ctx, data, resource)
		if err == nil && claim.Statement.About(engine) {
			claim.Subject = engine
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, registry.Errorf(registry.CodeTrust, "%w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPulledDocument {
		return nil, registry.Errorf(registry.CodeTrust, "%s: want a file of at most %d bytes", path, maxPulledDocument)
	}
	return os.ReadFile(path)
}
