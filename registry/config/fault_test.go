package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// shaky is a catalog that may be out of reach.
type shaky struct {
	*mem.DB
	asking, changing error
}

func (s *shaky) Agreed(ctx context.Context, first history.Configuration) (history.Configuration, error) {
	if s.asking != nil {
		return history.Configuration{}, s.asking
	}
	return s.DB.Agreed(ctx, first)
}

func (s *shaky) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	if s.changing != nil {
		return history.Event{}, s.changing
	}
	return s.DB.Apply(ctx, c)
}

// A process does not start on a configuration that nobody can confirm.
func TestKeepFails(t *testing.T) {
	t.Parallel()
	away := registry.Errorf(registry.CodeUnavailable, "no answer")
	for name, spoil := range map[string]func(o *config.Options[config.Snapshot], db *shaky){
		"unreadable files": func(o *config.Options[config.Snapshot], _ *shaky) {
			o.Read = func() (config.Snapshot, error) { return config.Snapshot{}, away }
		},
		"it cannot be built": func(o *config.Options[config.Snapshot], _ *shaky) {
			o.Build = func(_ context.Context, s config.Snapshot) (config.Snapshot, error) { return s, away }
		},
		"the catalog does not answer":       func(_ *config.Options[config.Snapshot], db *shaky) { db.asking = away },
		"the catalog cannot record changes": func(_ *config.Options[config.Snapshot], db *shaky) { db.changing = away },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), &shaky{DB: mem.New()}
			start(t, f, db, true)
			f.key(t, "two.pub") // so that there is a change to record
			o := config.Options[config.Snapshot]{
				Read: f.files().Read, Catalog: db, Alone: true,
				Build: func(_ context.Context, s config.Snapshot) (config.Snapshot, error) { return s, nil },
			}
			spoil(&o, db)
			if k, err := config.Keep(t.Context(), o); registry.CodeOf(err) != registry.CodeUnavailable || k != nil {
				t.Errorf("keeper %v, error %v; want none and CodeUnavailable", k, err)
			}
		})
	}
}

// While the catalog is away nothing changes, and nothing is adopted: what is in force stays so.
func TestCatalogAway(t *testing.T) {
	t.Parallel()
	away := registry.Errorf(registry.CodeUnavailable, "no answer")
	for name, c := range map[string]struct {
		alone bool
		spoil func(*shaky)
		state history.ConfigurationState // after a look
	}{
		"a replica asks in vain":       {false, func(s *shaky) { s.asking = away }, history.ConfigurationAgreed},
		"a replica cannot record":      {false, func(s *shaky) { s.changing = away }, history.ConfigurationPending},
		"a lone process asks in vain":  {true, func(s *shaky) { s.asking = away }, history.ConfigurationAgreed},
		"a lone process cannot record": {true, func(s *shaky) { s.changing = away }, history.ConfigurationUnreadable},
		"a lone process lost the race": {true, func(s *shaky) { s.changing = registry.Errorf(registry.CodeConflict, "another was first") }, history.ConfigurationUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), &shaky{DB: mem.New()}
			p := start(t, f, db, c.alone)
			old := f.now(t)
			f.write(t, "environments.yaml", chain+"trust:\n"+one)
			c.spoil(db)
			p.Look(t.Context())
			p.wantState(t, "after a look", c.state, old)
			status, err := p.Adopt(t.Context(), f.now(t))
			if code := registry.CodeOf(err); code != registry.CodeUnavailable && code != registry.CodeConflict {
				t.Errorf("adopt: error %v (%s), want that of the catalog", err, code)
			}
			if status.InForce != old {
				t.Errorf("adopt reports %s in force, want %s as before", status.InForce, old)
			}
			p.wantState(t, "after adopt", c.state, old)
			db.asking, db.changing = nil, nil
			if n := len(eventsOf(t, db.DB)); n != 0 {
				t.Errorf("%d events, want none", n)
			}
			if _, err := p.Adopt(t.Context(), f.now(t)); err != nil {
				t.Errorf("adopt when the catalog is back: %v", err)
			}
			p.wantState(t, "when the catalog is back", history.ConfigurationAgreed, f.now(t))
		})
	}
}

// Adopt takes what was reviewed, and that it can use, or nothing.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, f folder)
		text  string
	}{
		"a key that was lost meanwhile": {func(t *testing.T, f folder) {
			if err := os.Remove(filepath.Join(f.dir, "one.pub")); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
		"a file that is broken by now":    {func(t *testing.T, f folder) { f.write(t, "environments.yaml", "trsut:\n") }, "trsut"},
		"a file that was edited since":    {func(t *testing.T, f folder) { f.write(t, "environments.yaml", chain+"trust:\n"+two) }, "review them and try again"},
		"another key under the same name": {func(t *testing.T, f folder) { f.key(t, "one.pub") }, "review them and try again"},
		"a registry that cannot be served": {func(t *testing.T, f folder) {
			f.write(t, "environments.yaml", strings.Replace(chain, "local", "unbuildable", 1)+"trust:\n"+one)
		}, "it cannot be built"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), mem.New()
			p := start(t, f, db, false)
			old := f.now(t)
			f.write(t, "environments.yaml", chain+"trust:\n"+one)
			reviewed := f.now(t)
			c.spoil(t, f)
			if _, err := p.Adopt(t.Context(), reviewed); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("adopt: error %v, want one with %q", err, c.text)
			}
			if p.InForce().Configuration != old {
				t.Errorf("in force is %s, want %s as before", p.InForce().Configuration, old)
			}
			if n := len(eventsOf(t, db)); n != 0 {
				t.Errorf("%d events, want none", n)
			}
		})
	}
}

