package datadir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// replicaFolder has a file for each replica that runs.
const replicaFolder = "replicas"

var _ storage.ReplicaPlace = Dir{}

// SetReplicaMark replaces the file of a replica.
func (d Dir) SetReplicaMark(ctx context.Context, name string, seen time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.file(replicaFolder), 0o700); err != nil {
		return d.interpret(err)
	}
	return d.replace(filepath.Join(replicaFolder, name), []byte(seen.UTC().Format(time.RFC3339Nano)+"\n"))
}

// ReplicaMark reads the file of a replica.
func (d Dir) ReplicaMark(ctx context.Context, name string) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	text, err := d.line(filepath.Join(replicaFolder, name))
	if err != nil || text == "" {
		return time.Time{}, err
	}
	seen, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, registry.Errorf(registry.CodeInvalid, "%s: want a time, found %q: delete the file",
			d.file(filepath.Join(replicaFolder, name)), text)
	}
	return seen, nil
}

// DeleteReplicaMark removes the file of a replica.
func (d Dir) DeleteReplicaMark(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := os.Remove(d.file(filepath.Join(replicaFolder, name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const (
	// lookInterval is how often a replica looks whether another asks, in the catalog alone.
	lookInterval = time.Second
	// joinTries bounds how often Join looks before it returns without having joined.
	joinTries = int(storage.MarkPatience/lookInterval) + 3
	// forgetMarks is how long after its last renewal the mark of a lost replica is deleted.
	forgetMarks = time.Hour
)

// Replica is a process that serves content together with others, and may write while it sees that
// they work on the same content. All fields are required.
type Replica struct {
	Name  string               // unique among replicas, and the name of a file
	Marks storage.ReplicaMarks // of the catalog
	Place storage.ReplicaPlace // with the content
	Clock storage.CatalogClock
	// Tell is called when the replica may no longer write, and with nil when it may.
	Tell func(ctx context.Context, err error)

	own    storage.ReplicaMark // used by one goroutine
	looked time.Time           // when the marks of others were last read, by the catalog's clock

	mu      sync.Mutex
	renewed time.Time // by the clock of this process
	refusal error     // why it may not write
	told    bool
}

// Join leaves the marks of this replica and looks for other replicas' marks, until it may write or
// cannot expect to soon.
func (r *Replica) Join(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for try := 1; ; try++ {
		err := r.look(ctx)
		if err != nil {
			r.fail(ctx, err)
		}
		if err != nil || !r.own.Joined.IsZero() || try == joinTries {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Run renews the marks until ctx ends, and then deletes them. Call Join first.
func (r *Replica) Run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = r.forget(last, r.Name) // else they expire
			return
		case <-ticker.C:
		}
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.fail(ctx, err)
		}
	}
}

// Check returns nil if this replica may write. Errors: CodeUnavailable.
func (r *Replica) Check() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == nil && time.Since(r.renewed) >= storage.MarkLease {
		return expired(errors.New("it was suspended, or catalog and storage did not answer"))
	}
	return r.refusal
}

// expired is the error of a replica that did not renew its marks in time.
func expired(cause error) error {
	return registry.ForClients(
		registry.Errorf(registry.CodeUnavailable, "this replica did not renew its marks for %v: %w", storage.MarkLease, cause),
		"this replica could not renew its marks, so it writes nothing: try another replica, or later")
}

// fail refuses writes once the marks have expired.
func (r *Replica) fail(ctx context.Context, err error) {
	r.mu.Lock()
	over := time.Since(r.renewed) >= storage.MarkLease
	r.mu.Unlock()
	if over {
		r.decide(ctx, expired(err))
	}
}

// look renews the marks if that is due or another replica asks for it, and reads those of others.
func (r *Replica) look(ctx context.Context) error {
	now, err := r.Clock.CatalogTime(ctx)
	if err != nil {
		return err
	}
	others, err := r.others(ctx)
	if err != nil {
		return err
	}
	if now.Sub(r.own.Seen) >= storage.MarkLease { // new, or it has expired
		if !r.own.Joined.IsZero() { // it may not write until it has looked again
			r.decide(ctx, expired(errors.New("it was suspended, or catalog and storage did not answer")))
		}
		r.own = storage.ReplicaMark{Asked: now}
	}
	if now.Sub(r.own.Seen) >= storage.MarkInterval || r.asked(others) {
		if r.own.Joined.IsZero() { // marks that were copied since the last time do not count
			r.own.Asked = now
		}
		if err := r.renew(ctx, now); err != nil {
			return err
		}
	}
	if !r.own.Joined.IsZero() && now.Sub(r.looked) < storage.MarkInterval {
		return nil
	}
	unseen, err := r.unseen(ctx, others, now)
	if err != nil {
		return err
	}
	return r.join(ctx, unseen, now)
}

// asked reports whether a replica that has not joined waits for this one to renew its marks.
func (r *Replica) asked(others []registry.Named[storage.ReplicaMark]) bool {
	for _, other := range others {
		if other.Document.Joined.IsZero() && !other.Document.Asked.Before(r.own.Seen) {
			return !r.own.Joined.IsZero()
		}
	}
	return false
}

// join begins or ends the time in which this replica may write. Two that begin at once both look
// again after that, so at least one of them sees that the other works elsewhere.
func (r *Replica) join(ctx context.Context, unseen []string, now time.Time) error {
	if len(unseen) == 0 && r.own.Joined.IsZero() {
		r.own.Joined = now
		if err := r.renew(ctx, now); err != nil {
			r.own.Joined = time.Time{}
			return err
		}
		others, err := r.others(ctx)
		if err == nil {
			unseen, err = r.unseen(ctx, others, now)
		}
		if err != nil {
			r.own.Joined = time.Time{}
			return errors.Join(err, r.renew(ctx, now))
		}
	}
	if len(unseen) == 0 {
		r.decide(ctx, nil)
		return nil
	}
	if !r.own.Joined.IsZero() {
		r.own = storage.ReplicaMark{Asked: now, Seen: now}
		if err := r.renew(ctx, now); err != nil {
			return err
		}
	}
	r.decide(ctx, registry.ForClients(
		registry.WithHint(
			registry.Errorf(registry.CodeUnavailable,
				"the content here lacks the marks of %s, which runs: this replica works on a copy, or on another directory or bucket",
				strings.Join(unseen, ", ")),
			"give all replicas the same directory or bucket; if the others will never run again, stop them"),
		"this replica does not have the content of the others, so it writes nothing: try another replica"))
	return nil
}

// decide remembers whether this replica may write, and tells of changes.
func (r *Replica) decide(ctx context.Context, refusal error) {
	r.mu.Lock()
	changed := !r.told || (r.refusal == nil) != (refusal == nil)
	r.refusal, r.told = refusal, true
	r.mu.Unlock()
	if changed {
		r.Tell(ctx, refusal)
	}
}

// renew writes the mark with the content first: others must find it there once the catalog has it.
func (r *Replica) renew(ctx context.Context, now time.Time) error {
	began := time.Now()
	if err := r.Place.SetReplicaMark(ctx, r.Name, now); err != nil {
		return err
	}
	own := r.own
	own.Seen = now
	if err := r.Marks.Put(ctx, r.Name, own); err != nil {
		return err
	}
	r.own = own
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed = began
	return nil
}

// others reads the marks of the other replicas in the catalog.
func (r *Replica) others(ctx context.Context) ([]registry.Named[storage.ReplicaMark], error) {
	all, err := r.Marks.List(ctx, "", storage.MaxPage)
	var others []registry.Named[storage.ReplicaMark]
	for _, one := range all {
		if one.Name != r.Name {
			others = append(others, one)
		}
	}
	return others, err
}

// unseen reads the marks with the content and names the replicas whose marks are missing. It
// forgets replicas that were lost long ago.
func (r *Replica) unseen(ctx context.Context, others []registry.Named[storage.ReplicaMark], now time.Time) ([]string, error) {
	inContent := make(map[string]time.Time)
	for _, other := range others {
		var err error
		switch {
		case other.Document.Living(now):
			inContent[other.Name], err = r.Place.ReplicaMark(ctx, other.Name)
		case now.Sub(other.Document.Seen) > forgetMarks:
			err = r.forget(ctx, other.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	r.looked = now
	missing := r.own.Unseen(others, inContent, now)
	if len(missing) == 0 {
		return nil, nil
	}
	left, err := r.others(ctx) // a replica that stopped meanwhile deleted its mark in the catalog first
	return slices.DeleteFunc(missing, func(name string) bool {
		return !slices.ContainsFunc(left, func(other registry.Named[storage.ReplicaMark]) bool { return other.Name == name })
	}), err
}

// forget deletes the marks of a replica.
func (r *Replica) forget(ctx context.Context, name string) error {
	err := r.Marks.Delete(ctx, name)
	if registry.HasCode(err, registry.CodeNotFound) {
		err = nil
	}
	return errors.Join(err, r.Place.DeleteReplicaMark(ctx, name))
}
