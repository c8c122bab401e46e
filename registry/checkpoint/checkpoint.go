package checkpoint

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Role is the role that signs checkpoints, with the key that also signs promotions.
const Role = evidence.RolePromoter

// MaxNote is the maximum size of a checkpoint in bytes, with 16 signatures of any kind.
const MaxNote = 128 << 10

// maxSize is the largest number of events that a checkpoint may name. Larger ones make the tree
// arithmetic of package tlog overflow, and no JSON number is exact there.
const maxSize = 1<<53 - 1

// originPrefix begins the origin of every history.
const originPrefix = "mlpromote.dev/history/"

// Origin identifies a history: the name of its registry, and the hash of its first event, which
// two registries of the same name do not share.
type Origin struct {
	Registry string
	First    registry.Digest
}

// String returns the first line of a checkpoint, which is also the name under which it is signed.
func (o Origin) String() string { return originPrefix + o.Registry + "/" + o.First.Encoded() }

// Resource returns the resource for which the key of a checkpoint must be trusted: the whole
// registry, since a checkpoint covers all of its events.
func (o Origin) Resource() string { return "oci://" + o.Registry + "/" }

// parseOrigin reads the first line of a checkpoint.
func parseOrigin(line string) (Origin, error) {
	rest, ours := strings.CutPrefix(line, originPrefix)
	slash := strings.LastIndexByte(rest, '/')
	if !ours || slash < 0 {
		return Origin{}, invalid("origin %.200q, want %sREGISTRY/HASH", line, originPrefix)
	}
	o := Origin{Registry: rest[:slash], First: registry.Digest("sha256:" + rest[slash+1:])}
	if err := registry.ValidateRegistry(o.Registry); err != nil {
		return Origin{}, invalid("origin %.200q: %w", line, err)
	}
	if err := o.First.Validate(); err != nil {
		return Origin{}, invalid("origin %.200q: want the hash of the first event at its end, 64 hex digits", line)
	}
	return o, nil
}

// Checkpoint identifies the first Size events of a history. It is not signed yet.
type Checkpoint struct {
	Origin Origin
	Size   int64     // number of events, at least 1
	Root   tlog.Hash // of the Merkle tree of RFC 6962
}

// Text returns the text to be signed.
func (c Checkpoint) Text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

// ParseText reads the text of a checkpoint, which has one form only: three lines, and no extension
// lines, which this program does not write and could not check. Errors: CodeInvalid.
func ParseText(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, invalid("%d lines, want three: origin, number of events, root", len(lines)-1)
	}
	origin, err := parseOrigin(lines[0])
	if err != nil {
		return Checkpoint{}, err
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 1 || size > maxSize || lines[1] != strconv.FormatInt(size, 10) {
		return Checkpoint{}, invalid("number of events %.40q, want a whole number from 1", lines[1])
	}
	root, err := parseHash(lines[2])
	if err != nil {
		return Checkpoint{}, err
	}
	return Checkpoint{origin, size, root}, nil
}

// parseHash reads a hash in base64, which has one form only.
func parseHash(line string) (tlog.Hash, error) {
	h, err := tlog.ParseHash(line)
	if err != nil || h.String() != line {
		return tlog.Hash{}, invalid("hash %.60q, want 32 bytes in base64", line)
	}
	return h, nil
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.CodeInvalid, "checkpoint: "+format, args...)
}

// Peek returns the content of a signed checkpoint, without verifying its signature. Errors: CodeInvalid.
func Peek(note []byte) (Checkpoint, error) {
	if len(note) > MaxNote {
		return Checkpoint{}, invalid("%d bytes, want at most %d", len(note), MaxNote)
	}
	text, _, found := strings.Cut(string(note), "\n\n")
	if !found {
		return Checkpoint{}, invalid("no empty line, want a signed note: the lines of a checkpoint, an empty line, signatures")
	}
	return ParseText(text + "\n")
}

// Signed is a checkpoint with a verified signature.
type Signed struct {
	Checkpoint
	Signer    string            // key identifier
	Key       evidence.KeyState // of the signer
	RetiredAt time.Time         // if Key is KeyRetired
	Window    evidence.Window   // in which the key's signatures count
	Note      []byte            // the signed note, as it was read
}

// Open verifies a signed checkpoint. A key with [Role] for the whole registry must have signed it
// under its origin. The key of the result may be retired; a revoked key's does not count.
// Errors: CodeInvalid if it is not a checkpoint; CodeTrust if it does not count.
func Open(ctx context.Context, verify trust.VerifyNote, note []byte) (Signed, error) {
	c, err := Peek(note)
	if err != nil {
		return Signed{}, err
	}
	if verify == nil {
		return Signed{}, registry.Errorf(registry.CodeTrust, "checkpoint: nothing here can verify it")
	}
	signed, err := verify(ctx, note, Role, c.Origin.String(), c.Origin.Resource())
	if err != nil {
		return Signed{}, registry.Errorf(registry.CodeOf(err), "checkpoint of %d events: %w", c.Size, err)
	}
	if signed.Text != c.Text() {
		return Signed{}, registry.Errorf(registry.CodeTrust, "checkpoint of %d events: its signature is about another text", c.Size)
	}
	if signed.Key != evidence.KeyTrusted && signed.Key != evidence.KeyRetired {
		return Signed{}, registry.WithHint(
			registry.Errorf(registry.CodeTrust, "checkpoint of %d events: key %s, which signed it, is %s", c.Size, signed.Signer, signed.Key),
			"find out the uses of the key, and then take another checkpoint from the registry")
	}
	return Signed{Checkpoint: c, Signer: signed.Signer, Key: signed.Key, RetiredAt: signed.RetiredAt, Window: signed.Window, Note: note}, nil
}

// CountsAt checks that the checkpoint counts if it was made at a time: with a history the time of
// the newest event that it covers, else now. Errors: CodeTrust if the key was retired before that,
// or the time is outside of the window of the key.
func (s Signed) CountsAt(at time.Time) error {
	switch {
	case s.Key == evidence.KeyRetired && at.After(s.RetiredAt):
		return registry.Errorf(registry.CodeTrust,
			"key %s, which signed it, is retired since %s, and nothing shows that it signed before", s.Signer, s.RetiredAt.UTC().Format(time.DateTime))
	case !s.Window.Contains(at):
		return registry.Errorf(registry.CodeTrust, "key %s, which signed it, counts %s, and not at %s", s.Signer, s.Window, at.UTC().Format(time.DateTime))
	case s.Key != evidence.KeyTrusted && s.Key != evidence.KeyRetired:
		return registry.Errorf(registry.CodeTrust, "key %s, which signed it, is %q", s.Signer, s.Key)
	}
	return nil
}
