package wiring

import (
	"context"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/keys"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
)

// Identity says how to sign with certificates for an identity.
type Identity = keys.Identity

// PolicyFolder has environments.yaml and access.yaml.
func (l Location) PolicyFolder() string {
	if l.PolicyDir != "" {
		return l.PolicyDir
	}
	return l.Data
}

// Files is the configuration of a verb.
func (l Location) Files() config.Files {
	return config.Files{Dir: l.PolicyFolder(), CheckRoot: signer.CheckRoot}
}

// SignedFiles is the configuration of a service: that of a verb, with the key that signs
// promotions. Errors: CodeUnavailable where there is no such key; CodeInvalid where it
// cannot be opened. The files can be used all the same.
func (l Location) SignedFiles(ctx context.Context, keys *signer.Keyring) (config.Files, error) {
	f := l.Files()
	f.KeyID = signer.KeyID
	s, err := keys.Signer(ctx, evidence.RolePromoter)
	if err == nil && s.KeyID() == "" { // an identity has no key of its own
		f.PromoterIdentity = true
	} else if err == nil {
		f.Promoter, f.PromoterFile = digest.NewDigestFromEncoded(digest.SHA256, s.KeyID()), l.promoterFile(s)
	}
	return f, err
}

// promoterFile is where the public key of the promoter is, as environments.yaml would name
// it; empty where no file beside the private key has it.
func (l Location) promoterFile(s signer.Signer) string {
	path := l.PublicKeyFile(evidence.RolePromoter, s)
	if path == "" {
		return ""
	}
	if below, err := filepath.Rel(l.PolicyFolder(), path); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	absolute, _ := filepath.Abs(path)
	return filepath.ToSlash(absolute)
}

// PublicKeyFile is the file in the folder of keys that has the public key of a signer in a role; empty if no file has it.
func (l Location) PublicKeyFile(role evidence.Role, s signer.Signer) string {
	for _, name := range []string{string(role), signer.LocalKey} {
		path := filepath.Join(l.KeyDir(), name+".pub")
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if id, err := signer.KeyID(data); err == nil && id == s.KeyID() {
			return path
		}
	}
	return ""
}
