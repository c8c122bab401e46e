package service_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	guard "mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// standing is a clock of a catalog.
type standingClock struct{ *registrytest.Clock }

func (s standingClock) CatalogTime(context.Context) (time.Time, error) { return s.Now(), nil }

func TestNodeReporter(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]func(t *testing.T) storage.NodeReports{
		"memory": func(*testing.T) storage.NodeReports { return mem.NewTable[storage.NodeReport]() },
		"sqlite": func(t *testing.T) storage.NodeReports {
			t.Helper()
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db.NodeReports()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registrytest.TestNodeReporter(t, func(t *testing.T) registrytest.NodeReporting {
				w, clock := setup(t), registrytest.NewClock()
				return registrytest.NodeReporting{Registry: w.Registry, Pass: clock.Pass,
					Nodes: service.NodeReports{Table: table(t), Inspector: w.Interface, Clock: standingClock{clock}, Life: time.Hour}}
			})
		})
	}
}

// Where no life is set, no report is taken.
func TestNodeReportsOff(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.Promoted(t, registrytest.Build{})
	n := service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: w.Interface, Clock: standingClock{registrytest.NewClock()}}
	_, err := n.ReportNode(t.Context(), storage.NodeReport{Node: "a", Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest})
	if !registry.HasCode(err, registry.CodeUnavailable) || len(registry.Hints(err)) == 0 {
		t.Errorf("error %v, want CodeUnavailable and what turns reports on", err)
	}
}

