package config

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Options configures a Keeper. Alone, Tell and Now are optional.
type Options[G any] struct {
	// Read reads the files: see [Files.Read].
	Read func() (Snapshot, error)
	// Build makes the parts of a process that use a configuration. It fails if the
	// configuration cannot be used.
	Build func(ctx context.Context, s Snapshot) (G, error)
	// Catalog stores the agreed configuration.
	Catalog Catalog
	// Alone says that no other process uses the catalog. Then a change of the files is agreed
	// on at once; otherwise an operator has to adopt it.
	Alone bool
	// Tell receives a report when something changed. It must return quickly.
	Tell func(ctx context.Context, r Report)
	Now  storage.Clock // nil means time.Now
}

// Catalog is the part of a catalog that a Keeper uses.
type Catalog interface {
	history.Configurations
	Apply(ctx context.Context, c storage.Change) (history.Event, error)
}

// Report is the result of one check of the files.
type Report struct {
	history.ConfigurationStatus
	// Taken says that this check put another configuration into force. Changes then lists the
	// differences from the previous one.
	Taken bool
}

// Keeper holds the configuration in force, and what was built from it. Make one with [Keep].
// It is safe for concurrent use.
type Keeper[G any] struct {
	Options[G]
	mu    sync.Mutex // one check at a time
	state atomic.Pointer[state[G]]
}

// state is what a Keeper knows. It is replaced, never modified.
type state[G any] struct {
	inForce Snapshot
	built   G
	onDisk  Snapshot // the last usable one
	agreed  history.Configuration
	problem error // why the files cannot be used
}

// system is the principal of changes that a process makes on its own.
const system = "system"

// Keep reads the configuration and puts it into force. If none was agreed on yet, it becomes
// the agreed one. Errors: those of Read, Build and the catalog.
func Keep[G any](ctx context.Context, o Options[G]) (*Keeper[G], error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tell == nil {
		o.Tell = func(context.Context, Report) {}
	}
	k := &Keeper[G]{Options: o}
	s, err := k.Read()
	if err != nil {
		return nil, err
	}
	built, err := k.Build(ctx, s)
	if err != nil {
		return nil, err
	}
	agreed, err := k.Catalog.Agreed(ctx, s.Configuration)
	if err != nil {
		return nil, err
	}
	if k.Alone && len(s.Differs(agreed)) > 0 {
		if err := s.standsIn(agreed); err != nil {
			return nil, err
		}
		why := "the files changed while no service used this catalog: " + strings.Join(s.Differs(agreed), ", ")
		if agreed, err = k.agree(ctx, agreed, s.Configuration, why); err != nil {
			return nil, err
		}
	}
	st := &state[G]{inForce: s, built: built, onDisk: s, agreed: agreed}
	k.state.Store(st)
	k.Tell(ctx, Report{ConfigurationStatus: st.status()})
	return k, nil
}

// InForce returns what was built from the configuration in force.
func (k *Keeper[G]) InForce() G { return k.state.Load().built }

// Status returns the status as of the last check.
func (k *Keeper[G]) Status() history.ConfigurationStatus { return k.state.Load().status() }

// LastAgreed returns the configuration that was agreed on at the last check.
func (k *Keeper[G]) LastAgreed(context.Context) (history.Configuration, error) {
	return k.state.Load().agreed, nil
}

// Agreed asks the catalog for the agreed configuration.
func (k *Keeper[G]) Agreed(ctx context.Context) (history.Configuration, error) {
	return k.Catalog.Agreed(ctx, history.Configuration{})
}

// Run checks the files at every tick of an interval, and whenever it receives from now, until
// ctx ends. An interval of 0 never ticks.
func (k *Keeper[G]) Run(ctx context.Context, interval time.Duration, now <-chan struct{}) {
	var ticks <-chan time.Time
	if interval > 0 {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		case <-now:
		}
		k.Look(ctx)
	}
}

// Look reads the files and the agreed configuration. If they are equal, it puts the files into
// force. Unusable files have no effect.
func (k *Keeper[G]) Look(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.state.Load()
	agreed, err := k.Agreed(ctx)
	if err != nil { // the catalog does not answer; the readiness check reports that
		return
	}
	k.swap(ctx, before, k.look(ctx, *before, agreed))
}

// swap puts a state into force and reports what changed.
func (k *Keeper[G]) swap(ctx context.Context, before *state[G], after state[G]) {
	k.state.Store(&after)
	report := Report{ConfigurationStatus: after.status(), Taken: after.inForce.Configuration != before.inForce.Configuration}
	if report.Taken {
		report.Changes = Changes(before.inForce, after.inForce)
	}
	was := before.status() // the state follows from these
	if report.Taken || report.Problem != was.Problem || report.OnDisk != was.OnDisk || report.Agreed != was.Agreed {
		k.Tell(ctx, report)
	}
}

