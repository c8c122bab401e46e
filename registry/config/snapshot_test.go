package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/mem"
)

// Files that change while they are read are read again, so that no entry of one time meets the
// key of another. Files that never rest are refused.
func TestReadWhileFilesChange(t *testing.T) {
	t.Parallel()
	trust := func(role string) string {
		return chain + "trust:\n" + fmt.Sprintf(`  - {key: one.pub, roles: [%s], resources: ["oci://local/"]}`+"\n", role)
	}
	for name, c := range map[string]struct {
		changes int // how often the key and its role are exchanged, each time between environments.yaml and the key
		code    registry.Code
	}{
		"they rest":         {0, ""},
		"they change once":  {1, ""},
		"they change twice": {2, ""},
		"they never rest":   {1000, registry.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.write(t, "environments.yaml", trust("builder"))
			left, last := c.changes, ""
			files := f.files()
			files.KeyID = func(pem []byte) (string, error) { // the file of the key was read a moment ago
				last = string(pem)
				if left > 0 {
					left--
					f.key(t, "one.pub")
					f.write(t, "environments.yaml", trust([]string{"builder", "verifier"}[left%2]))
				}
				return keyID(pem)
			}
			s, err := files.Read()
			if registry.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Fatalf("error %v (%s), want %q", err, registry.CodeOf(err), c.code)
			}
			if err != nil {
				return
			}
			if s.Configuration != f.now(t) {
				t.Errorf("read %s, want what lies there now: %s", s.Configuration, f.now(t))
			}
			if key, err := s.Key("one.pub"); err != nil || string(key) != last {
				t.Errorf("key %s, error %v; want the one that was read last", key, err)
			}
		})
	}
}

// A file that breaks while it is read is an error, whatever was read before.
func TestReadWhileAFileBreaks(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	files := f.files()
	files.KeyID = func(pem []byte) (string, error) {
		f.write(t, "environments.yaml", "trsut:\n")
		return keyID(pem)
	}
	if s, err := files.Read(); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), "trsut") {
		t.Errorf("read %s, error %v; want CodeInvalid that names the line", s.Configuration, err)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, f folder)
		text  string
	}{
		"environments.yaml that is a folder": {func(t *testing.T, f folder) { f.folder(t, "environments.yaml") }, "environments.yaml"},
		"access.yaml that is a folder":       {func(t *testing.T, f folder) { f.folder(t, "access.yaml") }, "access.yaml"},
		"access.yaml with a mistake":         {func(t *testing.T, f folder) { f.write(t, "access.yaml", "isuers: []\n") }, "isuers"},
		"a key that is a folder":             {func(t *testing.T, f folder) { f.folder(t, "one.pub") }, "public key "},
		"a key that is text":                 {func(t *testing.T, f folder) { f.write(t, "one.pub", "text") }, "no PEM block"},
		"a publisher's key under another name": {func(t *testing.T, f folder) {
			f.write(t, "environments.yaml", "version: 1\n"+chain+"trust:\n"+`  - {key: one.pub, roles: [builder], resources: ["oci://local/"]}`+"\n"+
				`  - {key: two.pub, roles: [publisher], resources: ["oci://local/"]}`+"\n")
			key, err := os.ReadFile(filepath.Join(f.dir, "one.pub"))
			if err != nil {
				t.Fatal(err)
			}
			f.write(t, "two.pub", string(key))
		}, "one.pub and two.pub are one key"},
		"a key without end": {func(t *testing.T, f folder) { f.link(t, "/dev/zero", "one.pub") }, "public key "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			c.spoil(t, f)
			if s, err := f.files().Read(); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("read %s, error %v; want one with %q", s.Configuration, err, c.text)
			}
		})
	}
}

func (f folder) folder(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
}

