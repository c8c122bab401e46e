package checkpoint

import (
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Tree is the Merkle tree of a history. It takes 64 bytes for each event. The zero Tree has no
// events.
type Tree struct {
	first  registry.Digest // hash of the first event
	last   history.Event   // Seq and Hash only
	hashes []tlog.Hash     // at their stored index: [tlog.StoredHashIndex]
}

// Append adds the next event. Errors: CodeTrust, with the tree unchanged, if it does not follow the
// event before, or was changed.
func (t *Tree) Append(e history.Event) error {
	if err := e.VerifyChain(t.last); err != nil {
		return err
	}
	leaf, err := leafOf(e.Hash)
	if err != nil {
		return err
	}
	added, err := tlog.StoredHashesForRecordHash(t.last.Seq, leaf, t)
	if err != nil {
		return registry.Errorf(registry.CodeInternal, "event %d: %w", e.Seq, err)
	}
	if t.last.Seq == 0 {
		t.first = e.Hash
	}
	t.hashes = append(t.hashes, added...)
	t.last = history.Event{Seq: e.Seq, Hash: e.Hash}
	return nil
}

// leafOf returns the hash of the leaf of an event, from the event's own hash.
func leafOf(d registry.Digest) (tlog.Hash, error) {
	text, _ := strings.CutPrefix(string(d), "sha256:")
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != tlog.HashSize || string(d) != "sha256:"+hex.EncodeToString(raw) {
		return tlog.Hash{}, registry.Errorf(registry.CodeTrust, "hash %.100q of an event: want a sha256 digest", d)
	}
	return tlog.RecordHash(raw), nil
}

// ReadHashes returns hashes of the tree by their stored indexes. It makes the tree a
// [tlog.HashReader].
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.hashes)) {
			return nil, fmt.Errorf("the tree has %d hashes, and none at %d", len(t.hashes), at)
		}
		found[i] = t.hashes[at]
	}
	return found, nil
}

// Size returns the number of events.
func (t *Tree) Size() int64 { return t.last.Seq }

// Last returns the hash of the newest event, or "" without events.
func (t *Tree) Last() registry.Digest { return t.last.Hash }

// At returns the checkpoint of the first size events. name is the registry's. Errors:
// CodeNotFound if there are not so many events, or size is 0.
func (t *Tree) At(name string, size int64) (Checkpoint, error) {
	if size < 1 || size > t.Size() {
		return Checkpoint{}, registry.Errorf(registry.CodeNotFound,
			"the history has %s: there is nothing to make a checkpoint of %d of", registry.Count(int(t.Size()), "event"), size)
	}
	root, err := tlog.TreeHash(size, t)
	if err != nil {
		return Checkpoint{}, registry.Errorf(registry.CodeInternal, "root of %d events: %w", size, err)
	}
	return Checkpoint{Origin: Origin{Registry: name, First: t.first}, Size: size, Root: root}, nil
}

// prove returns the path from an event to the root of the first size events.
func (t *Tree) prove(seq, size int64) (tlog.RecordProof, error) {
	path, err := tlog.ProveRecord(size, seq-1, t)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "prove event %d of %d: %w", seq, size, err)
	}
	return path, nil
}