// A caller replaces and fills up nothing of another one, and what has expired makes room.
func TestNodeReportsOfCallers(t *testing.T) {
	t.Parallel()
	w, clock, table := setup(t), registrytest.NewClock(), mem.NewTable[storage.NodeReport]()
	r := w.Promoted(t, registrytest.Build{})
	nodes := guard.GuardNodes(service.NodeReports{Table: table, Inspector: w.Interface, Clock: standingClock{clock}, Life: time.Hour})
	as := func(name string) context.Context {
		return storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:" + name, Grants: []storage.Grant{
			{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "prod", Model: r.Model}}})
	}
	report := func(ctx context.Context, node string) error {
		_, err := nodes.ReportNode(ctx, storage.NodeReport{Node: node, Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest})
		return err
	}
	for _, name := range []string{"fleet", "thief"} {
		if err := report(as(name), "edge-7"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := storage.AllNodeReports(as("reader"), nodes, "prod", r.Model)
	if err != nil || len(all) != 2 || all[0].Reporter == all[1].Reporter {
		t.Errorf("reports %+v, error %v, want one of each caller", all, err)
	}
	if _, err := storage.AllNodeReports(as("reader"), nodes, "staging", r.Model); !registry.HasCode(err, registry.CodeForbidden) {
		t.Errorf("list of an environment that may not be read: error %v", err)
	}
	for i := range storage.MaxNodeReports - 1 {
		one := storage.NodeReport{Node: fmt.Sprintf("n%d", i), Environment: "prod", Model: r.Model, Reporter: "token:thief", ExpiresOn: clock.Now().Add(time.Minute)}
		if err := table.Put(t.Context(), one.Name(), one); err != nil {
			t.Fatal(err)
		}
	}
	if err := report(as("thief"), "one-too-many"); !registry.HasCode(err, registry.CodeFull) {
		t.Errorf("one too many: error %v, want CodeFull", err)
	}
	if err := report(as("fleet"), "edge-8"); err != nil {
		t.Errorf("another caller: %v", err)
	}
	clock.Pass(time.Minute)
	if err := report(as("thief"), "edge-9"); err != nil {
		t.Errorf("after others have expired: %v", err)
	}
	if left, err := table.List(t.Context(), "", storage.MaxPage); err != nil || len(left) != 4 {
		t.Errorf("%d reports are stored, error %v, want those 4 that have not expired: the silent ones made room", len(left), err)
	}
}

// Whoever fills the list with the token of a machine that fell silent does not take it off the list, nor keep it from coming back.
func TestNodeReportsOfSilentMachines(t *testing.T) {
	t.Parallel()
	w, clock, table := setup(t), registrytest.NewClock(), mem.NewTable[storage.NodeReport]()
	r := w.Promoted(t, registrytest.Build{})
	nodes := service.NodeReports{Table: table, Inspector: w.Interface, Clock: standingClock{clock}, Life: time.Hour}
	ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:fleet"})
	report := func(node, machine string) error {
		_, err := nodes.ReportNode(ctx, storage.NodeReport{Node: node, Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest, Machine: machine})
		return err
	}
	machine := strings.Repeat("a", 64)
	if err := report("edge-7", machine); err != nil {
		t.Fatal(err)
	}
	clock.Pass(time.Hour)
	for i := range storage.MaxNodeReports - 1 {
		one := storage.NodeReport{Node: fmt.Sprintf("n%d", i), Environment: "prod", Model: r.Model, Reporter: "token:fleet", ExpiresOn: clock.Now().Add(time.Hour)}
		if err := table.Put(t.Context(), one.Name(), one); err != nil {
			t.Fatal(err)
		}
	}
	if err := report("one-too-many", strings.Repeat("b", 64)); !registry.HasCode(err, registry.CodeFull) {
		t.Errorf("one too many: error %v, want CodeFull", err)
	}
	if silent, err := storage.AllSilentNodes(ctx, nodes, "prod", r.Model); err != nil || len(silent) != 1 || silent[0].Node != "edge-7" {
		t.Errorf("silent nodes %+v, error %v, want edge-7", silent, err)
	}
	if err := report("edge-7", machine); err != nil {
		t.Errorf("the machine reports again: %v", err)
	}
}

// Machines that share a token and a name have a line each: none replaces or hides what another one said, whatever it sends, and the
// lists do not give away by what a machine is known.
func TestNodeReportsOfMachines(t *testing.T) {
	t.Parallel()
	w, clock := setup(t), registrytest.NewClock()
	r := w.Promoted(t, registrytest.Build{})
	nodes := service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: w.Interface, Clock: standingClock{clock}, Life: time.Hour}
	ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:fleet"})
	report := func(machine string) storage.NodeReport {
		one, err := nodes.ReportNode(ctx, storage.NodeReport{Node: "edge-7", Environment: "prod", Model: r.Model, Release: r.Digest, Engine: r.Engines[0].Digest, Machine: machine})
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	proof := strings.Repeat("a", 64)
	own := report(proof)
	if strings.Contains(own.Machine, "aaaa") || len(own.Machine) != 32 {
		t.Errorf("the report gives %q away", own.Machine)
	}
	clock.Pass(time.Minute)
	for _, machine := range []string{"", strings.Repeat("b", 64), own.Machine + own.Machine} {
		report(machine)
	}
	all, err := storage.AllNodeReports(ctx, nodes, "prod", r.Model)
	if err != nil || len(all) != 4 || !slices.Contains(all, own) {
		t.Errorf("reports %+v, error %v, want 4, and as it was %+v", all, err, own)
	}
	if shared := storage.SharedNames(all); len(shared) != 1 || shared[own.NodeName()] != 4 {
		t.Errorf("shared names %v, want that of the node, 4 times", shared)
	}
	again := report(proof)
	if all, err = storage.AllNodeReports(ctx, nodes, "prod", r.Model); err != nil || len(all) != 4 || !slices.Contains(all, again) {
		t.Errorf("reports %+v, error %v, want that the machine replaced its own", all, err)
	}
	if shared := storage.SharedNames(all[:1]); len(shared) != 0 {
		t.Errorf("shared names of one report: %v", shared)
	}
}

// What is forgotten is deleted also where no node speaks of the model any more, and what comes again meanwhile stays.
func TestNodeReportsExpire(t *testing.T) {
	t.Parallel()
	clock, table := registrytest.NewClock(), mem.NewTable[storage.NodeReport]()
	put := func(model, node string, life time.Duration) storage.NodeReport {
		one := storage.NodeReport{Node: node, Environment: "prod", Model: model, Reporter: "token:fleet", ReportedOn: clock.Now().UTC(), ExpiresOn: clock.Now().Add(life).UTC()}
		if err := table.Put(t.Context(), one.Name(), one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	put("audio/old", "a", time.Minute)
	put("vision/old", "b", time.Minute)
	renewed := put("audio/renewed", "d", time.Minute)
	clock.Pass(time.Minute)
	kept := put("vision/silent", "c", time.Minute)
	clock.Pass(time.Minute)
	nodes := service.NodeReports{Table: renewing{table, renewed}, Clock: standingClock{clock}}
	if n, err := nodes.Expire(t.Context()); err != nil || n != 2 {
		t.Errorf("%d reports expired, error %v, want 2", n, err)
	}
	left, err := table.List(t.Context(), "", 10)
	if err != nil || len(left) != 2 || left[0].Document.Node != "d" || left[1].Document != kept {
		t.Errorf("left are %+v, error %v, want that which came again and that which is silent", left, err)
	}
}

// renewing is a table in which a node reports again after a page was read.
type renewing struct {
	storage.NodeReports
	again storage.NodeReport
}

func (r renewing) List(ctx context.Context, after string, limit int) ([]registry.Named[storage.NodeReport], error) {
	page, err := r.NodeReports.List(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	r.again.ExpiresOn = r.again.ExpiresOn.Add(time.Hour)
	return page, r.Put(ctx, r.again.Name(), r.again)
}

// Who may read one model sees no other one, neither in a list nor in where its next page begins.
func TestNodeReportsOfOneModel(t *testing.T) {
	t.Parallel()
	clock, table := registrytest.NewClock(), mem.NewTable[storage.NodeReport]()
	for _, model := range []string{"audio/secret", registrytest.Model, "vision/secret"} {
		for _, node := range []string{"a", "b"} {
			one := storage.NodeReport{Node: node, Environment: "prod", Model: model, ExpiresOn: clock.Now().Add(time.Hour)}
			if err := table.Put(t.Context(), one.Name(), one); err != nil {
				t.Fatal(err)
			}
		}
	}
	nodes := guard.GuardNodes(service.NodeReports{Table: table, Clock: standingClock{clock}, Life: time.Hour})
	ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:reader", Grants: []storage.Grant{
		{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "prod", Model: registrytest.Model}}})
	var seen []string
	for after := ""; ; {
		page, err := nodes.NodeReports(ctx, "prod", "", after, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			seen = append(seen, r.Model+" "+r.Node)
		}
		if after = page.Next; after == "" {
			break
		}
		if strings.Contains(after, "secret") {
			t.Fatalf("the next page begins after %s", after)
		}
	}
	if want := []string{registrytest.Model + " a", registrytest.Model + " b"}; !slices.Equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}
