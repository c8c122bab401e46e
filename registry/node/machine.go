package node

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// MachineID is the file with the identity that systemd and most distributions give a machine. It does not change, and
// should not be told to others.
const MachineID = "/etc/machine-id"

// minMachineID is the fewest characters of an identity that nobody guesses.
const minMachineID = 32

// Machine is a machine's proof that a report is its own: a keyed digest of its identity, as machine-id(5) asks for, so that
// the identity itself stays here. A machine without the default file has none: "". Errors: CodeInvalid for another file
// that cannot be read or is too short.
func Machine(file string) (string, error) {
	text, err := os.ReadFile(file)
	id := strings.TrimSpace(string(text))
	switch {
	case file == MachineID && (errors.Is(err, fs.ErrNotExist) || err == nil && len(id) < minMachineID):
		return "", nil // as in most containers
	case err != nil:
		return "", registry.Errorf(registry.CodeInvalid, "machine-id: %w", err)
	case len(id) < minMachineID:
		return "", registry.Errorf(registry.CodeInvalid, "machine-id: %s: want at least %d characters that no other machine has", file, minMachineID)
	}
	mac := hmac.New(sha256.New, []byte(id))
	_, _ = mac.Write([]byte("mlpromote node report"))
	return hex.EncodeToString(mac.Sum(nil)), nil
}
