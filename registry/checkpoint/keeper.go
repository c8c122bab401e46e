package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Keeper makes checkpoints of the history of one catalog, and keeps each in the catalog. It keeps
// the tree in memory, so that only new events are read each time. It is safe for concurrent use.
type Keeper struct {
	// Registry returns the name of the registry.
	Registry func() string
	// History returns the unfiltered history of the catalog.
	History func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	// Kept has the checkpoints that were made.
	Kept   trust.Checkpoints
	Sign   trust.SignNote
	Verify trust.VerifyNote
	Now    storage.Clock // nil means time.Now
	// May returns why no checkpoint may be made now, or nil.
	May func(ctx context.Context) error

	mu       sync.Mutex
	tree     Tree
	compared int64 // size of the largest kept checkpoint that the tree extends
}

// Checkpoint returns the signed checkpoint of the whole history, which it makes and keeps unless
// there is one. Errors: CodeNotFound without events; CodeTrust if the history contradicts itself or
// a kept checkpoint, or if the signature would not count; as May and Sign.
func (k *Keeper) Checkpoint(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.grow(ctx); err != nil {
		return nil, err
	}
	return k.make(ctx)
}

// Every makes a checkpoint if at least n events are not covered by a kept one. It returns the size
// of the checkpoint that it made, or 0. Errors: as Checkpoint, except CodeNotFound.
func (k *Keeper) Every(ctx context.Context, n int64) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.grow(ctx); err != nil || k.tree.Size()-k.compared < n {
		return 0, err
	}
	_, err := k.make(ctx)
	return k.tree.Size(), err
}

// Check reads new events and compares the history with all kept checkpoints. Errors: CodeTrust if
// the history contradicts itself or a kept checkpoint.
func (k *Keeper) Check(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.compared = 0
	return k.grow(ctx)
}

// Proof returns the proof that the newest checkpoint covers an event. Errors: CodeNotFound if there
// is no such event; those of Checkpoint.
func (k *Keeper) Proof(ctx context.Context, seq int64) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.grow(ctx); err != nil {
		return nil, err
	}
	if seq < 1 || seq > k.tree.Size() {
		return nil, registry.Errorf(registry.CodeNotFound, "no event %d: the history has %d", seq, k.tree.Size())
	}
	note, err := k.make(ctx)
	if err != nil {
		return nil, err
	}
	p := Proof{Note: note}
	if p.Path, err = k.tree.prove(seq, k.tree.Size()); err != nil {
		return nil, err
	}
	for e, err := range k.History(ctx, history.HistoryQuery{After: seq - 1, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		p.Event = e
	}
	// The event was read again: it must still be the one in the tree.
	if _, err := p.Check(ctx, k.Verify, k.now()); err != nil {
		return nil, err
	}
	return p.Marshal()
}

// grow lists the kept checkpoints, then reads the events that came since the last time, and
// compares both. In this order no checkpoint of another replica is ahead of the events.
func (k *Keeper) grow(ctx context.Context) error {
	var kept []Seen
	for c, err := range All(ctx, k.Kept, k.compared) {
		if err != nil {
			return err
		}
		seen, err := SeenIn(c, k.Registry())
		if err != nil {
			return err
		}
		kept = append(kept, seen)
	}
	if err := k.read(ctx); err != nil {
		return err
	}
	faults, err := k.tree.Compare(k.Registry(), kept)
	for _, f := range faults {
		err = errors.Join(err, f.Err())
	}
	if err == nil && len(kept) > 0 {
		k.compared = kept[len(kept)-1].Size
	}
	return err
}

// read adds new events to the tree. It reads the newest known event again: if that is gone, the
// history was cut while this process ran.
func (k *Keeper) read(ctx context.Context) error {
	size, last := k.tree.Size(), k.tree.Last()
	for e, err := range k.History(ctx, history.HistoryQuery{After: max(size-1, 0)}) {
		if err != nil {
			return err
		}
		if last == "" {
			if err := k.tree.Append(e); err != nil {
				return err
			}
			continue
		}
		if e.Seq != size || e.Hash != last {
			return registry.Errorf(registry.CodeTrust,
				"the history was %s: event %d has the hash %s, and event %d had %s when this process read it", Rewritten, e.Seq, e.Hash, size, last)
		}
		last = ""
	}
	if last != "" {
		return registry.Errorf(registry.CodeTrust, "the history was %s: event %d is gone, which this process had read", Truncated, size)
	}
	return nil
}

