package origin

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// repository is one that a test makes.
type repository struct {
	t   *testing.T
	dir string
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// read reads the origin of a spec that uses a model and a folder of cases.
func (r repository) read() evidence.GitOrigin {
	return Read(r.t.Context(), Query{Spec: r.path("models/mlpromote.yaml"), Used: []string{r.path("models/model.onnx"), r.path("models/cases")}})
}

// committed is a repository with one commit that has a spec and what it uses.
func committed(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is not installed, and setup installs it")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, dir}
	r.git("init", "--quiet", "--initial-branch=main")
	for name, content := range map[string]string{
		"models/mlpromote.yaml": "model: digits\n", "models/model.onnx": "model", "models/cases/a.npz": "cases", "other.txt": "other", ".gitignore": "*.tmp\n",
	} {
		r.write(name, content)
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", "first")
	return r
}

func TestState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r repository)
		want   []string // changed files; empty: clean
	}{
		"as committed":               {func(repository) {}, nil},
		"a file changed":             {func(r repository) { r.write("models/model.onnx", "mod€l") }, []string{"models/model.onnx"}},
		"same size, other bytes":     {func(r repository) { r.write("models/model.onnx", "MODEL") }, []string{"models/model.onnx"}},
		"written again, same bytes":  {func(r repository) { r.write("models/model.onnx", "model") }, nil},
		"a file that is not used":    {func(r repository) { r.write("other.txt", "changed") }, []string{"other.txt"}},
		"a file deleted":             {func(r repository) { os.Remove(r.path("other.txt")) }, []string{"other.txt"}},
		"a file made executable":     {func(r repository) { os.Chmod(r.path("other.txt"), 0o755) }, []string{"other.txt"}},
		"a file replaced by a link":  {func(r repository) { os.Remove(r.path("other.txt")); os.Symlink(".gitignore", r.path("other.txt")) }, []string{"other.txt"}},
		"a change that is staged":    {func(r repository) { r.write("other.txt", "changed"); r.git("add", "."); r.write("other.txt", "other") }, []string{"other.txt"}},
		"an untracked file, unused":  {func(r repository) { r.write("notes.txt", "notes") }, nil},
		"an untracked file of cases": {func(r repository) { r.write("models/cases/b.npz", "more") }, []string{"models/cases/b.npz"}},
		"an ignored file of cases":   {func(r repository) { r.write("models/cases/b.tmp", "more") }, []string{"models/cases/b.tmp"}},
		"a model that is untracked": {func(r repository) {
			r.git("rm", "--quiet", "--cached", "models/model.onnx")
			r.git("commit", "--quiet", "-m", "second")
		}, []string{"models/model.onnx"}},
		"a pointer of git LFS": {func(r repository) {
			r.write("models/model.onnx", fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize 5\n", sha256.Sum256([]byte("large"))))
			r.git("commit", "--quiet", "-am", "second")
			r.write("models/model.onnx", "large")
		}, nil},
		"a pointer of git LFS to something else": {func(r repository) {
			r.write("models/model.onnx", fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize 5\n", sha256.Sum256([]byte("large"))))
			r.git("commit", "--quiet", "-am", "second")
			r.write("models/model.onnx", "LARGE")
		}, []string{"models/model.onnx"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := committed(t)
			c.change(r)
			want := evidence.GitOrigin{Commit: r.git("rev-parse", "HEAD"), Ref: "refs/heads/main", Spec: "models/mlpromote.yaml",
				State: evidence.GitClean, Changed: c.want, ChangedCount: len(c.want)}
			if len(c.want) > 0 {
				want.State = evidence.GitDirty
			}
			if diff := cmp.Diff(want, r.read()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Where there is no repository, or nothing in it, the provenance says so.
func TestMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r repository)
		want   string
	}{
		"no repository":                     {func(r repository) { os.RemoveAll(r.path(".git")) }, "the spec is in no git repository"},
		"no commit":                         {func(r repository) { os.RemoveAll(r.path(".git")); r.git("init", "--quiet") }, "the git repository has no commit"},
		"a broken repository":               {func(r repository) { r.write(".git/HEAD", "nonsense") }, "the spec is in no git repository"},
		"a repository of other files":       {func(r repository) { r.git("config", "core.worktree", t.TempDir()) }, "the git repository keeps its files in another folder"},
		"a repository without HEAD's bytes": {func(r repository) { os.RemoveAll(r.path(".git/objects")); os.Mkdir(r.path(".git/objects"), 0o755) }, "the git repository has no commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := committed(t)
			c.change(r)
			if diff := cmp.Diff(evidence.GitOrigin{Missing: c.want}, r.read()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A repository by others cannot make git run anything, and nothing of it is fetched.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	r := committed(t)
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write(".gitattributes", "* filter=evil diff=evil\nother.txt filter=a=b\n")
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", "attributes")
	for _, key := range []string{"core.fsmonitor", "core.sshCommand", "core.pager",
		"core.editor", "diff.external", "diff.evil.command", "diff.evil.textconv",
		"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "filter.a=b.clean",
		"filter.a=b.process", "core.alternateRefsCommand", "alias.diff-files", "gpg.program",
		"credential.helper"} {
		r.git("config", key, program)
	}
	for _, s := range [][2]string{{"filter.evil.required", "true"}, {"filter.a=b.required", "true"},
		{"core.hooksPath", r.path("hooks")}, {"protocol.ext.allow", "always"},
		{"remote.origin.url", "ext::" + program}, {"remote.origin.promisor", "true"}, {"extensions.partialClone", "origin"}, {"core.repositoryFormatVersion", "1"}} {
		r.git("config", s[0], s[1])
	}
	for _, hook := range []string{"post-index-change", "pre-auto-gc", "post-checkout", "fsmonitor-watchman"} {
		r.write("hooks/"+hook, "#!/bin/sh\necho hook >>"+ran+"\n")
		os.Chmod(r.path("hooks/"+hook), 0o755)
	}
	for _, name := range []string{"other.txt", "models/model.onnx"} {
		r.write(name, "other") // of the size that it had, at another time: git would run the filter
	}
	object := r.git("rev-parse", "HEAD:models/model.onnx")
	if err := os.Remove(r.path(".git/objects/" + object[:2] + "/" + object[2:])); err != nil { // git would fetch it
		t.Fatal(err)
	}
	if err := os.Remove(ran); err != nil && !os.IsNotExist(err) { // what the setup itself ran
		t.Fatal(err)
	}

	got := r.read()
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("reading the repository ran:\n%s", text)
	}
	if got.Commit == "" || got.Repository != "" {
		t.Errorf("got %+v, want its commit, and no repository", got)
	}
	if got.State == evidence.GitClean {
		t.Errorf("got state %q of a repository that lacks an object, want another", got.State)
	}
}

// The count is of all changes, and the names are few.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	r := committed(t)
	for i := range 30 {
		r.write(fmt.Sprintf("models/cases/%02d.npz", i), "more")
	}
	got := r.read()
	if got.ChangedCount != 30 || len(got.Changed) != 20 || got.Changed[0] != "models/cases/00.npz" {
		t.Errorf("got %d changes and the names %q, want 30 and the first %d", got.ChangedCount, got.Changed, 20)
	}
}

func TestDetachedHead(t *testing.T) {
	t.Parallel()
	r := committed(t)
	r.git("checkout", "--quiet", "--detach")
	r.git("remote", "add", "origin", "https://user:secret@example.com/team/models.git?token=secret")
	want := evidence.GitOrigin{Commit: r.git("rev-parse", "HEAD"), Spec: "models/mlpromote.yaml",
		State: evidence.GitClean, Repository: "https://example.com/team/models.git"}
	if diff := cmp.Diff(want, r.read()); diff != "" {
		t.Error(diff)
	}
}

// What a remote says is published only as far as it is public.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://github.com/team/models.git":                "https://github.com/team/models.git",
		"https://user:secret@github.com/team/models":        "https://github.com/team/models",
		"https://secret@github.com/team/models":             "https://github.com/team/models",
		"https://github.com/team/models?token=secret#other": "https://github.com/team/models",
		"git@github.com:team/models.git":                    "ssh://github.com/team/models.git",
		"ssh://git@example.com:2222/team/models.git":        "ssh://example.com:2222/team/models.git",
		"/home/me/models":                                   "",
		"file:///home/me/models":                            "",
		"../models":                                         "",
		"C:\\models":                                        "",
		"C:/models":                                         "",
		"ext::sh -c evil":                                   "",
		"https://user:secret@":                              "",
		"user:secret@example.com:team/models":               "",
		"https://example.com/a\u202eb":                      "https://example.com/a%E2%80%AEb",
		"javascript:alert(1)":                               "ssh://javascript/alert%281%29",
		"":                                                  "",
	} {
		if got := publicURL(remote); got != want {
			t.Errorf("%q: got %q, want %q", remote, got, want)
		}
	}
}

func FuzzPublicURL(f *testing.F) {
	f.Add("https://user:secret@github.com/team/models")
	f.Add("git@github.com:team/models.git")
	f.Fuzz(func(t *testing.T, remote string) {
		got := publicURL(remote)
		u, err := url.Parse(got)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || registry.ValidateText("url", got) != nil {
			t.Errorf("%q: got %q, error %v", remote, got, err)
		}
	})
}
