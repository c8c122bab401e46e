package endtoend_test

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// demo makes the demo, serves it until the test ends, and gives its address. Of the environment it gets variables that
// name another registry, which it must not ask.
func demo(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, programtest.Program(t), "demo", "shop", "--serve", "--listen", "127.0.0.1:0")
	c.Dir = root
	c.Env = append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_REGISTRY=http://127.0.0.1:1", "MLPROMOTE_DATA=elsewhere")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	said := &strings.Builder{}
	c.Stderr = said
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := c.Wait(); err != nil && c.ProcessState.ExitCode() != 0 {
			t.Logf("the demo ended with %v:\n%s", err, said)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		cancel()
		_ = c.Wait()
		t.Fatalf("the demo served nothing: %v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(root, "elsewhere")); err == nil {
		t.Error("the demo used MLPROMOTE_DATA, want a data directory of its own")
	}
	return strings.TrimSpace(line)
}

// clicker is a reader who follows links of a page by what they say.
type clicker struct {
	*testing.T
	at, page string
	clicks   int
}

func (c *clicker) open(address string) {
	c.Helper()
	to, err := url.Parse(c.at)
	if err == nil {
		to, err = to.Parse(address)
	}
	if err != nil {
		c.Fatal(err)
	}
	response, err := http.Get(to.String())
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		c.Fatalf("%s: got %s, error %v", to, response.Status, err)
	}
	c.at, c.page = to.String(), string(body)
}

var (
	links = regexp.MustCompile(`(?s)<a\s[^>]*href="([^"]*)"[^>]*>(.*?)</a>`)
	tags  = regexp.MustCompile(`(?s)<(style|svg|script).*?</(style|svg|script)>|<[^>]*>`)
	blank = regexp.MustCompile(`\s+`)
)

// text is what a reader sees of HTML.
func text(markup string) string {
	return strings.TrimSpace(blank.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(markup, " ")), " "))
}

// click follows the first link that says a text.
func (c *clicker) click(says string) {
	c.Helper()
	for _, link := range links.FindAllStringSubmatch(c.page, -1) {
		if text(link[2]) == says {
			c.clicks++
			c.open(html.UnescapeString(link[1]))
			return
		}
	}
	c.Fatalf("%s has no link %q", c.at, says)
}

// clickLike follows the first link whose text a pattern matches.
func (c *clicker) clickLike(pattern string) {
	c.Helper()
	for _, link := range links.FindAllStringSubmatch(c.page, -1) {
		if regexp.MustCompile(pattern).MatchString(text(link[2])) {
			c.click(text(link[2]))
			return
		}
	}
	c.Fatalf("%s has no link like %s", c.at, pattern)
}

// send fills the form that has all of the fields in, and sends it.
func (c *clicker) send(action string, fields url.Values) {
	c.Helper()
	if !strings.Contains(c.page, `action="`+action+`"`) {
		c.Fatalf("%s has no form that asks %s", c.at, action)
	}
	for name := range fields {
		if !strings.Contains(c.page, `name="`+name+`"`) {
			c.Fatalf("%s has no field %s", c.at, name)
		}
	}
	c.clicks++
	c.open(action + "?" + fields.Encode())
}