// A report goes out when something is new, and only then.
func TestReports(t *testing.T) {
	t.Parallel()
	db := mem.New()
	f := newFolder(t)
	p, other := start(t, f, db, false), start(t, newFolder(t), db, false)
	for _, step := range []struct {
		name string
		do   func()
		told bool
		want history.ConfigurationState
	}{
		{"nothing", func() {}, false, history.ConfigurationAgreed},
		{"the files change", func() { f.write(t, "environments.yaml", chain+"trust:\n"+one) }, true, history.ConfigurationPending},
		{"they are still so", func() {}, false, history.ConfigurationPending},
		{"they change again", func() { f.write(t, "environments.yaml", chain+"trust:\n"+two) }, true, history.ConfigurationPending},
		{"they break", func() { f.write(t, "environments.yaml", "trsut:\n") }, true, history.ConfigurationUnreadable},
		{"they are still broken", func() {}, false, history.ConfigurationUnreadable},
		{"they break in another way", func() { f.write(t, "environments.yaml", "turst:\n") }, true, history.ConfigurationUnreadable},
		{"they are as they were last pending", func() { f.write(t, "environments.yaml", chain+"trust:\n"+two) }, true, history.ConfigurationPending},
		{"another process adopts its own", func() {
			if _, err := other.Adopt(t.Context(), other.InForce().Configuration); err != nil {
				t.Fatal(err)
			}
		}, true, history.ConfigurationDiffers},
		{"it is still so", func() {}, false, history.ConfigurationDiffers},
	} {
		before := len(p.told)
		step.do()
		p.Look(t.Context())
		if got := len(p.told) > before; got != step.told {
			t.Errorf("%s: a report %t, want %t", step.name, got, step.told)
		}
		if got := p.Status().State; got != step.want {
			t.Errorf("%s: state %s, want %s", step.name, got, step.want)
		}
		if last := p.told[len(p.told)-1]; last.State != step.want || last.Taken {
			t.Errorf("%s: the last report says %s, taken %t; want %s and nothing taken", step.name, last.State, last.Taken, step.want)
		}
	}
}

// Run looks when it is told to, and at every tick. An interval of 0 has no ticks.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"when told to": 0, "at every tick": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, told := newFolder(t), make(chan config.Report, 2)
			k, err := config.Keep(t.Context(), config.Options[config.Snapshot]{
				Read: f.files().Read, Catalog: mem.New(), Alone: true,
				Build: func(_ context.Context, s config.Snapshot) (config.Snapshot, error) { return s, nil },
				Tell:  func(_ context.Context, r config.Report) { told <- r },
			})
			if err != nil {
				t.Fatal(err)
			}
			<-told // of the start
			f.write(t, "environments.yaml", chain+"trust:\n"+one)
			now := make(chan struct{}, 1)
			if interval == 0 {
				now <- struct{}{}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { k.Run(ctx, interval, now); close(ended) }()
			if r := <-told; !r.Taken {
				t.Errorf("report %+v, want the change taken", r)
			}
			cancel()
			<-ended
		})
	}
}

// A command that cannot settle its environments says why, and changes nothing.
func TestSettleFails(t *testing.T) {
	t.Parallel()
	away := registry.Errorf(registry.CodeUnavailable, "no answer")
	for name, c := range map[string]struct {
		spoil func(db *shaky)
		read  error
	}{
		"the catalog does not answer":    {func(db *shaky) { db.asking = away }, nil},
		"the catalog cannot record":      {func(db *shaky) { db.changing = away }, nil},
		"the files cannot be read again": {func(*shaky) {}, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), &shaky{DB: mem.New()}
			if err := config.Settle(t.Context(), db, read(t, f), f.files().Read, time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
			f.key(t, "one.pub")
			own := read(t, f)
			c.spoil(db)
			again := func() (config.Snapshot, error) { return own, c.read }
			if err := config.Settle(t.Context(), db, own, again, time.Unix(1e9, 0)); !errors.Is(err, away) {
				t.Errorf("error %v, want %v", err, away)
			}
			if n := len(eventsOf(t, db.DB)); n != 0 {
				t.Errorf("%d events, want none", n)
			}
		})
	}
	t.Run("a command that reads, in vain", func(t *testing.T) {
		t.Parallel()
		own := read(t, folder{t.TempDir()}) // the default
		in := func(context.Context) (history.Configuration, error) { return history.Configuration{}, away }
		if err := config.CheckPresent(t.Context(), own, in); !errors.Is(err, away) {
			t.Errorf("error %v, want %v", err, away)
		}
	})
}
