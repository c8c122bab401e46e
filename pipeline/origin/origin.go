// Package origin reads where a spec comes from: the commit of its git repository, and which files differ from it.
//
// The repository is not trusted. It is read with git, but nothing that its configuration or its attributes name
// is run: no hook, no filter, no file system monitor, no remote helper. What git would find by a filter is
// compared by content here.
package origin

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// timeout is how long git may take altogether. A repository of 100,000 files takes about a second.
const timeout = time.Minute

// Query says what to read.
type Query struct {
	Spec string // path of the spec
	// Used are the files and folders that the spec uses, absolute and without symbolic links.
	Used []string
}

// Read reads the state of the repository that the spec is in. What cannot be read is no error: Missing says why.
func Read(ctx context.Context, q Query) evidence.GitOrigin {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	file, err := filepath.Abs(q.Spec)
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	if err != nil {
		return evidence.GitOrigin{Missing: "the folder of the spec cannot be read"}
	}
	g := git{folder: filepath.Dir(file)}
	top, err := g.line(ctx, "rev-parse", "--show-toplevel")
	switch {
	case g.lacking():
		return evidence.GitOrigin{Missing: "git is not installed"}
	case err != nil || top == "":
		return evidence.GitOrigin{Missing: "the spec is in no git repository"}
	}
	commit, err := g.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || !isCommit(commit) {
		return evidence.GitOrigin{Missing: "the git repository has no commit"}
	}
	within, err := filepath.Rel(top, file)
	if err != nil || !filepath.IsLocal(within) {
		return evidence.GitOrigin{Missing: "the git repository keeps its files in another folder"}
	}
	found := evidence.GitOrigin{Commit: commit, Spec: filepath.ToSlash(within)}
	if ref, err := g.line(ctx, "symbolic-ref", "--quiet", "HEAD"); err == nil && registry.ValidateText("ref", ref) == nil {
		found.Ref = ref
	}
	if remote, err := g.line(ctx, "config", "--get", "remote.origin.url"); err == nil {
		found.Repository = publicURL(remote)
	}
	changed, err := tree{git: g, top: top}.changed(ctx, append([]string{file}, q.Used...))
	if err != nil {
		return found // its state is not known
	}
	found.State = evidence.GitClean
	if len(changed) > 0 {
		found.State = evidence.GitDirty
	}
	slices.Sort(changed)
	found.ChangedCount = len(changed)
	for _, name := range changed[:min(len(changed), maxChanged)] {
		found.Changed = append(found.Changed, registry.PlainText(name))
	}
	return found
}

var commitPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func isCommit(text string) bool { return commitPattern.MatchString(text) }

// scpPattern is a remote as scp writes it: [user@]host:path.
var scpPattern = regexp.MustCompile(`^(?:[^@/:]+@)?([A-Za-z0-9.-]+):([^:]+)$`)

// publicURL is a remote without what is secret or only means something on this machine: user, password, query and
// fragment. It is empty for a folder.
func publicURL(remote string) string {
	if host, path, ok := scp(remote); ok {
		remote = "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
	}
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" || !slices.Contains([]string{"https", "http", "ssh", "git"}, u.Scheme) {
		return ""
	}
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if text := clean.String(); registry.ValidateText("url", text) == nil {
		return text
	}
	return ""
}

func scp(remote string) (host, path string, ok bool) {
	if strings.Contains(remote, "://") {
		return "", "", false
	}
	parts := scpPattern.FindStringSubmatch(remote)
	if parts == nil || strings.ContainsAny(parts[2], "?#") || len(parts[1]) == 1 { // one letter is a drive
		return "", "", false
	}
	return parts[1], parts[2], true
}

// files lists the regular files of a path, which can be a file or a folder. It follows no links.
func files(path string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, p)
		}
		return err
	})
	return all, err
}

// maxChanged is how many changed files an origin names.
const maxChanged = 20
