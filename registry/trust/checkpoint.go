package trust

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// KeptCheckpoint is a signed checkpoint of the history that the registry keeps.
type KeptCheckpoint struct {
	Size int64  `json:"size"` // number of events that it covers
	Note string `json:"note"` // C2SP tlog-checkpoint
}

// Checkpoints keeps the signed checkpoints of the history, by their size.
type Checkpoints = registry.Table[KeptCheckpoint]

// SignNote signs a text in a role, under a name, and returns a C2SP signed-note. Errors:
// CodeUnavailable if this process has no key for the role; CodeInvalid if the text could be
// taken for something else that keys sign.
type SignNote func(ctx context.Context, role evidence.Role, name, text string) ([]byte, error)

// VerifyNote verifies a C2SP signed-note. It returns the text if a key that has the role for the
// resource signed it under the name. Errors: CodeTrust if no such key did, or if the signature of
// one is wrong.
type VerifyNote func(ctx context.Context, note []byte, role evidence.Role, name, resource string) (SignedNote, error)

// SignedNote is a text whose signature was verified. The state of the key is for the caller to
// judge.
type SignedNote struct {
	Text      string
	Signer    string // key identifier
	Key       evidence.KeyState
	RetiredAt time.Time       // if Key is KeyRetired
	Window    evidence.Window // in which what the key signs counts
}
