package checkpoint_test

import "testing"

// BenchmarkCheckpoint makes the checkpoint of a history of 100,000 events that no checkpoint covers yet,
// and a proof of one of them.
func BenchmarkCheckpoint(b *testing.B) {
	events, own := historyOf(b, "event", 100_000), newSigner(b)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if _, err := newKeeper(b, events, own).Checkpoint(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	k := newKeeper(b, events, own)
	if _, err := k.Checkpoint(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("proof", func(b *testing.B) {
		for b.Loop() {
			if _, err := k.Proof(b.Context(), 50_000); err != nil {
				b.Fatal(err)
			}
		}
	})
}
