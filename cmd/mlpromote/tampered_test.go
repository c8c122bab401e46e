package main

import (
	"bytes"
	"context"
	"database/sql" //nolint:depguard // to do what an intruder with the file could
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// TestTampered changes every kind of object in a data directory, and in a pulled folder, and runs every
// command that reads it. Which exit code finds the change is the table in docs/threat-model-changes.md.
func TestTampered(t *testing.T) { //nolint:tparallel // the group is there to be waited for
	t.Parallel()
	w := newTampered(t)
	page, err := os.ReadFile(programtest.Root("docs", "threat-model-changes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*tamperMatrix{
		"objects": {rows: tampers(), columns: tamperCommands()},
		"carried": {rows: carriedTampers(), columns: carriedCommands()},
		"sources": {rows: sourceTampers(), columns: sourceCommands()},
	} {
		m.run(t, w)
		rows := make([]string, len(m.rows))
		t.Run(name, func(t *testing.T) {
			for i, object := range m.rows {
				t.Run(object.name, func(t *testing.T) {
					t.Parallel()
					rows[i] = m.row(t, w, object)
				})
			}
		})
		if table := m.table(rows); !strings.Contains(string(page), table) {
			t.Errorf("docs/threat-model-changes.md does not have the table of what finds a change:\n%s", table)
		}
	}
}

// tamperMatrix is a table: what is changed, and the commands that may find it.
type tamperMatrix struct {
	rows      []tamper
	columns   []tamperCommand
	untouched []string // what the commands print where nothing was changed
}

// run runs the commands where nothing was changed.
func (m *tamperMatrix) run(t *testing.T, w *tampered) {
	t.Helper()
	for _, c := range m.columns {
		out, told, code := w.run(t, w.copyFor(t, c, w.dir), c.args...)
		if code != 0 {
			t.Fatalf("%s of what was not changed: exit code %d\n%s", c.name, code, told)
		}
		m.untouched = append(m.untouched, out)
	}
}

func (m *tamperMatrix) table(rows []string) string {
	var table strings.Builder
	table.WriteString("| changed |")
	for _, c := range m.columns {
		fmt.Fprintf(&table, " %s |", c.name)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(m.columns)) + "\n" + strings.Join(rows, ""))
	return table.String()
}

// tamperCommand is a column.
type tamperCommand struct {
	name string
	args []string
	// writes is true if the command changes what later ones would see, so that it has a copy to itself.
	writes bool
}

// refuses lists the exit codes with which it may end. Where no engine is left that may be used, resolve and
// pull end with 6 and the reason of each.
func (c tamperCommand) refuses() []int {
	if c.name == "resolve" || strings.HasPrefix(c.name, "pull") {
		return []int{registry.ExitPolicy, registry.ExitTrust, registry.ExitNoEngine}
	}
	return []int{registry.ExitPolicy, registry.ExitTrust}
}

func tamperCommands() []tamperCommand {
	return []tamperCommand{
		{"promote", []string{"promote", "staging/vision/digits:1.1.0"}, true},
		{"resolve", []string{"resolve", "vision/digits", "--env", "prod"}, false},
		{"pull", []string{"pull", "vision/digits", "--env", "prod", "-o", "fresh"}, true},
		{"trust, release", []string{"trust", "prod/vision/digits:1.0.0"}, false},
		{"trust, pulled folder", []string{"trust", "pulled"}, false},
		{"save", []string{"save", "prod/vision/digits:1.0.0", "-o", "fresh.tar"}, true},
		{"rollback", []string{"rollback", "vision/digits", "--env", "prod", "--to-version", "0.9.0", "--reason", "try"}, true},
		{"history verify", []string{"history", "verify"}, false},
		{"scrub", []string{"scrub"}, true}, // it lists again what repositories lost
	}
}

// tampered is a folder where 0.9.0 and then 1.0.0 were promoted to prod, 1.1.0 can be, and an engine was pulled.
type tampered struct {
	program, cache, dir string
	evidence            []tamperedEvidence // of all three releases, in staging and prod
	releases            map[string]registry.Digest
	engines             []registry.Digest
	limits, promises    registry.Digest // manifests of the limits and of the interface
	sources             registry.Digest
}

type tamperedEvidence struct {
	Bundle, Subject registry.Digest
	PredicateType   string
	environment     string
}

const tamperedPolicy = `version: 1
registry: local
environments:
  staging:
  prod: {from: staging, require: [signature, provenance, parity, recorded-cases], approvals: 1}
trust:
  - {key: keys/local.pub, roles: [builder, verifier, promoter], resources: ["oci://local/"]}
  - {key: keys/approver.pub, roles: [approver], resources: ["oci://local/"]}
  - {key: keys/publisher.pub, roles: [publisher], resources: ["oci://local/"]}
`

func newTampered(t *testing.T) *tampered {
	t.Helper()
	w := &tampered{program: programtest.Program(t), cache: programtest.Cache(t), dir: filepath.Join(memoryDir(t), "digits"), releases: make(map[string]registry.Digest)}
	if err := programtest.Digits(w.dir); err != nil {
		t.Fatal(err)
	}
	w.must(t, "key", "generate")
	w.must(t, "key", "generate", "--role", "approver")
	w.must(t, "key", "generate", "--role", "publisher")
	write(t, filepath.Join(w.dir, defaultData, "environments.yaml"), tamperedPolicy)
	spec := filepath.Join(w.dir, "mlpromote.yaml")
	text, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.9.0", "1.0.0", "1.1.0"} {
		write(t, spec, strings.Replace(string(text), "version: 1.0.0", "version: "+version, 1))
		w.must(t, "build")
		w.must(t, "verify")
		w.must(t, "approve", "staging/vision/digits:"+version, "--env", "prod", "--comment", "tried it")
		environments := []string{"staging"}
		if version != "1.1.0" {
			w.must(t, "promote")
			environments = append(environments, "prod")
		}
		for _, environment := range environments {
			w.inspect(t, environment, version)
		}
	}
	w.must(t, "pull", "vision/digits", "--env", "prod", "-o", "pulled")
	w.carry(t)
	return w
}

