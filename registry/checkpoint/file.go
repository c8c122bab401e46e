package checkpoint

import (
	"context"
	"io"
	"os"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
)

// OpenFile reads a signed checkpoint from a file and verifies it as [Open] does.
func OpenFile(ctx context.Context, verify trust.VerifyNote, path string) (Signed, error) {
	f, err := os.Open(path)
	if err != nil {
		return Signed{}, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	defer f.Close()
	note, err := io.ReadAll(io.LimitReader(f, MaxNote+1)) // Open refuses a longer one
	if err != nil {
		return Signed{}, registry.Errorf(registry.CodeInvalid, "%s: %w", path, err)
	}
	signed, err := Open(ctx, verify, note)
	if err != nil {
		return Signed{}, registry.Errorf(registry.CodeOf(err), "%s: %w", path, err)
	}
	return signed, nil
}
