package checkpoint_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// The root is that of RFC 6962, worked out here by its recursive definition.
func TestRootIsRFC6962(t *testing.T) {
	t.Parallel()
	events := historyOf(t, "event", 21)
	tree := treeOf(t, events)
	var root func(leaves []tlog.Hash) tlog.Hash
	root = func(leaves []tlog.Hash) tlog.Hash {
		if len(leaves) == 1 {
			return leaves[0]
		}
		k := 1
		for 2*k < len(leaves) {
			k *= 2
		}
		return tlog.NodeHash(root(leaves[:k]), root(leaves[k:]))
	}
	var leaves []tlog.Hash
	for i, e := range events {
		leaves = append(leaves, tlog.RecordHash(unhex(t, e.Hash.Encoded())))
		c, err := tree.At("local", int64(i+1))
		if err != nil || c.Root != root(leaves) {
			t.Errorf("root of %d events: %v (error %v), want %v", i+1, c.Root, err, root(leaves))
		}
	}
	for _, size := range []int64{-1, 0, 22} {
		if c, err := tree.At("local", size); !registry.HasCode(err, registry.CodeNotFound) {
			t.Errorf("checkpoint of %d events: %+v, error %v; want CodeNotFound", size, c, err)
		}
	}
}

func TestTextHasOneForm(t *testing.T) {
	t.Parallel()
	whole := seen(t, historyOf(t, "event", 9), 9).Checkpoint
	text := whole.Text()
	if got, err := checkpoint.ParseText(text); err != nil || got != whole {
		t.Fatalf("%q is read as %+v, error %v; want %+v", text, got, err, whole)
	}
	lines := strings.Split(text, "\n")
	origin, root := lines[0], lines[2]
	for name, bad := range map[string]string{
		"empty":                  "",
		"no final newline":       strings.TrimSuffix(text, "\n"),
		"an extension line":      text + "more\n",
		"two lines":              origin + "\n9\n",
		"another log":            "go.sum database tree\n9\n" + root + "\n",
		"no registry":            "mlpromote.dev/history/" + whole.Origin.First.Encoded() + "\n9\n" + root + "\n",
		"a registry in capitals": strings.Replace(text, "/local/", "/LOCAL/", 1),
		"a short hash":           strings.Replace(text, whole.Origin.First.Encoded(), "abcd", 1),
		"an upper-case hash":     strings.Replace(text, whole.Origin.First.Encoded(), strings.ToUpper(whole.Origin.First.Encoded()), 1),
		"no events":              origin + "\n0\n" + root + "\n",
		"a leading zero":         origin + "\n09\n" + root + "\n",
		"a sign":                 origin + "\n+9\n" + root + "\n",
		"negative":               origin + "\n-9\n" + root + "\n",
		"more than any tree":     origin + "\n9007199254740992\n" + root + "\n",
		"a number too long":      origin + "\n99999999999999999999\n" + root + "\n",
		"no root":                origin + "\n9\n\n",
		"a short root":           origin + "\n9\nAAAA\n",
		"another base64":         origin + "\n9\n" + strings.TrimSuffix(root, "=") + "\n",
		"carriage returns":       strings.ReplaceAll(text, "\n", "\r\n"),
	} {
		if got, err := checkpoint.ParseText(bad); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: read as %+v, error %v; want CodeInvalid", name, got, err)
		}
	}
}