// inspect notes the digests of a release and of its evidence.
func (w *tampered) inspect(t *testing.T, environment, version string) {
	t.Helper()
	var found struct {
		Release struct {
			Digest, Limits, Interface, Sources registry.Digest
			Engines                            []struct{ Digest registry.Digest }
		}
		Evidence []tamperedEvidence
	}
	if err := json.Unmarshal([]byte(w.must(t, "inspect", environment+"/vision/digits:"+version, "--output", "json")), &found); err != nil {
		t.Fatal(err)
	}
	w.releases[version], w.engines = found.Release.Digest, nil
	w.limits, w.promises, w.sources = found.Release.Limits, found.Release.Interface, found.Release.Sources
	for _, e := range found.Release.Engines {
		w.engines = append(w.engines, e.Digest)
	}
	for _, e := range found.Evidence {
		// Releases share engines, and so the evidence about them.
		if e.environment = environment; !slices.Contains(w.evidence, e) {
			w.evidence = append(w.evidence, e)
		}
	}
}

// of lists the evidence with a predicate type.
func (w *tampered) of(predicateType string) []tamperedEvidence {
	return slices.DeleteFunc(slices.Clone(w.evidence), func(e tamperedEvidence) bool { return e.PredicateType != predicateType })
}

// run runs the program, and returns what it printed, with DIR for the folder.
func (w *tampered) run(t *testing.T, dir string, args ...string) (out, told string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), programtest.Environment(filepath.Dir(dir), w.cache)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(stdout.String(), dir, "DIR"), stderr.String(), cmd.ProcessState.ExitCode()
}

func (w *tampered) must(t *testing.T, args ...string) string {
	t.Helper()
	return w.mustIn(t, w.dir, args...)
}

func (w *tampered) mustIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, told, code := w.run(t, dir, args...)
	if code != 0 {
		t.Fatalf("mlpromote %s: exit code %d\n%s", strings.Join(args, " "), code, told)
	}
	return out
}

// copy copies a folder. Blobs are links: the program never writes one again, nor does flipFile.
func (w *tampered) copy(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(memoryDir(t), "digits")
	blobs := filepath.Join(from, defaultData, "blobs") + string(filepath.Separator)
	if err := programtest.LinkTree(from, dir, func(path string) bool { return strings.HasPrefix(path, blobs) }); err != nil {
		t.Fatal(err)
	}
	return dir
}