// The forms of pages decide in the real service, for pages of the service alone.
func decideOnDemo(t *testing.T, address string) {
	t.Helper()
	form, err := http.Get(address + "/environments/prod/act/vision/digits?action=release-hold")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(form.Body)
	form.Body.Close()
	seen := regexp.MustCompile(`name="hold" value="([^"]+)"`).FindSubmatch(page)
	if err != nil || seen == nil {
		t.Fatalf("the form (status %d) names no hold, error %v", form.StatusCode, err)
	}
	release := url.Values{"action": {"release-hold"}, "hold": {html.UnescapeString(string(seen[1]))}, "reason": {"the scanner was wrong"}}
	for _, c := range []struct {
		origin string
		status int
	}{
		{"https://elsewhere.example", http.StatusForbidden},
		{address, http.StatusSeeOther},
		{address, http.StatusNotFound}, // there is no hold any more
	} {
		r, err := http.NewRequest(http.MethodPost, address+"/environments/prod/act/vision/digits", strings.NewReader(release.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", c.origin)
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("a form that a page of %s sends: got %s, want %d", c.origin, response.Status, c.status)
		}
	}
}

// What a release manager asks is answered on the board, or two clicks from there.
func TestDemoAnswers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the answers name engines for linux/amd64")
	}
	address := demo(t)
	t.Cleanup(func() { decideOnDemo(t, address) }) // after the questions, before the service ends
	for question, c := range map[string]struct {
		clicks func(c *clicker)
		want   string // a pattern of the text of the page that they lead to
	}{
		"what is in prod and since when": {nil, `text/tickets 1\.1\.0 .* 1\.0\.0 (just now|\d+ min ago) by local user .* vision/digits 1\.2\.0 .* 1\.0\.0 … held`},
		"may nodes still load it":        {nil, `text/tickets .* ✕ not given to nodes 6 of 6 engines: no-quarantine of .*: .*the training data has names of customers`},
		"what ran last Tuesday": {func(c *clicker) { c.click("vision/digits") },
			`Timeline .* prod 1\.0\.0 \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC now ✕ rolled back by local user : readings .* prod 1\.1\.0 .* UTC ✓ promoted .* prod 1\.0\.0 .* UTC ✓ promoted`},
		"who let it in":       {nil, `vision/digits 1\.2\.0 .* 1\.0\.0 … held .* by local user 1\.2\.0 to prod`},
		"why is this refused": {nil, `vision/digits .* 1\.2\.0 to prod ✕ refused .* ✕ refused parity the parity verdict is "fail": output logits: the signal to noise ratio`},
		"what would change": {func(c *clicker) { c.click("vision/digits") },
			`What would change the reference model or the cases change the bytes of linux-amd64-v1/fp32 change`},
		"how do both compare": {func(c *clicker) { c.click("1.2.0 to prod"); c.click("Compare figures, limits and interface") },
			`Limits They allow the same\. Interface Callers of 1\.0\.0 notice nothing\. Engines .* linux-amd64-v1/int8 1\.0\.0 ✓ pass .* 1\.2\.0 ✕ fail .* Operators Engines of the same name have the same operators`},
		"which engine is closest to its limit": {func(c *clicker) { c.click("vision/digits") }, `Smallest margin .* linux-amd64-v1/fp32 ✓ pass \d+ % `},
		"what does this key sign of it": {func(c *clicker) { c.click("vision/digits"); c.click("1.1.0") },
			`Signed by In the role .* keys/local.pub [0-9a-f]{12} builder ✓ trusted .* keys/local.pub [0-9a-f]{12} promoter ✓ trusted`},
		"what must I do to promote this": {func(c *clicker) { c.click("tabular/iris") },
			`Next 1\.0\.0 to prod .* … unmet parity .* run mlpromote verify on a machine that meets the target`},
		"what does this key sign": {func(c *clicker) { c.click("Operations"); c.clickLike(`^\d+ events$`) },
			`Signed by the key [0-9a-f]{12} .* tabular/iris .* text/tickets .* vision/digits`},
		"what is stored": {func(c *clicker) { c.click("Operations") },
			`Content [\d.]+ MiB in a directory .* Runs every 1 h .* keys/local.pub [0-9a-f]{12} ✓ trusted .* signature, provenance, .* parity report, .* alone .* ✓ serves ✓ agreed`},
		"of which commit is it": {func(c *clicker) { c.click("vision/digits"); c.click("linux-amd64-v1/int8") },
			`Provenance .* Engine linux-amd64-v1/int8 .* built by onnxruntime .* reference model .* source file .* commit not known .* Derivation .* variant int8 int8, static\S* quantization by onnxruntime .* calibrated`},
		"which input is worst": {func(c *clicker) { c.click("text/tickets"); c.click("linux-amd64-v1/int8d") },
			`Largest differences .* input_ids [a-z]+ [a-z]+`},
		"is the history whole": {func(c *clicker) { c.click("History"); c.click("Check the whole history") },
			`"intact": ?true`},
		"which nodes have no engine": {func(c *clicker) {
			c.click("Nodes")
			c.send("/nodes", url.Values{"model": {"vision/digits"}, "environment": {"prod"}})
		}, `edge-arm64 .* no engine .* this-machine .* linux-amd64`},
	} {
		t.Run(question, func(t *testing.T) {
			t.Parallel()
			reader := &clicker{T: t, at: address}
			reader.open("/")
			if c.clicks != nil {
				c.clicks(reader)
			}
			if reader.clicks > 2 {
				t.Errorf("it takes %d clicks, want at most 2", reader.clicks)
			}
			if got := text(reader.page); !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("%s does not say %s:\n%s", reader.at, c.want, got)
			}
		})
	}
}