// Who may sign a checkpoint, and in which state the key must be.
func TestWhoseCheckpointsCount(t *testing.T) {
	t.Parallel()
	c := seen(t, historyOf(t, "event", 9), 9).Checkpoint
	own, stranger := newSigner(t), newSigner(t)
	keys := map[string]signer.Signer{"a.pub": own, "b.pub": stranger}
	state := func(s evidence.KeyState, at time.Time) trust.TrustEntry {
		e := promoter("a.pub")
		e.State, e.RetiredAt = s, at
		return e
	}
	verifier, part, elsewhere := promoter("a.pub"), promoter("a.pub"), promoter("a.pub")
	verifier.Roles = []evidence.Role{evidence.RoleBuilder, evidence.RoleVerifier, evidence.RoleApprover}
	part.Resources, elsewhere.Resources = []string{"oci://local/prod/"}, []string{"oci://local2/"}
	note := signed(t, own, c)
	_, line, _ := strings.Cut(string(signed(t, stranger, c)), "\n\n")
	renamed := strings.Replace(string(note), "— "+c.Origin.String(), "— mlpromote.dev/history/other", 1)
	for name, tc := range map[string]struct {
		note  string
		entry trust.TrustEntry
		says  string // empty: it counts
	}{
		"a promoter":                       {string(note), promoter("a.pub"), ""},
		"a retired one":                    {string(note), state(evidence.KeyRetired, time.Unix(1, 0)), ""},
		"a revoked one":                    {string(note), state(evidence.KeyRevoked, time.Time{}), "which signed it, is revoked"},
		"other roles":                      {string(note), verifier, "no key that is trusted as promoter"},
		"a promoter of one environment":    {string(note), part, "no key that is trusted as promoter for oci://local/"},
		"a promoter of another registry":   {string(note), elsewhere, "no key that is trusted as promoter"},
		"somebody else's signature":        {string(signed(t, stranger, c)), promoter("a.pub"), "no key that is trusted as promoter"},
		"somebody else's signature too":    {string(note) + line, promoter("a.pub"), ""},
		"under another name":               {renamed, promoter("a.pub"), "no key that is trusted"},
		"another size under the signature": {strings.Replace(string(note), "\n9\n", "\n8\n", 1), promoter("a.pub"), "invalid signature"},
		"no key file":                      {string(note), promoter("c.pub"), "there is no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := checkpoint.Open(t.Context(), trusting(t, keys, tc.entry).VerifyNote, []byte(tc.note))
			if tc.says == "" && (err != nil || got.Checkpoint != c || got.Signer != own.KeyID()) {
				t.Errorf("got %+v, error %v; want %+v by %s", got, err, c, own.KeyID())
			}
			if tc.says != "" && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), tc.says) || got.Signer != "") {
				t.Errorf("got %+v, error %v; want CodeTrust with %q", got, err, tc.says)
			}
		})
	}
	if _, err := checkpoint.Open(t.Context(), nil, note); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("without anything that verifies: error %v, want CodeTrust", err)
	}
	if _, err := checkpoint.Open(t.Context(), new(signer.Trust).VerifyNote, note); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("with the zero trust: error %v, want CodeTrust", err)
	}
}

func TestProofs(t *testing.T) {
	t.Parallel()
	events := historyOf(t, "event", 13)
	own := newSigner(t)
	kept := newKeeper(t, events, own)
	var proofs [][]byte
	for _, e := range events {
		data, err := kept.Proof(t.Context(), e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		p, err := checkpoint.ParseProof(data)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		got, err := p.Check(t.Context(), kept.Verify, time.Now())
		if err != nil || got.Size != 13 || p.Event.Hash != e.Hash || p.Event.Reason != e.Reason {
			t.Errorf("event %d: %+v of %+v, error %v", e.Seq, p.Event, got, err)
		}
		if again, err := p.Marshal(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("a proof is written as %s (error %v), want %s", again, err, data)
		}
		proofs = append(proofs, data)
	}
	if _, err := kept.Proof(t.Context(), 14); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("proof of event 14 of 13: error %v, want CodeNotFound", err)
	}
	forged := extend(t, events[:4], "forged", 1)[4]
	for name, change := range map[string]func(*checkpoint.Proof){
		"another event of that number": func(p *checkpoint.Proof) { p.Event = forged },
		"another event of the history": func(p *checkpoint.Proof) { p.Event = events[5] },
		"a changed event":              func(p *checkpoint.Proof) { p.Event.Reason = "better" },
		"a shorter path":               func(p *checkpoint.Proof) { p.Path = p.Path[1:] },
		"a longer path":                func(p *checkpoint.Proof) { p.Path = append(p.Path, p.Path[0]) },
		"no path":                      func(p *checkpoint.Proof) { p.Path = nil },
		"another path":                 func(p *checkpoint.Proof) { p.Path[0][0] ^= 1 },
		"another checkpoint":           func(p *checkpoint.Proof) { p.Note = signed(t, own, seen(t, events, 12).Checkpoint) },
		"a checkpoint of a stranger":   func(p *checkpoint.Proof) { p.Note = signed(t, newSigner(t), seen(t, events, 13).Checkpoint) },
		"a checkpoint that is smaller": func(p *checkpoint.Proof) { p.Note = signed(t, own, seen(t, events, 3).Checkpoint) },
		"another first event":          func(p *checkpoint.Proof) { p.Event = historyOf(t, "other", 1)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := checkpoint.ParseProof(proofs[4])
			if err != nil {
				t.Fatal(err)
			}
			change(&p)
			if got, err := p.Check(t.Context(), kept.Verify, time.Now()); !registry.HasCode(err, registry.CodeTrust) || got.Signer != "" {
				t.Errorf("got %+v, error %v; want CodeTrust", got, err)
			}
		})
	}
	retired := promoter("a.pub")
	retired.State, retired.RetiredAt = evidence.KeyRetired, time.Unix(1_700_000_000, 0)
	p, err := checkpoint.ParseProof(proofs[4])
	if err != nil {
		t.Fatal(err)
	}
	verify := trusting(t, map[string]signer.Signer{"a.pub": own}, retired).VerifyNote
	if _, err := p.Check(t.Context(), verify, time.Now()); !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "is retired") {
		t.Errorf("a proof by a retired key: error %v, want CodeTrust", err)
	}
	for _, window := range []evidence.Window{{From: time.Unix(1, 0), Until: time.Unix(2, 0)}, {From: time.Now().Add(time.Hour)}} {
		entry := promoter("a.pub")
		entry.Window = window
		verify := trusting(t, map[string]signer.Signer{"a.pub": own}, entry).VerifyNote
		if _, err := p.Check(t.Context(), verify, time.Now()); !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "and not at") {
			t.Errorf("a proof outside of the window %s of its key: error %v, want CodeTrust", window, err)
		}
	}
}