// memoryDir is a temporary folder in memory if the machine has room there. A folder is copied for each command that writes, and every command
// waits for its catalog to be on disk: where other programs use the disk too, that is most of the time of the test.
func memoryDir(t *testing.T) string {
	t.Helper()
	const memory, least = "/dev/shm", 1 << 30
	var room syscall.Statfs_t
	if err := syscall.Statfs(memory, &room); err != nil || room.Bavail*uint64(room.Bsize) < least {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "mlpromote-tampered-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// copyFor is the folder itself, or a copy for a command that writes.
func (w *tampered) copyFor(t *testing.T, c tamperCommand, dir string) string {
	t.Helper()
	if c.writes {
		return w.copy(t, dir)
	}
	return dir
}

// row changes an object and runs all commands. Those that write have a folder of their own.
func (m *tamperMatrix) row(t *testing.T, w *tampered, object tamper) string {
	t.Helper()
	changed := w.copy(t, w.dir)
	names := object.change(t, w, changed)
	row, found := "| "+object.name+" |", false
	for i, c := range m.columns {
		dir := w.copyFor(t, c, changed)
		out, told, code := w.run(t, dir, c.args...)
		left, _ := filepath.Glob(filepath.Join(dir, "fresh*"))
		switch {
		case code == 0 && (out == m.untouched[i] || object.otherwise):
			row += " – |"
			continue
		case strings.Contains(told, "is already at 0.9.0"): // there is nothing to roll back
			row += " – |"
			continue
		case code == 0:
			t.Errorf("%s: exit code 0, and it printed something else than before:\n%s", c.name, out)
		case !slices.Contains(c.refuses(), code):
			t.Errorf("%s: exit code %d, want %v:\n%s", c.name, code, c.refuses(), told)
		case !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(told+out, name) }):
			t.Errorf("%s: the message has nothing of %q:\n%s", c.name, names, told)
		case len(left) > 0:
			t.Errorf("%s: it failed, and left %q", c.name, left)
		}
		row, found = fmt.Sprintf("%s %d |", row, code), true
	}
	if !found {
		t.Error("no command finds the change")
	}
	return row + "\n"
}

// tamper is a row.
type tamper struct {
	name string
	// change changes an object in a folder, and returns what a message can call it.
	change func(t *testing.T, w *tampered, dir string) []string
	// otherwise is true if commands that do not find the change may print something else.
	otherwise bool
}

