package cistep

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const hostile = "one\n::error::two\r\nMLPROMOTE_REF=three%0A $(id) `id`\x1b[31m"

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func at() time.Time { return time.Unix(1_700_000_000, 0) }

// What is between open and close are no commands to GitHub, and only who knows the random text ends that.
func TestGitHub(t *testing.T) {
	t.Parallel()
	sys := detect(env(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": "out", "GITHUB_STEP_SUMMARY": "summary"}), at)
	opened, closed := sys.open("mlpromote build\n::error::x"), sys.close()
	lines := strings.Split(strings.TrimSuffix(opened, "\n"), "\n")
	if len(lines) != 2 || lines[0] != "::group::mlpromote build%0A::error::x" || !strings.HasPrefix(lines[1], "::stop-commands::") {
		t.Fatalf("opened by %q", opened)
	}
	token := strings.TrimPrefix(lines[1], "::stop-commands::")
	if len(token) < 20 || closed != "\n::"+token+"::\n::endgroup::\n" {
		t.Errorf("closed by %q, want the token %q", closed, token)
	}
	if other := detect(env(map[string]string{"GITHUB_ACTIONS": "true"}), at).open(""); strings.Contains(other, token) {
		t.Error("two steps have the same token")
	}
	if got := sys.failure("a,b:c", hostile); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "::error title=a%2Cb%3Ac::one%0A::error::two%0D%0A") || !strings.Contains(got, "%250A") {
		t.Errorf("failure %q", got)
	}
	if got := sys.mask("first\n\nsecond 100%\n"); got != "::add-mask::first\n::add-mask::second 100%25\n" {
		t.Errorf("masked by %q", got)
	}
	if sys.outputs() != "out" || sys.summary() != "summary" {
		t.Errorf("outputs %q, summary %q", sys.outputs(), sys.summary())
	}
	text, err := encoded(sys, []string{"a", "b"}, map[string]string{"a": hostile, "b": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := readOutputs(t, text); len(got) != 2 || got["a"] != hostile || got["b"] != "x" {
		t.Errorf("outputs are read as %q", got)
	}
}

// encoded is what outputs add to the only file.
func encoded(sys system, names []string, values map[string]string) (string, error) {
	files, err := sys.encode(names, values)
	return files[sys.outputs()], err
}

// Each output is a result of its own, Chains gets what it looks for, and results that are too many lose the lists.
func TestTekton(t *testing.T) {
	t.Parallel()
	sys := detect(env(map[string]string{"MLPROMOTE_CI_RESULTS": "/r", "MLPROMOTE_STEP": "build", "MLPROMOTE_REGISTRY": "https://registry.example.com:5443/"}), at)
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	values := map[string]string{"ref": "staging/vision/digits:1.0.0@" + digest, "release-digest": digest, "verdicts": `{"a":"pass"}`}
	got, err := sys.encode([]string{"ref", "release-digest", "verdicts"}, values)
	want := map[string]string{
		"/r/ref": values["ref"], "/r/release-digest": digest, "/r/verdicts": values["verdicts"],
		"/r/release_ARTIFACT_OUTPUTS": `{"digest":"` + digest + `","isBuildArtifact":"true","uri":"registry.example.com:5443/staging/vision/digits"}`,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("results (error %v):\n%s", err, diff)
	}
	values["verdicts"] = "{" + strings.Repeat("x", maxResults) + "}"
	if got, err := sys.encode([]string{"ref", "release-digest", "verdicts"}, values); err != nil || got["/r/verdicts"] != "" || got["/r/ref"] == "" {
		t.Errorf("results that are too large: %v, error %v", got, err)
	}
}

// readOutputs reads a file of outputs as the runner of GitHub does.
func readOutputs(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		name, end, ok := strings.Cut(line, "<<")
		value, after, found := strings.Cut(rest, "\n"+end+"\n")
		if !ok || !found {
			t.Fatalf("not an output: %q", text)
		}
		all[name], text = value, after
	}
	return all
}

func TestGitLab(t *testing.T) {
	t.Parallel()
	sys := detect(env(map[string]string{"GITLAB_CI": "true", "MLPROMOTE_CI_OUTPUTS": "out.env"}), at)
	opened := sys.open("mlpromote build")
	section := strings.TrimSuffix(strings.TrimPrefix(opened, "\x1b[0Ksection_start:1700000000:"), "\r\x1b[0Kmlpromote build\n")
	if !strings.HasPrefix(section, "mlpromote_") || sys.close() != "\x1b[0Ksection_end:1700000000:"+section+"\r\x1b[0K\n" {
		t.Errorf("opened by %q, closed by %q", opened, sys.close())
	}
	text, err := encoded(sys, []string{"ref", "verdicts"}, map[string]string{"ref": hostile, "verdicts": `{"a":"pass"}`})
	if err != nil || strings.Count(text, "\n") != 2 || !strings.HasPrefix(text, "MLPROMOTE_REF=one ::error::two") || !strings.HasSuffix(text, "\nMLPROMOTE_VERDICTS={\"a\":\"pass\"}\n") {
		t.Errorf("dotenv (error %v):\n%s", err, text)
	}
	large := map[string]string{"ref": "x", "verdicts": "{" + strings.Repeat("x", maxDotenv) + "}"}
	if text, err := encoded(sys, []string{"ref", "verdicts"}, large); err != nil || text != "MLPROMOTE_REF=x\n" {
		t.Errorf("a report that is too large: %d bytes, error %v", len(text), err)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	const engine = `{"digest":"sha256:11","target":{"name":"cpu"},"variant":"int8"}`
	for name, c := range map[string]struct {
		printed string
		exit    int
		want    map[string]string
	}{
		"build": {`{"ref":"staging/m:1.0.0@sha256:00","release":{"digest":"sha256:00","version":"1.0.0","revision":2,"engines":[` + engine + `]}}`, 0,
			map[string]string{"ref": "staging/m:1.0.0@sha256:00", "release-digest": "sha256:00", "version": "1.0.0-r2", "engine-digests": `{"cpu/int8":"sha256:11"}`}},
		"verify": {`{"ref":"r","release":"sha256:00","engines":[{"label":"a/b","digest":"sha256:11","parity":{"verdict":"pass"},"performance":{"verdict":"fail"}},` +
			`{"label":"a/c","digest":"sha256:22","parity":{"verdict":"pass"},"performance":{"verdict":"recorded"}},{"label":"a/d","digest":"sha256:33"}]}`, 3,
			map[string]string{"ref": "r", "release-digest": "sha256:00", "engine-digests": `{"a/b":"sha256:11","a/c":"sha256:22","a/d":"sha256:33"}`,
				"verdicts": `{"a/b":"fail","a/c":"pass","a/d":"undecided"}`}},
		"a refused promotion": {`{"error":{"code":"policy","message":"no"},"release":"sha256:00","version":"1.0.0","environment":"prod","decision":{"requirements":[{"name":"parity","met":false}]}}`, 4,
			map[string]string{"release-digest": "sha256:00", "version": "1.0.0", "allowed": "false"}},
		"a held destination": {`{"error":{"code":"policy","message":"held"},"release":"sha256:00","decision":{"requirements":[{"name":"parity","met":true}]}}`, 4,
			map[string]string{"release-digest": "sha256:00", "allowed": "false"}},
		"a dry run":   {`{"release":"sha256:00","decision":{"requirements":[{"name":"parity","met":true}]}}`, 0, map[string]string{"release-digest": "sha256:00", "allowed": "true"}},
		"no decision": {`{"release":"sha256:00","decision":{"requirements":[]}}`, 0, map[string]string{"release-digest": "sha256:00", "allowed": "false"}},
		"nothing":     {``, 2, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := outputsOf(name, c.exit, []byte(c.printed))
			if err != nil || object(got.Outputs) != object(c.want) || got.Exit != c.exit {
				t.Errorf("outputs %s (error %v), want %s", object(got.Outputs), err, object(c.want))
			}
		})
	}
	if _, err := outputsOf("build", 0, []byte("no JSON")); err == nil {
		t.Error("text was taken for JSON")
	}
}

// FuzzEncode checks that no value of an output becomes another output.
func FuzzEncode(f *testing.F) {
	f.Add(hostile, "x")
	f.Add("a\nMLPROMOTE_B=2", "<<")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, name := range []string{"GITHUB_ACTIONS", "GITLAB_CI", "OTHER"} {
			sys := detect(env(map[string]string{name: "true"}), at)
			text, err := encoded(sys, []string{"a", "b"}, map[string]string{"a": a, "b": b})
			if err != nil {
				t.Fatal(err)
			}
			if name == "GITHUB_ACTIONS" {
				if got := readOutputs(t, text); len(got) != 2 || got["a"] != a || got["b"] != b {
					t.Errorf("outputs %q", got)
				}
			} else if strings.Count(text, "\n") > 2 {
				t.Errorf("dotenv %q", text)
			}
		}
		if _, err := outputsOf("build", 0, []byte(a)); err != nil && json.Valid([]byte(a)) && strings.HasPrefix(strings.TrimSpace(a), "{}") {
			t.Error(err)
		}
	})
}
