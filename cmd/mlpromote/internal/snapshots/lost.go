package snapshots

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/signer"
)

// Since is what whoever restores a catalog knows about the time after it was copied. The zero value knows
// nothing, and nothing is restored.
type Since struct {
	Checkpoint string // file with a signed checkpoint that is newer than the catalog
	Accepted   bool   // it is accepted that later events are lost
}

// Lost is what a restored registry cannot know.
type Lost struct {
	After  time.Time `json:"after"`            // when the snapshot was made, or of the last event
	Events *int64    `json:"events,omitempty"` // lost events that a checkpoint covers; nil: not known
	// Unknown says what may have happened since, and what to do about it.
	Unknown []string `json:"unknown"`
}

// check refuses a catalog without a word about the time after it. what is the catalog.
func (s Since) check(what string, after time.Time) error {
	if s.Checkpoint != "" || s.Accepted {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid,
			"%s knows nothing that happened after %s, such as quarantines, revocations, holds and revoked tokens: nothing was restored",
			what, after.UTC().Format(time.RFC3339)),
		"--checkpoint FILE with a checkpoint from after that time counts the lost events; --lost-events-accepted restores without one")
}

// restoredCatalog is a catalog that may be older than the one that it was made of.
type restoredCatalog interface {
	storage.Tokens
	History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
	Apply(ctx context.Context, change storage.Change) (history.Event, error)
}

// lost finds out what a restored catalog lacks, and writes that into its history. origin says
// where it came from.
func (j Job) lost(ctx context.Context, restored restoredCatalog, origin string, after time.Time, since Since) (Lost, error) {
	lost := Lost{After: after.UTC()}
	if since.Checkpoint != "" {
		n, err := j.lostSince(ctx, restored, since.Checkpoint)
		if err != nil {
			return Lost{}, err
		}
		lost.Events = &n
	}
	tokens, err := restored.ListTokens(ctx)
	if err != nil {
		return Lost{}, err
	}
	usable := 0
	for _, t := range tokens {
		if access.Usable(t, clock.Now()) == nil {
			usable++
		}
	}
	lost.Unknown = unknown(usable)
	_, err = restored.Apply(ctx, storage.Change{Event: history.Event{
		Time: clock.Now(), Kind: history.EventRestore, Reason: registry.PlainText(lost.reason(origin)),
	}})
	return lost, err
}

// lostSince returns how many events of the checkpoint in a file the restored catalog lacks.
func (j Job) lostSince(ctx context.Context, restored restoredCatalog, file string) (int64, error) {
	own, err := j.At.Files().Read()
	if err != nil {
		return 0, err
	}
	trust, err := signer.NewTrust(own.Environments.Trust, own.Key)
	if err != nil {
		return 0, err
	}
	trust.WithRoots(own.Environments.Roots)
	signed, err := checkpoint.OpenFile(ctx, trust.VerifyNote, file)
	if err != nil {
		return 0, err
	}
	var tree checkpoint.Tree
	for e, err := range restored.History(ctx, history.HistoryQuery{}) {
		if err == nil {
			err = tree.Append(e)
		}
		if err != nil {
			return 0, err
		}
	}
	return tree.Lost(own.Environments.Registry, checkpoint.Seen{Checkpoint: signed.Checkpoint, Name: file, Counts: true})
}

// unknown says what a restored registry cannot know.
func unknown(tokens int) []string {
	all := []string{
		"quarantines, failing reports and restrictions: engines that were recalled since are served again; recall them again",
		"keys, identities and permissions that were revoked: compare environments.yaml and access.yaml with the last ones",
		"holds, rollbacks and promotions: heads and holds are as they were",
	}
	if tokens > 0 {
		all = append(all, registry.Count(int64(tokens), "token")+
			" of the backup can be used, also if revoked since: revoke them again before a service starts")
	}
	return all
}

// reason is what the history says about a restore.
func (l Lost) reason(origin string) string {
	events := "later events may be lost"
	if l.Events != nil {
		events = "a checkpoint covers " + registry.Count(*l.Events, "later event") + ", which the backup lacks"
	}
	return fmt.Sprintf("%s: %s; not known since %s: %s",
		origin, events, l.After.Format(time.RFC3339), strings.Join(l.Unknown, "; "))
}
