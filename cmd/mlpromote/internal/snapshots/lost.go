package snapshots

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/checkpoint"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/signer"
)

// Since is what whoever restores a snapshot knows about the time after it. The zero value knows
// nothing, and nothing is restored.
type Since struct {
	Checkpoint string // file with a signed checkpoint that is newer than the snapshot
	Accepted   bool   // it is accepted that later events are lost
}

// Lost is what a restored registry cannot know.
type Lost struct {
	After  time.Time `json:"after"`            // when the snapshot was made
	Events *int64    `json:"events,omitempty"` // lost events that a checkpoint covers; nil: not known
	// Unknown says what may have happened since, and what to do about it.
	Unknown []string `json:"unknown"`
}

// check refuses a restore without a word about the time after the snapshot.
func (s Since) check(snapshot Snapshot) error {
	if s.Checkpoint != "" || s.Accepted {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid,
			"snapshot %s knows nothing that happened after %s, such as quarantines, revocations, holds and revoked tokens: nothing was restored",
			snapshot.Name, snapshot.Created.UTC().Format(time.RFC3339)),
		"--checkpoint FILE with a checkpoint from after that time says how many events are lost; --lost-events-accepted restores without one")
}

// lost finds out what the restored catalog lacks, and writes that into its history.
func (j Job) lost(ctx context.Context, restored *sqlite.DB, snapshot Snapshot, since Since) (Lost, error) {
	lost := Lost{After: snapshot.Created.UTC()}
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
	_, err = restored.Apply(ctx, registry.Change{Event: registry.Event{
		Time: clock.Now(), Kind: registry.EventRestore, Reason: registry.PlainText(lost.reason(snapshot)),
	}})
	return lost, err
}

// lostSince returns how many events of the checkpoint in a file the restored catalog lacks.
func (j Job) lostSince(ctx context.Context, restored *sqlite.DB, file string) (int64, error) {
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
	for e, err := range restored.History(ctx, registry.HistoryQuery{}) {
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
			" of the snapshot can be used, also if revoked since: revoke again what was, before a service starts")
	}
	return all
}

// reason is what the history says about a restore.
func (l Lost) reason(snapshot Snapshot) string {
	events := "later events may be lost"
	if l.Events != nil {
		events = "a checkpoint covers " + registry.Count(*l.Events, "later event") + ", which the backup lacks"
	}
	return fmt.Sprintf("restored from snapshot %s: %s; not known since %s: %s",
		snapshot.Name, events, l.After.Format(time.RFC3339), strings.Join(l.Unknown, "; "))
}
