package keys

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
)

// UseIdentity lets a role sign with certificates for an identity, by default every role. It returns the file that says
// so. Errors: CodeInvalid for an identity that cannot sign, also where nothing would show when it
// signed; CodeConflict if there is a key of that name.
func (f Folder) UseIdentity(role evidence.Role, i authority.Identity) (path string, err error) {
	if role == evidence.RolePublisher || role == evidence.RoleAttester {
		return "", registry.Errorf(registry.CodeInvalid, "the role %s signs with a key, not as an identity: mlpromote key generate --role %[1]s", role)
	}
	base := filepath.Join(f.Dir, cmp.Or(string(role), signer.LocalKey))
	for _, extension := range extensions {
		if err := free(base + extension); err != nil {
			return "", err
		}
	}
	if err := i.Validate(); err != nil {
		return "", err
	}
	stamps, err := authority.LoadTimestamps(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := i.CheckDated(stamps); err != nil {
		return "", err
	}
	return base + authority.Extension, f.write(base+authority.Extension, []byte(i.Text()), 0o600)
}