func tampers() []tamper {
	given := func(predicateType string) func(*testing.T, *tampered, string) []string {
		return func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, e := range w.of(predicateType) {
				// One bundle is about several subjects, in both environments.
				if !slices.Contains(names, e.Bundle.Encoded()) && !slices.Contains(names, filepath.Base(layerOf(t, dir, e.Bundle))) {
					names = append(names, flipLayer(t, dir, e.Bundle)...)
				}
			}
			return names
		}
	}
	forgotten := func(predicateType string) func(*testing.T, *tampered, string) []string {
		return func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, e := range w.of(predicateType) {
				forget(t, dir, e.environment+"/vision/digits", e.Bundle)
				names = append(names, e.Bundle.Encoded())
			}
			return append(names, "no "+predicateType, "summary", "approv", "parity", "signature", "provenance")
		}
	}
	// kept puts the release in staging in quarantine, and changes what the catalog keeps of that.
	kept := func(statement string) func(*testing.T, *tampered, string) []string {
		return func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			d := w.quarantine(t, dir)
			execute(t, dir, statement)
			return []string{d.Encoded(), "in quarantine"}
		}
	}
	// restricted makes a list that concerns nothing here, and changes it. Nothing is used while what it says is unknown.
	restricted := func(statement string) func(*testing.T, *tampered, string) []string {
		return func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			w.mustIn(t, dir, "quarantine", "--source", "sha256:"+strings.Repeat("0", 64), "--env", "prod", "--reason", "another model")
			execute(t, dir, statement)
			return []string{"restriction list"}
		}
	}
	return []tamper{
		{"a file of an engine", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			names := flipFile(t, filepath.Join(dir, "pulled", "model.onnx"))
			for _, e := range w.engines {
				names = append(names, flipLayer(t, dir, e)...)
			}
			return names
		}, false},
		{"the manifest of an engine", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, e := range w.engines {
				names = append(names, flipBlob(t, dir, e)...)
			}
			return names
		}, false},
		{"the index of a release", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, d := range w.releases {
				names = append(names, flipBlob(t, dir, d)...)
			}
			return names
		}, false},
		{"the limits", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, w.limits)
		}, false},
		{"the interface", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, w.promises)
		}, false},
		{"signatures", given(evidence.PredicateSign), false},
		{"provenance", given(evidence.PredicateProvenance), false},
		{"parity reports", given(evidence.PredicateParity), false},
		{"approvals", given(evidence.PredicateApproval), false},
		{"summaries (VSA)", given(evidence.PredicateVSA), false},
		{"signatures, left out of the list of referrers", forgotten(evidence.PredicateSign), true},
		{"parity reports, left out", forgotten(evidence.PredicateParity), true},
		{"approvals, left out", forgotten(evidence.PredicateApproval), true},
		{"summaries, left out", forgotten(evidence.PredicateVSA), true},
		{"parity reports, listed as those of other engines", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			var names []string
			for _, e := range w.of(evidence.PredicateParity) {
				execute(t, dir, fmt.Sprintf("UPDATE manifest_derived SET subject = '%s' WHERE digest = '%s'", w.releases["0.9.0"], e.Bundle))
				names = append(names, e.Bundle.Encoded())
			}
			return append(names, "parity")
		}, true},
		{"the order in which reports came, in the list of the catalog", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, "UPDATE recorded SET seq = seq + 1")
			return []string{"evidence", "event "}
		}, true},
		{"a quarantine of the release in staging", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			return flipLayer(t, dir, w.quarantine(t, dir))
		}, true},
		{"a quarantine, left out", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			d := w.quarantine(t, dir)
			forget(t, dir, "staging/vision/digits", d)
			return []string{d.Encoded(), "in quarantine"}
		}, true},
		{"a quarantine, in what the catalog keeps", kept("UPDATE documents SET body = replace(body, 'eyJ', 'eyK') WHERE kind = 'adverse evidence'"), true},
		{"a quarantine, left out of what the catalog keeps", kept("DELETE FROM documents WHERE kind = 'adverse evidence'"), true},
		{"the restriction list of prod", restricted("UPDATE documents SET body = replace(body, 'eyJ', 'eyK') WHERE kind = 'restriction list'"), true},
		{"the restriction list of prod, left out", restricted("DELETE FROM documents WHERE kind = 'restriction list'"), true},
		{"an event of the history", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, "DROP TRIGGER IF EXISTS history_append_only_update", "UPDATE history SET body = replace(body, '1.0.0', '1.0.1') WHERE seq = (SELECT max(seq) FROM history WHERE kind = 'promote')")
			return []string{"event "}
		}, true},
		{"the newest events of the history, left out", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, "DROP TRIGGER IF EXISTS history_append_only_delete", "DELETE FROM history WHERE seq >= (SELECT max(seq) FROM history WHERE kind = 'promote')")
			return []string{"history", "event"}
		}, true},
		{"a tag of prod, moved to another release of prod", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, fmt.Sprintf("UPDATE tags SET digest = '%s' WHERE repository = 'prod/vision/digits' AND tag = '1.0.0'", w.releases["0.9.0"]))
			return []string{"tag", "1.0.0"}
		}, true},
		{"a head", func(t *testing.T, w *tampered, dir string) []string {
			t.Helper()
			execute(t, dir, fmt.Sprintf("UPDATE heads SET release = '%s', version = '0.9.0' WHERE environment = 'prod'", w.releases["0.9.0"]))
			return []string{"head"}
		}, true},
		{"the trusted key of the builder, another one in its file", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			other, err := os.ReadFile(filepath.Join(dir, defaultData, "keys", "approver.pub"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, defaultData, "keys", "local.pub"), string(other))
			return []string{"key", "signature", "trust"}
		}, true},
		{"the role of the builder, taken away", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			write(t, filepath.Join(dir, defaultData, "environments.yaml"), strings.Replace(tamperedPolicy, "builder, ", "", 1))
			return []string{"environments.yaml", "builder"}
		}, true},
		{"evidence in a pulled folder", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			var names []string
			err := filepath.WalkDir(filepath.Join(dir, "pulled"), func(path string, entry os.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, ".sigstore.json") {
					names = append(names, flipFile(t, path)...)
				}
				return err
			})
			if err != nil || len(names) == 0 {
				t.Fatalf("%d bundles, error %v", len(names), err)
			}
			return append(names, "no verification summary of a trusted promoter")
		}, false},
		{"the manifest in a pulled folder", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			flipFile(t, filepath.Join(dir, "pulled", ".mlpromote", "manifest.json"))
			return []string{"the manifest is"}
		}, false},
		{"the record in a pulled folder, which names another version", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			path := filepath.Join(dir, "pulled", ".mlpromote", "pull.json")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.Replace(string(text), "1.0.0", "0.9.0", 1))
			return []string{"0.9.0"}
		}, false},
		{"a file added to a pulled folder", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			write(t, filepath.Join(dir, "pulled", "sitecustomize.py"), "print('hello')")
			return []string{"sitecustomize.py"}
		}, false},
		{"all evidence left out of a pulled folder", func(t *testing.T, _ *tampered, dir string) []string {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(dir, "pulled", "*", "*", "*.sigstore.json"))
			if more, again := filepath.Glob(filepath.Join(dir, "pulled", "*", "*.sigstore.json")); again == nil {
				found = append(found, more...)
			}
			if err != nil || len(found) == 0 {
				t.Fatalf("%d bundles, error %v", len(found), err)
			}
			for _, path := range found {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			return []string{"evidence", "summary", "signature"}
		}, false},
	}
}