// look reads the files and returns the state that follows.
func (k *Keeper[G]) look(ctx context.Context, st state[G], agreed history.Configuration) state[G] {
	st.agreed = agreed
	found, err := k.Read()
	if err == nil {
		err = lost(st.inForce, found)
	}
	same := len(found.Differs(agreed)) == 0
	switch known := found.Configuration == st.onDisk.Configuration; {
	case err != nil:
		st.problem = err
	case k.Alone && !same:
		st, st.problem = k.take(ctx, st, found, true)
	case same && found.Configuration != st.inForce.Configuration:
		st, st.problem = k.take(ctx, st, found, false)
	case !known: // an operator has to adopt it; tell now whether it can be used
		if _, st.problem = k.Build(ctx, found); st.problem == nil {
			st.onDisk = found
		}
	default:
		st.problem = nil
	}
	return st
}

// take puts the files into force. If record is set, it also records them as the agreed
// configuration.
func (k *Keeper[G]) take(ctx context.Context, st state[G], found Snapshot, record bool) (state[G], error) {
	built, err := k.Build(ctx, found)
	if err == nil && record {
		why := Changes(st.inForce, found)
		if len(why) == 0 {
			why = []string{"the files changed, but not their meaning: " + strings.Join(found.Differs(st.agreed), ", ")}
		}
		st.agreed, err = k.agree(ctx, st.agreed, found.Configuration, reason(why))
	}
	if err != nil {
		return st, err
	}
	st.inForce, st.onDisk, st.built = found, found, built
	return st, nil
}

// lost refuses a configuration if one of its files has disappeared, because that may be an
// accident. Without its key file, a trust entry would lose its effect. Without
// environments.yaml, the embedded default might trust a key that the file had revoked.
func lost(before, found Snapshot) error {
	if found.isDefault && !before.isDefault {
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "%s is gone; the configuration from it stays in force", environments.File),
			"put the file back; to use the default, write the default into it")
	}
	for _, path := range found.MissingKeys() {
		if _, had := before.keys[path]; had {
			return registry.WithHint(
				registry.Errorf(registry.CodeInvalid, "public key %s is gone, but environments.yaml still names it", path),
				"put the file back, or remove the entry from trust:")
		}
	}
	return nil
}

// agree replaces the agreed configuration and records an event. Errors: CodeConflict if
// another process replaced it first.
func (k *Keeper[G]) agree(ctx context.Context, before, to history.Configuration, why string) (history.Configuration, error) {
	change, err := storage.Adopt(before, to, why, k.Now())
	if err != nil {
		return before, err
	}
	change.Event.Principal = system
	if p, ok := storage.PrincipalOf(ctx); ok {
		change.Event.Principal = p.Name
	}
	if _, err := k.Catalog.Apply(ctx, change); err != nil {
		return before, err
	}
	return to.Over(before), nil
}

// Adopt makes the configuration in the files the agreed one, and puts it into force here. want
// is the configuration that the files are expected to have, so that the operator adopts only
// what was reviewed. Errors: CodeConflict if the files differ from want; the problem of
// unusable files; those of the catalog.
func (k *Keeper[G]) Adopt(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.state.Load()
	agreed, err := k.Agreed(ctx)
	if err != nil {
		return before.status(), err
	}
	after := k.look(ctx, *before, agreed)
	err = after.problem
	if err == nil && after.onDisk.Configuration != want {
		err = registry.Errorf(registry.CodeConflict,
			"the configuration to adopt is %s, but the files of this process have %s: review them and try again",
			want, after.onDisk.Configuration)
	}
	if err != nil {
		return before.status(), err
	}
	if len(want.Differs(after.agreed)) > 0 {
		if after, err = k.take(ctx, after, after.onDisk, true); err != nil {
			return before.status(), err
		}
	}
	k.swap(ctx, before, after)
	return k.Status(), nil
}

func (st *state[G]) status() history.ConfigurationStatus {
	s := history.ConfigurationStatus{
		State: history.ConfigurationAgreed, Agreed: st.agreed, InForce: st.inForce.Configuration, OnDisk: st.onDisk.Configuration,
	}
	if st.problem != nil {
		s.Problem = st.problem.Error()
	}
	if s.OnDisk != s.InForce {
		s.Changes = Changes(st.inForce, st.onDisk)
	}
	switch {
	case len(s.InForce.Differs(s.Agreed)) > 0:
		s.State = history.ConfigurationDiffers
	case st.problem != nil:
		s.State = history.ConfigurationUnreadable
	case s.OnDisk != s.InForce:
		s.State = history.ConfigurationPending
	}
	return s
}