// extra is the line of a proof for an event.
func extra(t *testing.T, e history.Event) string {
	t.Helper()
	text, err := registry.CanonicalJSON(e)
	if err != nil {
		t.Fatal(err)
	}
	return "extra " + base64.StdEncoding.EncodeToString(text) + "\n"
}

func TestProofHasOneForm(t *testing.T) {
	t.Parallel()
	data, err := newKeeper(t, historyOf(t, "event", 5), newSigner(t)).Proof(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	replaced := func(i int, with string) string {
		return strings.Join(append(append(append([]string{}, lines[:i]...), with), lines[i+1:]...), "")
	}
	for name, bad := range map[string]string{
		"empty":              "",
		"another version":    replaced(0, "c2sp.org/tlog-proof@v2\n"),
		"the first line":     lines[0],
		"two lines":          lines[0] + lines[1] + "\n" + strings.Join(lines[6:], ""),
		"no extra":           replaced(1, ""),
		"extra is no base64": replaced(1, "extra !\n"),
		"an event alone":     replaced(1, strings.TrimPrefix(lines[1], "extra ")),
		"event number 0":     replaced(1, extra(t, history.Event{})),
		"a negative number":  replaced(1, extra(t, history.Event{Seq: -1})),
		"extra is no event":  replaced(1, "extra e30=\n"),
		"another index":      replaced(2, "index 3\n"),
		"index with a zero":  replaced(2, "index 02\n"),
		"a short hash":       replaced(3, "AAAA\n"),
		"many hashes":        replaced(3, strings.Repeat(lines[3], 60)),
		"no checkpoint":      strings.Join(lines[:6], ""),
		"too large":          strings.Join(lines, "") + strings.Repeat("\n", checkpoint.MaxProof),
	} {
		if p, err := checkpoint.ParseProof([]byte(bad)); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: read as %+v, error %v; want CodeInvalid", name, p, err)
		}
	}
}

// What a key signed counts in its window, and until the key was retired.
func TestCountsAt(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		signed checkpoint.Signed
		at     time.Time
		counts bool
	}{
		"by a trusted key":               {checkpoint.Signed{Key: evidence.KeyTrusted}, at(1), true},
		"by a key that is retired later": {checkpoint.Signed{Key: evidence.KeyRetired, RetiredAt: at(2)}, at(1), true},
		"when the key was retired":       {checkpoint.Signed{Key: evidence.KeyRetired, RetiredAt: at(1)}, at(1), true},
		"after the key was retired":      {checkpoint.Signed{Key: evidence.KeyRetired, RetiredAt: at(1)}, at(2), false},
		"by a revoked key":               {checkpoint.Signed{Key: evidence.KeyRevoked}, at(1), false},
		"by a key in no state":           {checkpoint.Signed{}, at(1), false},
		"in the window of the key":       {checkpoint.Signed{Key: evidence.KeyTrusted, Window: evidence.Window{From: at(1), Until: at(3)}}, at(2), true},
		"before the window of the key":   {checkpoint.Signed{Key: evidence.KeyTrusted, Window: evidence.Window{From: at(1), Until: at(3)}}, at(0), false},
		"after the window of the key":    {checkpoint.Signed{Key: evidence.KeyTrusted, Window: evidence.Window{From: at(1), Until: at(3)}}, at(4), false},
	} {
		if err := c.signed.CountsAt(c.at); (err == nil) != c.counts || err != nil && !registry.HasCode(err, registry.CodeTrust) {
			t.Errorf("%s: error %v, want that it counts: %t", name, err, c.counts)
		}
	}
}

// A note is read up to its limit, which no checkpoint needs.
func TestPeekRefuses(t *testing.T) {
	t.Parallel()
	note := signed(t, newSigner(t), seen(t, historyOf(t, "event", 3), 3).Checkpoint)
	full := append(slices.Clone(note), bytes.Repeat([]byte{'x'}, checkpoint.MaxNote-len(note))...)
	for name, c := range map[string]struct {
		note  []byte
		valid bool
	}{"as it is": {note, true}, "as large as it may be": {full, true}, "larger": {append(slices.Clone(full), 'x'), false}, "a text without signatures": {[]byte("text\n"), false}} {
		if got, err := checkpoint.Peek(c.note); (err == nil) != c.valid || c.valid && got.Size != 3 || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: got %+v, error %v; want valid %t", name, got, err, c.valid)
		}
	}
}
