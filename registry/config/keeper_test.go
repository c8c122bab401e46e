package config_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	chain = "registry: local\nenvironments:\n  staging:\n  prod: {from: staging}\n"
	one   = `  - {key: one.pub, roles: [builder, verifier], resources: ["oci://local/"]}` + "\n"
	two   = `  - {key: two.pub, roles: [promoter], resources: ["oci://local/prod/"]}` + "\n"
)

// folder has files of configuration.
type folder struct{ dir string }

// newFolder makes a folder with environments.yaml and both keys.
func newFolder(t *testing.T) folder {
	t.Helper()
	f := folder{t.TempDir()}
	f.key(t, "one.pub")
	f.key(t, "two.pub")
	f.write(t, "environments.yaml", chain+"trust:\n"+one+two)
	return f
}

func (f folder) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// key writes a new public key to a file.
func (f folder) key(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, name, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}

// keyID is the SHA-256 of the key in a PEM file.
func keyID(data []byte) (string, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return "", errors.New("no PEM block")
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:]), nil
}

func (f folder) files() config.Files { return config.Files{Dir: f.dir, KeyID: keyID} }

// process is a process with its own files.
type process struct {
	*config.Keeper[config.Snapshot]
	told []config.Report
}

func start(t *testing.T, f folder, catalog config.Catalog, alone bool) *process {
	t.Helper()
	p := &process{}
	k, err := config.Keep(t.Context(), config.Options[config.Snapshot]{
		Read: f.files().Read, Catalog: catalog, Alone: alone,
		Build: func(_ context.Context, s config.Snapshot) (config.Snapshot, error) {
			if s.Environments.Registry == "unbuildable" {
				return s, errors.New("it cannot be built")
			}
			return s, nil
		},
		Tell: func(_ context.Context, r config.Report) { p.told = append(p.told, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Keeper = k
	return p
}

// wantState checks the state and the configuration in force.
func (p *process) wantState(t *testing.T, what string, want history.ConfigurationState, inForce history.Configuration) {
	t.Helper()
	s := p.Status()
	if s.State != want || s.InForce != inForce || p.InForce().Configuration != inForce {
		t.Errorf("%s: state %s (%s), in force %s, built from %s; want %s with %s",
			what, s.State, s.Problem, s.InForce, p.InForce().Configuration, want, inForce)
	}
}

func (f folder) now(t *testing.T) history.Configuration {
	t.Helper()
	s, err := f.files().Read()
	if err != nil {
		t.Fatal(err)
	}
	return s.Configuration
}

func eventsOf(t *testing.T, db *mem.DB) []history.Event {
	t.Helper()
	var events []history.Event
	for e, err := range db.History(t.Context(), history.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// A process that is alone on the catalog puts a change into force at the next look. The
// history says what changed.
func TestAlone(t *testing.T) {
	t.Parallel()
	f, db := newFolder(t), mem.New()
	p := start(t, f, db, true)
	p.wantState(t, "at first", history.ConfigurationAgreed, f.now(t))
	if n := len(eventsOf(t, db)); n != 0 {
		t.Errorf("%d events, want 0 without a change", n)
	}
	before := f.now(t)
	p.Look(t.Context())
	if len(p.told) != 1 {
		t.Errorf("%d reports after a look that found nothing new, want 1, of the start", len(p.told))
	}
	f.write(t, "environments.yaml", chain+"trust:\n"+strings.Replace(one, "builder, verifier", "builder", 1)+two)
	p.Look(t.Context())
	p.wantState(t, "after the change", history.ConfigurationAgreed, f.now(t))
	events := eventsOf(t, db)
	if len(events) != 1 {
		t.Fatalf("%d events, want one", len(events))
	}
	e := events[0]
	was, _ := before.Digest()
	is, _ := f.now(t).Digest()
	if e.Kind != history.EventConfigure || e.Previous != was || e.Subject != is || e.Principal != "system" ||
		!strings.HasPrefix(e.Reason, "no longer: key ") || !strings.HasSuffix(e.Reason, " (one.pub) is trusted as verifier for oci://local/") {
		t.Errorf("event %+v, want configure from %s to %s that says which key is no longer verifier", e, was, is)
	}
	if r := p.told[len(p.told)-1]; !r.Taken || len(r.Changes) != 1 {
		t.Errorf("report %+v, want one change that was taken", r)
	}
	agreed, err := db.Agreed(t.Context(), history.Configuration{})
	if err != nil || agreed != f.now(t) {
		t.Errorf("agreed is %s (%v), want %s", agreed, err, f.now(t))
	}
}

// Changes made while no process ran are agreed on at the next start.
func TestAloneAfterAPause(t *testing.T) {
	t.Parallel()
	f, db := newFolder(t), mem.New()
	start(t, f, db, true)
	f.key(t, "two.pub")
	p := start(t, f, db, true)
	p.wantState(t, "started again", history.ConfigurationAgreed, f.now(t))
	if events := eventsOf(t, db); len(events) != 1 || !strings.Contains(events[0].Reason, "environments") {
		t.Errorf("events %+v, want one that says what changed", events)
	}
}

// Unusable files change nothing. Repaired ones are taken.
func TestBrokenFilesChangeNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, f folder){
		"a misspelled key": func(t *testing.T, f folder) { f.write(t, "environments.yaml", chain+"trsut:\n"+one) },
		"an empty file":    func(t *testing.T, f folder) { f.write(t, "environments.yaml", "") },
		"a broken key":     func(t *testing.T, f folder) { f.write(t, "one.pub", "-----BEGIN") },
		"a lost key": func(t *testing.T, f folder) {
			if err := os.Remove(filepath.Join(f.dir, "one.pub")); err != nil {
				t.Fatal(err)
			}
		},
		"a lost environments.yaml": func(t *testing.T, f folder) {
			if err := os.Remove(filepath.Join(f.dir, "environments.yaml")); err != nil {
				t.Fatal(err)
			}
		},
		"a mistake in access.yaml": func(t *testing.T, f folder) { f.write(t, "access.yaml", "issuers: []") },
		"a configuration that cannot be built": func(t *testing.T, f folder) {
			f.write(t, "environments.yaml", strings.Replace(chain, "local", "unbuildable", 1)+"trust:\n"+one)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), mem.New()
			p := start(t, f, db, true)
			before := f.now(t)
			spoil(t, f)
			p.Look(t.Context())
			p.Look(t.Context())
			p.wantState(t, "broken", history.ConfigurationUnreadable, before)
			if len(p.told) != 2 || p.told[1].Problem == "" {
				t.Errorf("reports %+v, want two: of the start, and of the problem", p.told)
			}
			if n := len(eventsOf(t, db)); n != 0 {
				t.Errorf("%d events, want none", n)
			}
			f.key(t, "one.pub")
			f.write(t, "environments.yaml", chain+"trust:\n"+one)
			_ = os.Remove(filepath.Join(f.dir, "access.yaml"))
			p.Look(t.Context())
			p.wantState(t, "mended", history.ConfigurationAgreed, f.now(t))
		})
	}
}

// Of several processes, each keeps the old configuration until the new one is adopted.
// Afterwards a process that does not have the new one may not act.
func TestReplicas(t *testing.T) {
	t.Parallel()
	db := mem.New()
	f1, f2 := newFolder(t), newFolder(t)
	for _, name := range []string{"one.pub", "two.pub"} {
		data, err := os.ReadFile(filepath.Join(f1.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f2.write(t, name, string(data))
	}
	old := f1.now(t)
	if old != f2.now(t) {
		t.Fatalf("two folders with the same files: %s and %s", old, f2.now(t))
	}
	p1, p2 := start(t, f1, db, false), start(t, f2, db, false)
	p1.wantState(t, "first", history.ConfigurationAgreed, old)
	p2.wantState(t, "second", history.ConfigurationAgreed, old)

	next := chain + "trust:\n" + strings.Replace(one, "builder, verifier", "builder", 1) + two
	f1.write(t, "environments.yaml", next)
	p1.Look(t.Context())
	p1.wantState(t, "with a change that is not adopted", history.ConfigurationPending, old)
	if changes := p1.Status().Changes; len(changes) != 1 {
		t.Errorf("changes %q, want one", changes)
	}
	if _, err := p1.Adopt(t.Context(), old); registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("adopt a configuration that the files do not have: %v, want CodeConflict", err)
	}
	ctx := storage.WithPrincipal(t.Context(), storage.Principal{Name: "token:admin"})
	if _, err := p1.Adopt(ctx, f1.now(t)); err != nil {
		t.Fatal(err)
	}
	p1.wantState(t, "the process that adopted it", history.ConfigurationAgreed, f1.now(t))
	if events := eventsOf(t, db); len(events) != 1 || events[0].Principal != "token:admin" {
		t.Errorf("events %+v, want one of token:admin", events)
	}

	p2.Look(t.Context())
	p2.wantState(t, "the process without it", history.ConfigurationDiffers, old)
	f2.write(t, "environments.yaml", next)
	p2.Look(t.Context())
	p2.wantState(t, "the process that got it", history.ConfigurationAgreed, f1.now(t))
	if n := len(eventsOf(t, db)); n != 1 {
		t.Errorf("%d events, want the one", n)
	}
}

// A replica that starts with other files than the agreed ones reports it. Changing its files
// or adopting them repairs it.
func TestReplicaStartsDifferent(t *testing.T) {
	t.Parallel()
	db := mem.New()
	f1, f2 := newFolder(t), newFolder(t) // their keys differ
	p1, p2 := start(t, f1, db, false), start(t, f2, db, false)
	p1.wantState(t, "first", history.ConfigurationAgreed, f1.now(t))
	p2.wantState(t, "second", history.ConfigurationDiffers, f2.now(t))
	if _, err := p2.Adopt(t.Context(), f2.now(t)); err != nil {
		t.Fatal(err)
	}
	p2.wantState(t, "second, that adopted", history.ConfigurationAgreed, f2.now(t))
	p1.Look(t.Context())
	p1.wantState(t, "first, left behind", history.ConfigurationDiffers, f1.now(t))
}

// A change that is reverted before it was adopted has no effect.
func TestPendingIsTakenBack(t *testing.T) {
	t.Parallel()
	f, db := newFolder(t), mem.New()
	p := start(t, f, db, false)
	old := f.now(t)
	f.write(t, "environments.yaml", chain+"trust:\n"+one)
	p.Look(t.Context())
	p.wantState(t, "changed", history.ConfigurationPending, old)
	f.write(t, "environments.yaml", chain+"trust:\n"+one+two)
	p.Look(t.Context())
	p.wantState(t, "taken back", history.ConfigurationAgreed, old)
}

func TestAgreement(t *testing.T) {
	t.Parallel()
	agreed := history.Configuration{Environments: "sha256:1", Access: "sha256:1", Promoter: "sha256:1"}
	ask := func(context.Context) (history.Configuration, error) { return agreed, nil }
	for _, c := range []struct {
		name    string
		own     history.Configuration
		parts   []string
		refused bool
	}{
		{"the same", agreed, nil, false},
		{"without some parts", history.Configuration{Environments: "sha256:1"}, nil, false},
		{"other environments", history.Configuration{Environments: "sha256:2"}, nil, true},
		{"other access, asked for environments", history.Configuration{Environments: "sha256:1", Access: "sha256:2"}, []string{"environments"}, false},
		{"other access", history.Configuration{Environments: "sha256:1", Access: "sha256:2"}, nil, true},
	} {
		for _, service := range []bool{false, true} {
			err := config.Agreement{Own: c.own, Agreed: ask, Service: service}.Check(t.Context(), c.parts...)
			if (err != nil) != c.refused || err != nil && registry.CodeOf(err) != registry.CodeUnavailable {
				t.Errorf("%s: error %v, want CodeUnavailable: %t", c.name, err, c.refused)
			}
			if err == nil {
				continue
			}
			text, own := registry.TextForClients(err)
			if own == service || service && !strings.Contains(text, "try another replica") {
				t.Errorf("%s: clients of a service (%t) read %q (its own text: %t), want that they try another replica, from a service alone",
					c.name, service, text, own)
			}
			if strings.Contains(text, "sha256") {
				t.Errorf("%s: clients see digests: %s", c.name, text)
			}
			if hints := strings.Join(registry.Hints(err), "; "); strings.Contains(hints, "configuration adopt") == service {
				t.Errorf("%s: a service (%t) hints %q, want how to adopt it for the user of a command alone", c.name, service, hints)
			}
		}
	}
	broken := config.Agreement{Own: agreed, Agreed: func(context.Context) (history.Configuration, error) {
		return history.Configuration{}, errors.New("no answer")
	}}
	if broken.Check(t.Context()) == nil {
		t.Error("got nil while the catalog does not answer, want an error")
	}
}

// The command that read the files last decides. An earlier one cannot bring back what it read
// before they changed.
func TestSettle(t *testing.T) {
	t.Parallel()
	f, db := newFolder(t), mem.New()
	old, err := f.files().Read()
	if err != nil {
		t.Fatal(err)
	}
	settle := func(own config.Snapshot) error {
		return config.Settle(t.Context(), db, own, f.files().Read, old.Environments.Trust[0].RetiredAt)
	}
	if err := settle(old); err != nil || len(eventsOf(t, db)) != 0 {
		t.Errorf("the first command: %v, %d events, want 0", err, len(eventsOf(t, db)))
	}
	f.key(t, "one.pub")
	if err := settle(old); err != nil {
		t.Errorf("a command that agrees with the catalog: %v", err)
	}
	changed, err := f.files().Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := settle(changed); err != nil || len(eventsOf(t, db)) != 1 {
		t.Errorf("a command after the change: %v, %d events, want 1", err, len(eventsOf(t, db)))
	}
	if err := settle(old); registry.CodeOf(err) != registry.CodeConflict {
		t.Errorf("a command that read the files before: %v, want CodeConflict", err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	read := func() config.Snapshot {
		t.Helper()
		s, err := f.files().Read()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := read()
	if got := config.Changes(before, before); len(got) != 0 {
		t.Errorf("without a change: got %q", got)
	}
	f.write(t, "environments.yaml", "version: 1\nregistry: local\nenvironments:\n  staging:\n"+
		"  prod: {from: staging, require: [parity, recorded-cases], registry: registry.example.com}\n"+
		"trust:\n"+strings.Replace(one, "roles", "state: revoked, since: 2026-11-21T09:00:00Z, roles", 1)+two)
	f.write(t, "access.yaml", `issuers:
  - issuer: https://issuer.example.com
    audience: mlpromote
    rules:
      - match: {team: vision}
        grants: [{allow: [read, promote], environment: prod, model: "vision/**"}]
`)
	id, err := keyID(must(before.Key("one.pub")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"no longer: environment prod requires signature",
		"no longer: environment prod requires provenance",
		"no longer: key " + id + " (one.pub) is trusted as builder for oci://local/",
		"no longer: key " + id + " (one.pub) is trusted as verifier for oci://local/",
		"new: environment prod requires recorded-cases",
		"new: environment prod has its content on registry.example.com",
		"new: key " + id + " (one.pub) is trusted as builder for oci://local/; the key is revoked: only its statements against a release count",
		"new: key " + id + " (one.pub) is trusted as verifier for oci://local/; the key is revoked: only its statements against a release count",
		`new: issuer https://issuer.example.com is trusted for the audience "mlpromote"; its callers are named oidc:https://issuer.example.com#{sub}`,
		"new: callers with team=vision at https://issuer.example.com may read,promote vision/** in prod",
	}
	if got := config.Changes(before, read()); !slices.Equal(got, want) {
		t.Errorf("changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
