package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// newKeeper keeps checkpoints of a history in memory, signed by a key that counts.
func newKeeper(t testing.TB, events []history.Event, s signer.Signer) *checkpoint.Keeper {
	t.Helper()
	return keeperOf(t, &catalog{events}, mem.NewTable[trust.KeptCheckpoint](), s)
}

func keeperOf(t testing.TB, c *catalog, kept trust.Checkpoints, s signer.Signer) *checkpoint.Keeper {
	t.Helper()
	return &checkpoint.Keeper{
		Registry: func() string { return "local" }, History: c.History, Kept: kept,
		Sign: func(ctx context.Context, _ evidence.Role, name, text string) ([]byte, error) {
			return s.SignNote(ctx, name, text)
		},
		Verify: trusting(t, map[string]signer.Signer{"a.pub": s}, promoter("a.pub")).VerifyNote,
	}
}

func TestKeeperMakesOneOfEachSize(t *testing.T) {
	t.Parallel()
	own, c := newSigner(t), &catalog{historyOf(t, "event", 5)}
	kept := mem.NewTable[trust.KeptCheckpoint]()
	k := keeperOf(t, c, kept, own)
	first, err := k.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // also a process that has not read anything yet
		if again, err := k.Checkpoint(t.Context()); err != nil || !bytes.Equal(again, first) {
			t.Errorf("the same history gives %s (error %v), want %s", again, err, first)
		}
		k = keeperOf(t, c, kept, own)
	}
	if n, err := k.Every(t.Context(), 3); n != 0 || err != nil {
		t.Errorf("no new events: made one of %d, error %v", n, err)
	}
	c.events = extend(t, c.events, "event", 2)
	if n, err := k.Every(t.Context(), 3); n != 0 || err != nil {
		t.Errorf("2 new events of 3: made one of %d, error %v", n, err)
	}
	c.events = extend(t, c.events, "event", 2)
	if n, err := k.Every(t.Context(), 3); n != 9 || err != nil {
		t.Errorf("4 new events of 3: made one of %d, error %v; want 9", n, err)
	}
	var sizes []int64
	for one, err := range checkpoint.All(t.Context(), kept, 0) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, one.Size)
	}
	if !slices.Equal(sizes, []int64{5, 9}) {
		t.Errorf("kept are checkpoints of %v events, want 5 and 9", sizes)
	}
}

// No key signs two histories: what contradicts a checkpoint that is kept, or what this process has
// read, gets none.
func TestKeeperSignsOneHistoryOnly(t *testing.T) {
	t.Parallel()
	whole := historyOf(t, "event", 9)
	for name, tc := range map[string]struct {
		events []history.Event
		says   string
	}{
		"cut below the checkpoint":     {whole[:4], "truncated"},
		"cut after it":                 {whole[:7], "gone"},
		"rewritten":                    {extend(t, whole[:4], "another", 9), "rewritten"},
		"rewritten after it":           {extend(t, whole[:6], "another", 9), "rewritten"},
		"its first event replaced":     {historyOf(t, "another", 9), "rewritten"},
		"without any event":            {nil, "gone"},
		"a changed event":              {append(slices.Clone(whole[:8]), history.Event{Seq: 9, Reason: "new"}), "rewritten"},
		"events that do not follow it": {append(slices.Clone(whole), history.Event{Seq: 12}), "follows event 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, c, kept := newSigner(t), &catalog{whole[:6]}, mem.NewTable[trust.KeptCheckpoint]()
			running := keeperOf(t, c, kept, own)
			if _, err := running.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.events = whole
			if err := running.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.events = tc.events
			for range 2 { // it does not forget
				if note, err := running.Checkpoint(t.Context()); !registry.HasCode(err, registry.CodeTrust) ||
					!strings.Contains(err.Error(), tc.says) || note != nil {
					t.Errorf("got %s, error %v; want CodeTrust with %q", note, err, tc.says)
				}
			}
			if len(tc.events) == 7 || strings.HasPrefix(name, "rewritten after") {
				return // nothing signed says otherwise
			}
			if note, err := keeperOf(t, c, kept, own).Checkpoint(t.Context()); !registry.HasCode(err, registry.CodeTrust) || note != nil {
				t.Errorf("a new process: got %s, error %v; want CodeTrust", note, err)
			}
		})
	}
}

func TestKeeperRefuses(t *testing.T) {
	t.Parallel()
	events, own := historyOf(t, "event", 4), newSigner(t)
	why := errors.New("the configuration is not the agreed one")
	for name, tc := range map[string]struct {
		change func(*checkpoint.Keeper)
		code   registry.Code
		is     error
	}{
		"no events": {func(k *checkpoint.Keeper) { k.History = new(catalog).History }, registry.CodeNotFound, nil},
		"a key that is no promoter": {func(k *checkpoint.Keeper) {
			entry := promoter("a.pub")
			entry.Resources = []string{"oci://local/prod/"}
			k.Verify = trusting(t, map[string]signer.Signer{"a.pub": own}, entry).VerifyNote
		}, registry.CodeTrust, nil},
		"a retired key": {func(k *checkpoint.Keeper) {
			entry := promoter("a.pub")
			entry.State, entry.RetiredAt = evidence.KeyRetired, time.Unix(1_700_000_000, 0)
			k.Verify = trusting(t, map[string]signer.Signer{"a.pub": own}, entry).VerifyNote
		}, registry.CodeTrust, nil},
		"nothing that verifies":  {func(k *checkpoint.Keeper) { k.Verify = nil }, registry.CodeTrust, nil},
		"it may not":             {func(k *checkpoint.Keeper) { k.May = func(context.Context) error { return why } }, registry.CodeInternal, why},
		"a kept one was changed": {func(k *checkpoint.Keeper) { put(t, k.Kept, 3, "nonsense") }, registry.CodeTrust, nil},
		"a kept one of another size": {func(k *checkpoint.Keeper) {
			put(t, k.Kept, 3, string(signed(t, own, seen(t, events, 2).Checkpoint)))
		}, registry.CodeTrust, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, events, own)
			tc.change(k)
			note, err := k.Checkpoint(t.Context())
			if note != nil || tc.is == nil && !registry.HasCode(err, tc.code) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %s, error %v; want code %s", note, err, tc.code)
			}
			for one, err := range checkpoint.All(t.Context(), k.Kept, 3) {
				t.Errorf("%+v was kept (error %v), want nothing new", one, err)
			}
		})
	}
}