// make signs and keeps a checkpoint of the tree. One that is kept and counts is returned as it is.
func (k *Keeper) make(ctx context.Context) ([]byte, error) {
	c, err := k.tree.At(k.Registry(), k.tree.Size())
	if err != nil {
		return nil, err
	}
	if kept, err := k.Kept.Get(ctx, keptName(c.Size)); err == nil {
		signed, err := Open(ctx, k.Verify, []byte(kept.Note))
		if err == nil && signed.Checkpoint == c && signed.CountsAt(k.now()) == nil {
			return signed.Note, nil
		}
	} else if !registry.HasCode(err, registry.CodeNotFound) {
		return nil, err
	}
	if k.May != nil {
		if err := k.May(ctx); err != nil {
			return nil, err
		}
	}
	note, err := k.Sign(ctx, Role, c.Origin.String(), c.Text())
	if err != nil {
		return nil, err
	}
	if err := k.counts(ctx, note); err != nil {
		return nil, err
	}
	if err := k.Kept.Put(ctx, keptName(c.Size), trust.KeptCheckpoint{Size: c.Size, Note: string(note)}); err != nil {
		return nil, err
	}
	k.compared = c.Size
	return note, nil
}

func (k *Keeper) now() time.Time {
	if k.Now == nil {
		return time.Now()
	}
	return k.Now()
}

// counts checks that others will accept a checkpoint, as far as they trust the keys that are
// trusted here.
func (k *Keeper) counts(ctx context.Context, note []byte) error {
	signed, err := Open(ctx, k.Verify, note)
	if err == nil {
		err = signed.CountsAt(k.now())
	}
	switch {
	case registry.HasCode(err, registry.CodeTrust):
		return registry.WithHint(
			registry.Errorf(registry.CodeTrust,
				"the key that signs as %s is not trusted as one for the whole registry, so its checkpoints would not count: %w", Role, err),
			"add to trust: in environments.yaml the line   - {key: FILE, roles: [%s], resources: [%q]}", Role, Origin{Registry: k.Registry()}.Resource())
	default:
		return err
	}
}

// KeptAfter lists up to limit kept checkpoints of more than size events, by size.
func (k *Keeper) KeptAfter(ctx context.Context, size int64, limit int) ([]trust.KeptCheckpoint, error) {
	var found []trust.KeptCheckpoint
	for c, err := range All(ctx, k.Kept, size) {
		if err != nil {
			return nil, err
		}
		if found = append(found, c); len(found) == limit {
			break
		}
	}
	return found, nil
}

// Kept reads the kept checkpoint of a number of events. Errors: CodeNotFound.
func Kept(ctx context.Context, kept trust.Checkpoints, size int64) (trust.KeptCheckpoint, error) {
	return kept.Get(ctx, keptName(size))
}

// keptName is the name of a kept checkpoint: its size, so that the order of names is that of sizes.
func keptName(size int64) string { return fmt.Sprintf("%019d", size) }

// SeenIn reads a checkpoint that the registry keeps, without verifying its signature. It takes the
// name of the registry for that in its origin, because registries can be renamed. Errors: CodeTrust.
func SeenIn(c trust.KeptCheckpoint, name string) (Seen, error) {
	at, err := Peek([]byte(c.Note))
	if err != nil || at.Size != c.Size {
		return Seen{}, registry.Errorf(registry.CodeTrust,
			"the checkpoint of %d events that the registry keeps was changed: it covers %d (%v)", c.Size, at.Size, err)
	}
	at.Origin.Registry = name
	return Seen{Checkpoint: at, Name: fmt.Sprintf("the checkpoint of %d events that the registry keeps", c.Size)}, nil
}

// All lists the kept checkpoints of more than after events, by size. An error ends the sequence:
// CodeTrust for one that is kept under another size than its own.
func All(ctx context.Context, kept trust.Checkpoints, after int64) iter.Seq2[trust.KeptCheckpoint, error] {
	return func(yield func(trust.KeptCheckpoint, error) bool) {
		for name := keptName(after); ; {
			page, err := kept.List(ctx, name, storage.MaxPage)
			if err != nil {
				yield(trust.KeptCheckpoint{}, err)
				return
			}
			for _, c := range page {
				if name = c.Name; name != keptName(c.Document.Size) {
					err = registry.Errorf(registry.CodeTrust, "the registry keeps a checkpoint of %d events under the name %.40q", c.Document.Size, name)
				}
				if !yield(c.Document, err) || err != nil {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}
