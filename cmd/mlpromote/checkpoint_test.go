package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"iter"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/client"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// checkpointsOf makes checkpoints of a history, signed by a key that counts.
func checkpointsOf(t *testing.T, history func(context.Context, history.HistoryQuery) iter.Seq2[history.Event, error]) *checkpoint.Keeper {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signer.New(key)
	if err != nil {
		t.Fatal(err)
	}
	name := registrytest.Chain().Registry
	entry := trust.TrustEntry{Key: "promoter.pub", Roles: []evidence.Role{evidence.RolePromoter}, Resources: []string{"oci://" + name + "/"}}
	trustEntries, err := signer.NewTrust([]trust.TrustEntry{entry}, func(string) ([]byte, error) { return s.PublicKeyPEM(), nil })
	if err != nil {
		t.Fatal(err)
	}
	return &checkpoint.Keeper{
		Registry: func() string { return name }, History: history, Kept: mem.NewTable[trust.KeptCheckpoint](), Verify: trustEntries.VerifyNote,
		Sign: func(ctx context.Context, _ evidence.Role, name, text string) ([]byte, error) {
			return s.SignNote(ctx, name, text)
		},
	}
}

// A client gets checkpoints and proofs of a service, and what was made before.
func TestCheckpointsOverREST(t *testing.T) {
	t.Parallel()
	_, r := network(t, onDisk(t), everybody(t))
	c, ok := r.Interface.(*client.Client)
	if !ok {
		t.Fatalf("the registry is a %T, want a client", r.Interface)
	}
	if _, err := c.Checkpoint(t.Context()); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("without any event: error %v, want CodeNotFound", err)
	}
	r.Promoted(t, registrytest.Build{})
	first := checkpointOf(t, c)
	r.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	second := checkpointOf(t, c)
	kept, err := c.KeptAfter(t.Context(), 0, 0)
	if err != nil || len(kept) != 2 || kept[0].Size != first.Size || kept[1].Size != second.Size {
		t.Errorf("kept are %+v (error %v), want those of %d and %d events", kept, err, first.Size, second.Size)
	}
	for limit, want := range map[int]int{1: 1, 5: 2} {
		if some, err := c.KeptAfter(t.Context(), 0, limit); err != nil || len(some) != want {
			t.Errorf("the first %d of 2: %+v (error %v)", limit, some, err)
		}
	}
	if later, err := c.KeptAfter(t.Context(), first.Size, 0); err != nil || len(later) != 1 || later[0].Size != second.Size {
		t.Errorf("after %d events: %+v (error %v), want the one of %d", first.Size, later, err, second.Size)
	}
	events, err := c.History(t.Context(), history.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	tree := new(checkpoint.Tree)
	for _, e := range events {
		if err := tree.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	seen := []checkpoint.Seen{{Checkpoint: first, Counts: true}, {Checkpoint: second, Counts: true}}
	if faults, err := tree.Compare(first.Origin.Registry, seen); err != nil || len(faults) > 0 {
		t.Errorf("the history that the client sees: %+v (error %v), want what was signed", faults, err)
	}
	data, err := c.Proof(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := checkpoint.ParseProof(data); err != nil || p.Event.Hash != events[2].Hash {
		t.Errorf("the proof of event 3 is of %+v (error %v)", p.Event, err)
	}
	if _, err := c.Proof(t.Context(), int64(len(events)+1)); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("proof of an event to come: error %v, want CodeNotFound", err)
	}
}

func checkpointOf(t *testing.T, c *client.Client) checkpoint.Checkpoint {
	t.Helper()
	note, err := c.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkpoint.Peek(note)
	if err != nil {
		t.Fatalf("%v in %s", err, note)
	}
	return got
}
