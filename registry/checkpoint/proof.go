package checkpoint

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/trust"
)

// MaxProof is the maximum size of a proof in bytes.
const MaxProof = 4 << 20

// maxPath is the maximum length of a path in a tree of maxSize leaves.
const maxPath = 53

const proofHeader = "c2sp.org/tlog-proof@v1"

// Proof shows that a checkpoint covers an event. It needs no registry to be checked.
type Proof struct {
	Event history.Event
	Path  tlog.RecordProof // from the leaf's sibling to the child of the root
	Note  []byte           // the signed checkpoint
}

// Marshal writes the proof in the form of C2SP tlog-proof v1. The extra data is the canonical JSON
// of the event, from which the leaf follows.
func (p Proof) Marshal() ([]byte, error) {
	event, err := registry.CanonicalJSON(p.Event)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString(event), p.Event.Seq-1)
	for _, h := range p.Path {
		fmt.Fprintf(&text, "%s\n", h)
	}
	text.WriteByte('\n')
	text.Write(p.Note)
	return text.Bytes(), nil
}

// ParseProof reads a proof without checking it. Errors: CodeInvalid.
func ParseProof(data []byte) (Proof, error) {
	if len(data) > MaxProof {
		return Proof{}, badProof("%d bytes, want at most %d", len(data), MaxProof)
	}
	head, note, found := strings.Cut(string(data), "\n\n")
	lines := strings.Split(head, "\n")
	if !found || len(lines) < 3 || len(lines) > 3+maxPath || lines[0] != proofHeader {
		return Proof{}, badProof("want a first line %q, then extra, index, at most %d hashes, an empty line and a checkpoint", proofHeader, maxPath)
	}
	event, err := parseExtra(lines[1])
	if err != nil {
		return Proof{}, err
	}
	if want := "index " + strconv.FormatInt(event.Seq-1, 10); lines[2] != want {
		return Proof{}, badProof("line %.60q, want %q, as its event is number %d", lines[2], want, event.Seq)
	}
	p := Proof{Event: event, Note: []byte(note)}
	for _, line := range lines[3:] {
		h, err := parseHash(line)
		if err != nil {
			return Proof{}, badProof("%w", err)
		}
		p.Path = append(p.Path, h)
	}
	_, err = Peek(p.Note)
	return p, err
}

// parseExtra reads the line with the event. The event must have its own hash, and the line one form
// only.
func parseExtra(line string) (history.Event, error) {
	text, ok := strings.CutPrefix(line, "extra ")
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return history.Event{}, badProof("want a second line with extra and the event in base64")
	}
	var e history.Event
	if err := registry.DecodeSigned(raw, &e); err != nil {
		return history.Event{}, badProof("its event: %w", err)
	}
	if canonical, err := registry.CanonicalJSON(e); err != nil || !bytes.Equal(canonical, raw) {
		return history.Event{}, badProof("its event is not in the canonical form, or has keys that this program does not know")
	}
	if e.Seq < 1 || e.Seq > maxSize {
		return history.Event{}, badProof("event %d, want a number from 1", e.Seq)
	}
	return e, nil
}

func badProof(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "proof: "+format, args...)
}

// Check verifies the proof: the signature of its checkpoint, and that the checkpoint covers the
// event. A checkpoint of a key that is retired now, or outside of its window, does not count here,
// as nothing shows when it was made.
// Errors: CodeInvalid if it is not a proof; CodeTrust if it proves nothing.
func (p Proof) Check(ctx context.Context, verify trust.VerifyNote, now time.Time) (Signed, error) {
	signed, err := Open(ctx, verify, p.Note)
	if err != nil {
		return Signed{}, err
	}
	if err := signed.CountsAt(now); err != nil {
		return Signed{}, registry.WithHint(registry.Errorf(registry.CodeTrust, "proof: its checkpoint: %w", err),
			"ask for a new proof: mlpromote history prove %d", p.Event.Seq)
	}
	e := p.Event
	if err := e.VerifyChain(history.Event{Seq: e.Seq - 1, Hash: e.Prev}); err != nil {
		return Signed{}, err
	}
	if e.Seq == 1 && e.Hash != signed.Origin.First {
		return Signed{}, registry.Errorf(registry.CodeTrust, "proof: its event is not the first one of the history that its checkpoint names")
	}
	leaf, err := leafOf(e.Hash)
	if err != nil {
		return Signed{}, err
	}
	if err := tlog.CheckRecord(p.Path, signed.Size, signed.Root, e.Seq-1, leaf); err != nil {
		return Signed{}, registry.Errorf(registry.CodeTrust, "proof: the checkpoint of %d events does not cover this event %d: %w", signed.Size, e.Seq, err)
	}
	return signed, nil
}
