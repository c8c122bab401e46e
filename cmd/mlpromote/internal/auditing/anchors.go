package auditing

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// anchors are the checkpoints that a history must extend.
type anchors struct {
	files []anchor
	kept  []checkpoint.Seen
}

// anchor is a checkpoint in a file.
type anchor struct {
	file   string
	signed checkpoint.Signed
}

func trustFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "trust", "", "file with the registry: and trust: to judge signatures by (default: the data directory's)")
}

// trustOf is the trust in a file, or else that of the data directory.
func (v Verbs) trustOf(file string) connect.Trust {
	return connect.Trust{File: file, PolicyFolder: v.PolicyFolder()}
}

// noteVerifier verifies checkpoints by a trust file, or else as the registry here does.
func (v Verbs) noteVerifier(i *wiring.Instance, file string) (trust.VerifyNote, error) {
	if file == "" {
		return i.VerifyNote, nil
	}
	return v.trustOf(file).VerifyNote()
}

// anchors reads the checkpoints in files and those that the registry keeps. It does so before the
// history is read, which then has all events that they cover.
func (v Verbs) anchors(ctx context.Context, i *wiring.Instance, files []string, trust string) (anchors, error) {
	var found anchors
	verify, err := v.noteVerifier(i, trust)
	if err != nil {
		return found, err
	}
	for _, file := range files {
		signed, err := checkpoint.OpenFile(ctx, verify, file)
		if err != nil {
			return found, err
		}
		found.files = append(found.files, anchor{file, signed})
	}
	kept, err := i.Checkpoints.KeptAfter(ctx, 0, 0)
	if registry.HasCode(err, registry.CodeNotFound) { // a service that has none yet
		return found, nil
	}
	if err != nil {
		return found, err
	}
	for _, k := range kept {
		seen, err := checkpoint.SeenIn(k, i.Envs.Registry)
		if err != nil {
			return found, err
		}
		_, uncounted := checkpoint.Open(ctx, verify, []byte(k.Note))
		seen.Counts = uncounted == nil
		found.kept = append(found.kept, seen)
	}
	return found, nil
}

// readSome reads a file of at most so many bytes.
func readSome(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
	case int64(len(data)) > most:
		return nil, registry.Errorf(registry.CodeInvalid, "%s has more than %d bytes, want a checkpoint or a proof", file, most)
	}
	return data, nil
}

// reader takes the events of a history in order: it checks their chain and builds their tree.
type reader struct {
	tree  checkpoint.Tree
	times map[int64]time.Time // of the newest events that anchors cover
}

// read gives what takes the events.
func (a anchors) read() *reader {
	r := &reader{times: make(map[int64]time.Time)}
	for _, f := range a.files {
		r.times[f.signed.Size] = time.Time{}
	}
	return r
}

func (r *reader) add(e history.Event) error {
	if _, wanted := r.times[e.Seq]; wanted {
		r.times[e.Seq] = e.Time
	}
	return r.tree.Append(e)
}

// check reads the whole history and compares it.
func (a anchors) check(ctx context.Context, i *wiring.Instance) (checkedHistory, error) {
	r := a.read()
	for e, err := range wholeHistory(ctx, i) {
		if err != nil {
			return checkedHistory{}, err
		}
		if err := r.add(e); err != nil {
			return checkedHistory{}, err
		}
	}
	return a.compare(i, r)
}

// compare compares the history that was read. Errors: CodeTrust, with every contradiction.
func (a anchors) compare(i *wiring.Instance, r *reader) (checkedHistory, error) {
	all := a.kept
	checked := checkedHistory{Events: int(r.tree.Size()), Last: r.tree.Last(), Kept: len(a.kept)}
	var wrong []error
	for _, f := range a.files {
		all = append(all, checkpoint.Seen{Checkpoint: f.signed.Checkpoint, Name: "checkpoint " + f.file, Counts: true})
		checked.Checkpoints = append(checked.Checkpoints, checkedByAnchor{f.file, f.signed.Size, f.signed.Signer})
		if at := r.times[f.signed.Size]; !at.IsZero() { // else the history is shorter, which is a fault of its own
			if err := f.signed.CountsAt(at); err != nil {
				wrong = append(wrong, registry.Errorf(registry.CodeTrust,
					"checkpoint %s, whose newest event is of %s: %w", f.file, at.UTC().Format(time.DateTime), err))
			}
		}
	}
	faults, err := r.tree.Compare(i.Envs.Registry, all)
	for _, f := range faults {
		wrong = append(wrong, f.Err())
	}
	return checked, errors.Join(append(wrong, err)...)
}

// checkedHistory is a history whose chain is whole.
type checkedHistory struct {
	Events      int               `json:"events"`
	Last        registry.Digest   `json:"last"`                  // hash of the last event; empty without any
	Checkpoints []checkedByAnchor `json:"checkpoints,omitempty"` // of files, which the history extends
	Kept        int               `json:"kept,omitempty"`        // checkpoints of the registry, which it extends
}

// checkedByAnchor is a checkpoint in a file.
type checkedByAnchor struct {
	File   string `json:"file"`
	Size   int64  `json:"size"`   // number of events
	Signer string `json:"signer"` // key identifier
}

// wholeHistory reads all events, in order and page by page. An error ends the sequence:
// CodeForbidden if a service does not show some.
func wholeHistory(ctx context.Context, i *wiring.Instance) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for last := int64(0); ; {
			events, err := i.History(ctx, history.HistoryQuery{After: last, Limit: storage.MaxPage})
			if err != nil {
				yield(history.Event{}, err)
				return
			}
			for _, e := range events {
				if i.Host != "" && e.Seq > last+1 {
					yield(history.Event{}, registry.Errorf(registry.CodeForbidden,
						"events %d to %d are not shown: either this token may not read them, or they are gone; ask with one that may read everything", last+1, e.Seq-1))
					return
				}
				if !yield(e, nil) {
					return
				}
				last = e.Seq
			}
			if len(events) < storage.MaxPage {
				return
			}
		}
	}
}
