package auditing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/trust"
)

// madeCheckpoint is a signed checkpoint of the whole history.
type madeCheckpoint struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"` // number of events
	Root   string `json:"root"` // base64
	Signer string `json:"signer"`
	File   string `json:"file,omitempty"`
	Note   string `json:"note"` // the signed note
}

// Checkpoint makes a signed checkpoint of the history.
func (v Verbs) Checkpoint() *cobra.Command {
	var out, trust string
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Make a signed checkpoint of the history, to keep elsewhere",
		Long: `Prints a signed statement of what all events are now: their number and the root of their
Merkle tree (C2SP tlog-checkpoint). The registry signs it with the key that it promotes with, and
keeps it too. Kept where others cannot change it, it shows later whether events were removed or
changed: mlpromote history verify --checkpoint FILE.

If the FILE of -o is an earlier checkpoint, the history is compared with it first. If the history
does not extend it, FILE stays as it is, and the exit code is 5.`,
		Example: "  mlpromote history checkpoint -o /audit/mlpromote.checkpoint",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.checkpoint(c.Context(), i, out, trust) })
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "file for the checkpoint (default: stdout)")
	trustFlag(c, &trust)
	return c
}

func (v Verbs) checkpoint(ctx context.Context, i *wiring.Instance, out, trust string) error {
	verify, err := v.noteVerifier(i, trust)
	if err != nil {
		return err
	}
	note, err := i.Checkpoints.Checkpoint(ctx)
	if err != nil {
		return err
	}
	signed, err := checkpoint.Open(ctx, verify, note)
	if err != nil {
		return err
	}
	if err := signed.CountsAt(clock.Now()); err != nil {
		return err
	}
	made := madeCheckpoint{Origin: signed.Origin.String(), Size: signed.Size,
		Root: signed.Root.String(), Signer: signed.Signer, File: out, Note: string(note)}
	if out == "" {
		return v.UI.Result(made.Note, made)
	}
	if err := v.extends(ctx, i, signed, out, trust); err != nil {
		return err
	}
	if err := atomicfile.Write(out, note, 0o644); err != nil {
		return err
	}
	return v.UI.Result(fmt.Sprintf("%s: %s, root %s", ui.Plain(out), registry.Count(made.Size, "event"), made.Root), made)
}

// extends checks that the history extends the checkpoint in a file, if there is one, and is the one
// of the new checkpoint.
func (v Verbs) extends(ctx context.Context, i *wiring.Instance, fresh checkpoint.Signed, file, trust string) error {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	against, err := v.anchors(ctx, i, []string{file}, trust)
	if err != nil {
		return err
	}
	against.files = append(against.files, anchor{"of the registry now", fresh})
	_, err = against.check(ctx, i)
	return err
}

// madeProof is a proof that a checkpoint covers an event.
type madeProof struct {
	Event history.Event `json:"event"`
	Size  int64         `json:"size"` // number of events under the checkpoint
	File  string        `json:"file,omitempty"`
	Proof string        `json:"proof"` // C2SP tlog-proof
}

// Prove proves that one event is in the history.
func (v Verbs) Prove() *cobra.Command {
	var out, trust string
	c := &cobra.Command{
		Use:   "prove EVENT",
		Short: "Prove that one event is in the history",
		Long: `Prints a proof that the newest checkpoint covers the event of this number (C2SP tlog-proof).
It has the event, a signed checkpoint and about one hash for each doubling of the history, and no
other event. mlpromote history check-proof checks it without a registry.`,
		Example: "  mlpromote history list --limit 5\n  mlpromote history prove 42 -o promotion.tlog-proof",
		Args:    command.Exactly("EVENT"),
		RunE: func(c *cobra.Command, args []string) error {
			seq, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || seq < 1 {
				return registry.Errorf(registry.CodeInvalid, "event %q: want the number of an event, as history list has it", args[0])
			}
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.prove(c.Context(), i, seq, out, trust) })
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "file for the proof (default: stdout)")
	trustFlag(c, &trust)
	return c
}

func (v Verbs) prove(ctx context.Context, i *wiring.Instance, seq int64, out, trust string) error {
	verify, err := v.noteVerifier(i, trust)
	if err != nil {
		return err
	}
	data, err := i.Checkpoints.Proof(ctx, seq)
	if err != nil {
		return err
	}
	p, signed, err := checkProof(ctx, verify, data, i.Envs.Registry)
	if err != nil {
		return err
	}
	if p.Event.Seq != seq {
		return registry.Errorf(registry.CodeTrust, "%s proves event %d, and was asked for event %d", i.Host, p.Event.Seq, seq)
	}
	made := madeProof{Event: p.Event, Size: signed.Size, File: out, Proof: string(data)}
	if out == "" {
		return v.UI.Result(made.Proof, made)
	}
	if err := atomicfile.Write(out, data, 0o644); err != nil {
		return err
	}
	return v.UI.Result(fmt.Sprintf("%s: event %d of %d", ui.Plain(out), seq, signed.Size), made)
}

// checkProof checks a proof, and that it is of the registry of this name.
func checkProof(ctx context.Context, verify trust.VerifyNote, data []byte, name string) (checkpoint.Proof, checkpoint.Signed, error) {
	p, err := checkpoint.ParseProof(data)
	if err != nil {
		return p, checkpoint.Signed{}, err
	}
	signed, err := p.Check(ctx, verify, clock.Now())
	if err == nil && signed.Origin.Registry != name {
		err = registry.Errorf(registry.CodeTrust, "proof: it is of registry %q, want %q", signed.Origin.Registry, name)
	}
	return p, signed, err
}

// provenEvent is an event that a proof shows to be in the history.
type provenEvent struct {
	Event  history.Event `json:"event"`
	Origin string        `json:"origin"`
	Size   int64         `json:"size"`   // number of events under the checkpoint
	Signer string        `json:"signer"` // key identifier
}

// CheckProof checks such a proof without a registry.
func (v Verbs) CheckProof() *cobra.Command {
	var trust string
	c := &cobra.Command{
		Use:   "check-proof FILE",
		Short: "Check a proof that an event is in the history, without a registry",
		Long: `Checks that a key signed the checkpoint in FILE that is trusted as promoter for the whole
registry, and that the checkpoint covers the event in FILE, which is printed. Exit code 5: it
proves nothing.`,
		Example: "  mlpromote history check-proof promotion.tlog-proof --trust trust.yaml",
		Args:    command.Exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return v.checkProof(c.Context(), args[0], trust)
		},
	}
	trustFlag(c, &trust)
	return c
}

func (v Verbs) checkProof(ctx context.Context, file, trust string) error {
	verify, err := v.trustOf(trust).VerifyNote()
	if err != nil {
		return err
	}
	name, err := v.trustOf(trust).RegistryName()
	if err != nil {
		return err
	}
	data, err := readSome(file, checkpoint.MaxProof)
	if err != nil {
		return err
	}
	p, signed, err := checkProof(ctx, verify, data, name)
	if err != nil {
		return registry.Errorf(registry.CodeOf(err), "%s: %w", file, err)
	}
	e := p.Event
	text := fmt.Sprintf("event %d of %d: %s %s %s in %s at %s by %s\n%s\nsigned by key %s",
		e.Seq, signed.Size, e.Kind, ui.Plain(e.Model), ui.Plain(e.Version),
		ui.Plain(e.Environment), e.Time.UTC().Format(time.DateTime), ui.Dash(ui.Plain(e.Principal)), ui.Plain(Detail(e)), signed.Signer)
	return v.UI.Result(text, provenEvent{e, signed.Origin.String(), signed.Size, signed.Signer})
}