func (f folder) link(t *testing.T, to, name string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.RemoveAll(path), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

// A key whose file is missing is named as missing, and an identity has none.
func TestMissingKeys(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write(t, "environments.yaml", "version: 1\n"+chain+"trust:\n"+one+
		`  - {key: none.pub, roles: [approver], resources: ["oci://local/"]}`+"\n"+
		`  - {identity: {issuer: https://example.com, subject: x}, roles: [builder], resources: ["oci://local/"]}`+"\n")
	s := read(t, f)
	if got, want := s.MissingKeys(), []string{"none.pub"}; !slices.Equal(got, want) {
		t.Errorf("missing keys %q, want %q", got, want)
	}
	if key, err := s.Key("none.pub"); !errors.Is(err, fs.ErrNotExist) || registry.CodeOf(err) != registry.CodeNotFound || key != nil {
		t.Errorf("key %q, error %v; want CodeNotFound that wraps fs.ErrNotExist", key, err)
	}
}

// Another file may be read in place of environments.yaml. It is no default: it may be missing
// by mistake.
func TestAnotherFile(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write(t, "other.yaml", strings.Replace(chain, "local", "other", 1)+"trust:\n"+one)
	files := f.files()
	files.File = filepath.Join(f.dir, "other.yaml")
	if s, err := files.Read(); err != nil || s.Environments.Registry != "other" {
		t.Errorf("registry %q, error %v; want that of the other file", s.Environments.Registry, err)
	}
	files.File += ".away"
	if s, err := files.Read(); err == nil {
		t.Errorf("registry %q, want an error: the file is missing", s.Environments.Registry)
	}
}

// What identifies a configuration follows the bytes of every file in it, and nothing else.
func TestConfigurationFollowsTheFiles(t *testing.T) {
	t.Parallel()
	const access = "issuers: [{issuer: https://issuer.example.com, audience: a, rules: [{match: {team: x}, grants: [{allow: [read], environment: prod, model: m}]}]}]\n"
	for name, c := range map[string]struct {
		change func(t *testing.T, f folder)
		want   []string
	}{
		"nothing":                 {func(*testing.T, folder) {}, nil},
		"a file beside them":      {func(t *testing.T, f folder) { f.write(t, "notes.txt", "x") }, nil},
		"a comment":               {func(t *testing.T, f folder) { f.write(t, "environments.yaml", "# x\n"+chain+"trust:\n"+one+two) }, []string{"environments"}},
		"a key in the same file":  {func(t *testing.T, f folder) { f.key(t, "two.pub") }, []string{"environments"}},
		"keys that change places": {func(t *testing.T, f folder) { f.exchange(t, "one.pub", "two.pub") }, []string{"environments"}},
		"a key that is missing":   {func(t *testing.T, f folder) { f.link(t, "nowhere", "two.pub") }, []string{"environments"}},
		"a first access.yaml":     {func(t *testing.T, f folder) { f.write(t, "access.yaml", access) }, []string{"access"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			before := f.now(t)
			c.change(t, f)
			if got := f.now(t).Differs(before); !slices.Equal(got, c.want) {
				t.Errorf("other parts are %q, want %q", got, c.want)
			}
		})
	}
}

func (f folder) exchange(t *testing.T, a, b string) {
	t.Helper()
	a, b = filepath.Join(f.dir, a), filepath.Join(f.dir, b)
	if err := errors.Join(os.Rename(a, a+".old"), os.Rename(b, a), os.Rename(a+".old", b)); err != nil {
		t.Fatal(err)
	}
}

// A change of the configuration is told in sentences, one for each thing that is new or no longer so.
func TestChangesOf(t *testing.T) {
	t.Parallel()
	const (
		head = "version: 1\nregistry: local\nenvironments:\n  staging:\n  prod: {from: staging}\ntrust:\n"
		two  = `  - {key: two.pub, roles: [verifier, approver], resources: ["oci://local/"]}` + "\n"
	)
	base := head + one + two
	for name, c := range map[string]struct {
		after string
		want  []string // KEY is the identifier of two.pub
	}{
		"nothing": {base, nil},
		"a verifier on one type of node": {strings.Replace(base, "two.pub,", "two.pub, nodeTypes: [g6.xlarge, g5.xlarge],", 1), []string{
			"no longer: key KEY (two.pub) is trusted as verifier for oci://local/",
			"new: key KEY (two.pub) is trusted as verifier for oci://local/; on node types g6.xlarge, g5.xlarge"}},
		"a key retires": {strings.Replace(base, "two.pub, roles: [verifier, approver]", "two.pub, state: retired, since: 2026-11-21T09:00:00Z, roles: [approver]", 1), []string{
			"no longer: key KEY (two.pub) is trusted as verifier for oci://local/",
			"no longer: key KEY (two.pub) is trusted as approver for oci://local/",
			"new: key KEY (two.pub) is trusted as approver for oci://local/; the key is retired: statements recorded before 2026-11-21T09:00:00Z count"}},
		"another first environment": {strings.Replace(strings.ReplaceAll(base, "staging", "dev"), "  prod:", "  test: {from: dev}\n  prod:", 1), []string{
			"no longer: builds go to staging",
			"no longer: environment staging takes pushes of builds",
			"no longer: environment prod takes releases from staging",
			"new: builds go to dev",
			"new: environment dev takes pushes of builds",
			"new: environment test takes releases from dev",
			"new: environment test requires signature",
			"new: environment test requires provenance",
			"new: environment test requires parity",
			"new: environment prod takes releases from dev"}},
		"a library may be carried": {strings.Replace(base, "{from: staging}", "{from: staging, operators: [\"sha256:"+strings.Repeat("a", 64)+"\"]}", 1), []string{
			"new: environment prod lets engines carry the operator library sha256:" + strings.Repeat("a", 64)}},
		"a key without a file": {base + `  - {key: none.pub, roles: [approver], resources: ["oci://local/"]}` + "\n", []string{
			"new: any key that is put into the missing file none.pub is trusted as approver for oci://local/"}},
		"an identity": {base + `  - {identity: {issuer: https://example.com, subject: x}, roles: [builder], resources: ["oci://local/"]}` + "\n", []string{
			"new: identity https://example.com x is trusted as builder for oci://local/"}},
		"a name that would break the line": {base + `  - {key: "none\u202e\n.pub", roles: [approver], resources: ["oci://local/"]}` + "\n", []string{
			"new: any key that is put into the missing file none??.pub is trusted as approver for oci://local/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.write(t, "environments.yaml", base)
			before := read(t, f)
			f.write(t, "environments.yaml", c.after)
			id, err := keyID(must(before.Key("two.pub")))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(config.Changes(before, read(t, f)), "\n"), id, "KEY")
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("changes are\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("the key that signs promotions", func(t *testing.T) {
		t.Parallel()
		f := newFolder(t)
		files := f.files()
		files.Promoter = digest.FromString("promoter")
		after, err := files.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := config.Changes(read(t, f),
			after), []string{"new: promotions are signed by key " + files.Promoter.Encoded()}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
	})
	t.Run("keys that are not identified", func(t *testing.T) {
		t.Parallel()
		f := newFolder(t)
		after, err := config.Files{Dir: f.dir}.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := config.Changes(read(t, f), after)[3], "new: key one.pub is trusted as builder for oci://local/"; got != want {
			t.Errorf("change %q, want %q", got, want)
		}
	})
}

// The history keeps as many changes as fit, and the number of the others.
func TestReasonOfManyChanges(t *testing.T) {
	t.Parallel()
	for _, libraries := range []int{1, 8, 40} {
		t.Run(fmt.Sprintf("%d libraries", libraries), func(t *testing.T) {
			t.Parallel()
			f, db := newFolder(t), mem.New()
			p := start(t, f, db, true)
			var list []string
			for i := range libraries {
				list = append(list, fmt.Sprintf("\"sha256:%064x\"", i))
			}
			f.write(t, "environments.yaml", "version: 1\n"+strings.Replace(chain, "{from: staging}",
				"{from: staging, operators: ["+strings.Join(list, ", ")+"]}", 1)+"trust:\n"+one+two)
			p.Look(t.Context())
			events := eventsOf(t, db)
			if len(events) != 1 {
				t.Fatalf("%d events, want 1", len(events))
			}
			reason := events[0].Reason
			if len(reason) > 1000 {
				t.Errorf("the reason has %d bytes, want at most 1000", len(reason))
			}
			named := strings.Count(reason, "operator library sha256:")
			var more int
			if _, tail, cut := strings.Cut(reason, "; and "); cut {
				if _, err := fmt.Sscanf(tail, "%d more", &more); err != nil {
					t.Fatal(err)
				}
			}
			if named+more != libraries || named == 0 || more == 0 && libraries == 40 || more > 0 && libraries == 1 {
				t.Errorf("the reason names %d changes and %d more, want %d: %s", named, more, libraries, reason)
			}
			if strings.HasPrefix(reason, ";") || strings.HasSuffix(reason, ";") {
				t.Errorf("the reason begins or ends between two changes: %s", reason)
			}
		})
	}
}