// quarantine puts 1.1.0 in quarantine, and returns the digest of that evidence.
func (w *tampered) quarantine(t *testing.T, dir string) registry.Digest {
	t.Helper()
	w.mustIn(t, dir, "quarantine", "staging/vision/digits:1.1.0", "--reason", "wrong labels")
	var found struct{ Evidence []tamperedEvidence }
	if err := json.Unmarshal([]byte(w.mustIn(t, dir, "inspect", "staging/vision/digits:1.1.0", "--output", "json")), &found); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found.Evidence, func(e tamperedEvidence) bool { return e.PredicateType == evidence.PredicateQuarantine })
	if i < 0 {
		t.Fatalf("no quarantine among %d bundles", len(found.Evidence))
	}
	return found.Evidence[i].Bundle
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// flipFile changes a bit in the middle of a file, which it replaces: other folders may share it.
func flipFile(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Base(path)}
}

func blobOf(dir string, d registry.Digest) string {
	return filepath.Join(dir, defaultData, "blobs", d.Algorithm().String(), d.Encoded()[:2], d.Encoded())
}

func flipBlob(t *testing.T, dir string, d registry.Digest) []string {
	t.Helper()
	return flipFile(t, blobOf(dir, d))
}

// layerOf is the file of the first layer of a manifest.
func layerOf(t *testing.T, dir string, manifest registry.Digest) string {
	t.Helper()
	data, err := os.ReadFile(blobOf(dir, manifest))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Layers []struct{ Digest digest.Digest }
	}
	if err := json.Unmarshal(data, &m); err != nil || len(m.Layers) == 0 {
		t.Fatalf("%s has %d layers, error %v", manifest, len(m.Layers), err)
	}
	return blobOf(dir, m.Layers[0].Digest)
}

// flipLayer changes what a manifest has as its first layer.
func flipLayer(t *testing.T, dir string, manifest registry.Digest) []string {
	t.Helper()
	return append(flipFile(t, layerOf(t, dir, manifest)), manifest.Encoded())
}

// forget deletes the record of a manifest.
func forget(t *testing.T, dir, repository string, d registry.Digest) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, defaultData, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.DeleteManifest(context.WithoutCancel(t.Context()), repository, d), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, defaultData, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		result, err := db.ExecContext(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 && !strings.HasPrefix(s, "DROP") {
			t.Fatalf("%s: %d rows, error %v", s, n, err)
		}
	}
}