func put(t testing.TB, kept trust.Checkpoints, size int64, note string) {
	t.Helper()
	if err := kept.Put(t.Context(), "000000000000000000"+string(rune('0'+size)), trust.KeptCheckpoint{Size: size, Note: note}); err != nil {
		t.Fatal(err)
	}
}

// A registry keeps what it signed under an earlier name, and by earlier keys.
func TestKeeperAfterARename(t *testing.T) {
	t.Parallel()
	c, kept := &catalog{historyOf(t, "event", 4)}, mem.NewTable[trust.KeptCheckpoint]()
	if _, err := keeperOf(t, c, kept, newSigner(t)).Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := newSigner(t)
	k := keeperOf(t, c, kept, own)
	k.Registry = func() string { return "renamed" }
	entry := promoter("a.pub")
	entry.Resources = []string{"oci://renamed/"}
	k.Verify = trusting(t, map[string]signer.Signer{"a.pub": own}, entry).VerifyNote
	note, err := k.Checkpoint(t.Context())
	if err != nil || !strings.HasPrefix(string(note), "mlpromote.dev/history/renamed/") {
		t.Errorf("got %s, error %v; want a checkpoint of the renamed registry", note, err)
	}
	c.events = extend(t, c.events[:2], "another", 5)
	if _, err := keeperOf(t, c, kept, own).Checkpoint(t.Context()); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a history that contradicts the one before the rename: error %v, want CodeTrust", err)
	}
}

// unreadable are kept checkpoints in a database that does not answer.
type unreadable struct{ trust.Checkpoints }

var errUnreadable = errors.New("the database does not answer")

func (unreadable) List(context.Context, string, int) ([]registry.Named[trust.KeptCheckpoint], error) {
	return nil, errUnreadable
}

func (unreadable) Get(context.Context, string) (trust.KeptCheckpoint, error) {
	return trust.KeptCheckpoint{}, errUnreadable
}

// unwritable are kept checkpoints in a database that takes no more.
type unwritable struct{ trust.Checkpoints }

func (unwritable) Put(context.Context, string, trust.KeptCheckpoint) error { return errUnreadable }

// A keeper that cannot read what it needs says so, and signs and proves nothing.
func TestKeeperWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	events, own := historyOf(t, "event", 3), newSigner(t)
	for name, change := range map[string]func(*checkpoint.Keeper){
		"the history": func(k *checkpoint.Keeper) {
			k.History = func(context.Context, history.HistoryQuery) iter.Seq2[history.Event, error] {
				return func(yield func(history.Event, error) bool) { yield(history.Event{}, errUnreadable) }
			}
		},
		"kept checkpoints":   func(k *checkpoint.Keeper) { k.Kept = unreadable{k.Kept} },
		"a place to keep it": func(k *checkpoint.Keeper) { k.Kept = unwritable{k.Kept} },
	} {
		k := newKeeper(t, events, own)
		change(k)
		note, made := k.Checkpoint(t.Context())
		proof, proved := k.Proof(t.Context(), 1)
		size, every := k.Every(t.Context(), 1)
		if !errors.Is(every, errUnreadable) {
			t.Errorf("%s: made a checkpoint of %d events, error %v; want that of the database", name, size, every)
		}
		checked := k.Check(t.Context()) // writes nothing
		if !errors.Is(made, errUnreadable) || !errors.Is(proved, errUnreadable) || errors.Is(checked, errUnreadable) != (name != "a place to keep it") || note != nil || proof != nil {
			t.Errorf("%s: got %s, error %v, and %s, error %v; want that of the database", name, note, made, proof, proved)
		}
	}
	refuses := newKeeper(t, events, own)
	refuses.Sign = func(context.Context, evidence.Role, string, string) ([]byte, error) { return nil, errUnreadable }
	if note, err := refuses.Checkpoint(t.Context()); !errors.Is(err, errUnreadable) || note != nil {
		t.Errorf("a key that cannot sign: got %s, error %v", note, err)
	}
	if proof, err := refuses.Proof(t.Context(), 1); !errors.Is(err, errUnreadable) || proof != nil {
		t.Errorf("a key that cannot sign: got the proof %s, error %v", proof, err)
	}
	if size, err := refuses.Every(t.Context(), 1); !errors.Is(err, errUnreadable) {
		t.Errorf("a key that cannot sign: made a checkpoint of %d events, error %v", size, err)
	}
	alone, err := newKeeper(t, events[:1], own).Proof(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := checkpoint.ParseProof(alone); err != nil || len(p.Path) != 0 || p.Event.Seq != 1 {
		t.Errorf("a proof of the only event: %+v, error %v; want no path", p, err)
	}
	for seq, exists := range map[int64]bool{0: false, 1: true, 3: true, 4: false} {
		if _, err := newKeeper(t, events, own).Proof(t.Context(), seq); (err == nil) != exists || err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			t.Errorf("a proof of event %d: error %v, want it %t", seq, err, exists)
		}
	}
}
