//go:build cgo

package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// pullRequest is a pull request's comments, with the part of GitHub's REST API by which they are read and written.
// Source: https://docs.github.com/en/rest/issues/comments.
type pullRequest struct {
	mu       sync.Mutex
	comments []prComment
}

type prComment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
	User struct {
		Type string `json:"type"`
	} `json:"user"`
}

func (p *pullRequest) add(kind, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := prComment{ID: 1000 + len(p.comments), Body: body}
	c.User.Type = kind
	p.comments = append(p.comments, c)
}

func (p *pullRequest) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	const repository = "/repos/team/models"
	mux.HandleFunc("GET "+repository+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("head") == "a-fork:feature/$(id)&x" {
			fmt.Fprint(w, `[{"number":7}]`)
			return
		}
		fmt.Fprint(w, `[]`)
	})
	mux.HandleFunc("GET "+repository+"/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		first := min((page-1)*100, len(p.comments))
		_ = json.NewEncoder(w).Encode(append([]prComment{}, p.comments[first:min(first+100, len(p.comments))]...))
	})
	mux.HandleFunc("POST "+repository+"/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		var c prComment
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			t.Error(err)
		}
		p.add("Bot", c.Body)
	})
	mux.HandleFunc("PATCH "+repository+"/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		var c prComment
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.comments {
			if strconv.Itoa(p.comments[i].ID) == r.PathValue("id") {
				p.comments[i].Body = c.Body
			}
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s came with the token %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A report is one comment, which is edited in place. One by a person that looks like it stays as it is.
func TestGitHubComment(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("no jq in PATH (Debian: apt-get install jq)")
	}
	const marker = "<!-- mlpromote vision/digits prod -->\n"
	p := &pullRequest{}
	p.add("User", marker+"forged by a person")
	for range 120 {
		p.add("Bot", "another bot")
	}
	url, dir := p.serve(t), t.TempDir()
	comment := func(body string, env ...string) (string, error) {
		file := filepath.Join(dir, "comment.md")
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "bash", programtest.Root("ci", "github", "comment.sh"))
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "BODY=" + file, "GITHUB_TOKEN=secret", "GITHUB_API_URL=" + url, "GITHUB_REPOSITORY=team/models"}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const hostile = "`id` $(id) \"quoted\" ::error::x\r\n"
	fork := []string{"HEAD_OWNER=a-fork", "HEAD_BRANCH=feature/$(id)&x"}
	for _, c := range []struct {
		body string
		env  []string
	}{{marker + "first", []string{"NUMBER=7"}}, {marker + "second " + hostile, fork}} {
		if out, err := comment(c.body, c.env...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if last := p.comments[len(p.comments)-1]; len(p.comments) != 122 || last.Body != c.body || p.comments[0].Body != marker+"forged by a person" {
			t.Fatalf("%d comments, the last %q, want one of ours with %q", len(p.comments), last.Body, c.body)
		}
	}
	for name, c := range map[string]struct{ body, env, say string }{
		"a file that is no report":          {"hello\n", "NUMBER=7", "does not begin"},
		"a marker with the text of another": {"<!-- mlpromote x --> <b>\n", "NUMBER=7", "does not begin"},
		"no number":                         {marker, "NUMBER=7/../8", "is none"},
		"too long":                          {marker + strings.Repeat("x", 70000), "NUMBER=7", "longer"},
	} {
		if out, err := comment(c.body, c.env); err == nil || !strings.Contains(out, c.say) {
			t.Errorf("%s: error %v, want one that says %q\n%s", name, err, c.say, out)
		}
	}
	if out, err := comment(marker+"x", "HEAD_OWNER=a-fork", "HEAD_BRANCH=gone"); err != nil || len(p.comments) != 122 {
		t.Errorf("a branch without a pull request: error %v, %d comments, want no change\n%s", err, len(p.comments), out)
	}
}
