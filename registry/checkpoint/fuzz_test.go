package checkpoint_test

import (
	"bytes"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
)

// A checkpoint is read in one form only, and counts only if its key signed exactly this text.
func FuzzCheckpoint(f *testing.F) {
	own := newSigner(f)
	c := seen(f, historyOf(f, "event", 9), 9).Checkpoint
	note := signed(f, own, c)
	for _, seed := range [][]byte{note, []byte(c.Text()), bytes.Replace(note, []byte("\n9\n"), []byte("\n8\n"), 1),
		append(bytes.Clone(note), note[len(c.Text())+1:]...), nil} {
		f.Add(seed)
	}
	k := newKeeper(f, nil, own)
	f.Fuzz(func(t *testing.T, data []byte) {
		if read, err := checkpoint.ParseText(string(data)); err == nil && read.Text() != string(data) {
			t.Errorf("%q is written as %q", data, read.Text())
		}
		got, err := checkpoint.Open(t.Context(), k.Verify, data)
		if err == nil && got.Checkpoint != c {
			t.Errorf("%q counts, and says %+v", data, got)
		}
		if err != nil && !registry.HasCode(err, registry.CodeTrust) && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("error %v, want CodeTrust or CodeInvalid", err)
		}
	})
}

// A proof proves an event of the history or nothing.
func FuzzProof(f *testing.F) {
	own := newSigner(f)
	events := historyOf(f, "event", 9)
	k := newKeeper(f, events, own)
	for _, e := range events {
		data, err := k.Proof(f.Context(), e.Seq)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := checkpoint.ParseProof(data)
		if err != nil {
			if !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("error %v, want CodeInvalid", err)
			}
			return
		}
		if again, err := p.Marshal(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q is written as %q (error %v)", data, again, err)
		}
		if _, err := p.Check(t.Context(), k.Verify, time.Now()); err == nil && p.Event.Hash != events[p.Event.Seq-1].Hash {
			t.Errorf("%q proves %+v, which is not in the history", data, p.Event)
		}
	})
}
