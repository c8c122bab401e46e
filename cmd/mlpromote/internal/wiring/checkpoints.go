package wiring

import (
	"context"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// Keeper makes checkpoints of the history of the data directory. current is the registry by the
// configuration that is in force.
func (here *Local) Keeper(sign trust.SignNote, current func() *Instance) *checkpoint.Keeper {
	return &checkpoint.Keeper{
		Registry: func() string { return current().Envs.Registry }, History: here.DB.History, Kept: here.DB.Checkpoints(), Sign: sign, Now: clock.Now,
		Verify: func(ctx context.Context, note []byte, role evidence.Role, name, resource string) (trust.SignedNote, error) {
			return current().VerifyNote(ctx, note, role, name, resource)
		},
	}
}

// SignNoteServed is signServed for notes.
func SignNoteServed(keys *signer.Keyring) trust.SignNote {
	return func(ctx context.Context, role evidence.Role, name, text string) ([]byte, error) {
		note, err := keys.SignNote(ctx, role, name, text)
		if err == nil || ctx.Err() != nil {
			return note, err
		}
		return nil, notSigned(role, err)
	}
}

// keptCheckpoint reads a checkpoint of the catalog, by its size.
func (here *Local) keptCheckpoint(ctx context.Context, size int64) (trust.KeptCheckpoint, error) {
	return checkpoint.Kept(ctx, here.DB.Checkpoints(), size)
}
