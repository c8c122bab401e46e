package checkpoint_test

import (
	"testing"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	inclusion "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"mlpromote.dev/mlpromote/signer"
)

// What is written here is read and checked by the libraries of those who define the forms.
func TestOthersReadCheckpointsAndProofs(t *testing.T) {
	t.Parallel()
	own, events := newSigner(t), historyOf(t, "event", 21)
	k := newKeeper(t, events, own)
	signedNote, err := k.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	origin := seen(t, events, 21).Origin.String()
	key, err := signer.NoteKey(origin, own.PublicKeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	c, rest, _, err := log.ParseCheckpoint(signedNote, origin, verifier)
	if err != nil || c.Size != 21 || len(rest) > 0 {
		t.Fatalf("read as %+v with %q after it, error %v", c, rest, err)
	}
	for _, e := range events {
		data, err := k.Proof(t.Context(), e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		var p proof.TLogProof
		if err := p.Unmarshal(data); err != nil || string(p.Checkpoint) != string(signedNote) {
			t.Fatalf("event %d: read as %+v, error %v", e.Seq, p, err)
		}
		var path [][]byte
		for _, h := range p.Hashes {
			path = append(path, h[:])
		}
		leaf := rfc6962.DefaultHasher.HashLeaf(unhex(t, e.Hash.Encoded()))
		if err := inclusion.VerifyInclusion(rfc6962.DefaultHasher, p.Index, c.Size, leaf, path, c.Hash); err != nil {
			t.Errorf("event %d: %v", e.Seq, err)
		}
	}
}
