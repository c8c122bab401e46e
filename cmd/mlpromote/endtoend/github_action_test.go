//go:build cgo

package endtoend

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// workflow lists the targets, builds each in a job of its own, and takes the release to prod in three jobs. Each of them gets the program by itself. The last step of each writes
// the outputs to a file, by which the test sees what a user's workflow would.
const workflow = `name: release
on: [push]
permissions: {contents: read}
jobs:
  targets:
    runs-on: ubuntu-latest
    outputs:
      matrix: ${{ steps.mlpromote.outputs.matrix }}
    steps:
      - uses: actions/checkout@v5
      - id: mlpromote
        uses: ./ci/github
        with: {step: matrix, url: URL, sha256: SHA256}
  parts:
    needs: targets
    strategy:
      matrix: ${{ fromJSON(needs.targets.outputs.matrix) }}
    runs-on: ${{ matrix.runner }}
    steps:
      - uses: actions/checkout@v5
      - uses: ./ci/github
        with: {step: build, args: "--target=${{ matrix.target }}", url: URL, sha256: SHA256}
  build:
    needs: parts
    runs-on: ubuntu-latest
    outputs:
      digest: ${{ steps.mlpromote.outputs.release-digest }}
    steps:
      - uses: actions/checkout@v5
      - id: mlpromote
        uses: ./ci/github
        with: {step: assemble, url: URL, sha256: SHA256}
      - {run: 'printf "%s\n" "$DIGESTS" >>"$RESULTS/engines"', env: {DIGESTS: "${{ steps.mlpromote.outputs.engine-digests }}"}}
  verify:
    needs: build
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - id: mlpromote
        uses: ./ci/github
        with: {step: verify, args: "staging/vision/digits@${{ needs.build.outputs.digest }}", url: URL, sha256: SHA256}
      - {run: 'printf "%s\n" "$VERDICTS" >>"$RESULTS/verdicts"', env: {VERDICTS: "${{ steps.mlpromote.outputs.verdicts }}"}}
  promote:
    needs: [build, verify]
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - id: mlpromote
        uses: ./ci/github
        with: {step: promote, args: "staging/vision/digits@${{ needs.build.outputs.digest }}", url: URL, sha256: SHA256}
      - run: printf '%s %s\n' "$DIGEST" "$BUILT" >>"$RESULTS/promoted"
        env: {DIGEST: "${{ steps.mlpromote.outputs.release-digest }}", BUILT: "${{ needs.build.outputs.digest }}"}
`

// TestGitHubAction runs a workflow with the action as a runner of GitHub does, by act: build, verify and promote as jobs of
// their own, over a program that is downloaded and checked.
func TestGitHubAction(t *testing.T) {
	t.Parallel()
	act := newStock(t, "act")
	repository := actionRepository(t)
	url, sum := serveArchive(t, programtest.Program(t))
	results := t.TempDir()
	run := func(text string) (string, error) {
		writeWorkflow(t, repository, text)
		cmd := exec.CommandContext(t.Context(), act.program, "push", "-P", "ubuntu-latest=-self-hosted", "--pull=false", "--no-cache-server", "--action-offline-mode",
			"--env", "RESULTS="+results, "--env", "MLPROMOTE_DATA="+filepath.Join(results, "data"), "--env", "MLPROMOTE_CACHE="+programtest.Cache(t))
		cmd.Dir, cmd.Env = repository, act.env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	log, err := run(strings.NewReplacer("URL", url, "SHA256", sum).Replace(workflow))
	if err != nil {
		t.Fatalf("act: %v\n%s", err, log)
	}
	digests := lines(t, filepath.Join(results, "promoted"))
	if words := strings.Fields(digests); len(words) != 2 || words[0] != words[1] || !strings.HasPrefix(words[0], "sha256:") {
		t.Errorf("promoted %q, want the digest that was built, twice", digests)
	}
	for _, name := range []string{"engines", "verdicts"} {
		var object map[string]string
		if err := json.Unmarshal([]byte(lines(t, filepath.Join(results, name))), &object); err != nil || len(object) != 2 {
			t.Errorf("%s: %v (error %v), want an object with the two engines", name, object, err)
		}
	}
	// Another archive is not run, whatever is in it.
	log, err = run(strings.NewReplacer("URL", url, "SHA256", strings.Repeat("0", 64)).Replace(workflow))
	if err == nil || !strings.Contains(log, "the archive is not the one of the input sha256") {
		t.Errorf("an archive with another checksum: error %v\n%s", err, log)
	}
}

// TestGitHubWorkflowLint checks the workflow and its use of the action with actionlint.
func TestGitHubWorkflowLint(t *testing.T) {
	t.Parallel()
	lint := newStock(t, "actionlint")
	repository := actionRepository(t)
	writeWorkflow(t, repository, strings.NewReplacer("URL", "https://example.com/mlpromote.tar.gz", "SHA256", strings.Repeat("0", 64)).Replace(workflow))
	cmd := exec.CommandContext(t.Context(), lint.program, "-no-color", "-shellcheck=", "-pyflakes=")
	cmd.Dir, cmd.Env = repository, lint.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

// actionRepository is a git repository with the digits example and the action.
func actionRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := programtest.Digits(dir); err != nil {
		t.Fatal(err)
	}
	if err := programtest.CopyTree(programtest.Root("ci"), filepath.Join(dir, "ci")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "x"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func writeWorkflow(t *testing.T, repository, text string) {
	t.Helper()
	dir := filepath.Join(repository, ".github", "workflows")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "release.yml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serveArchive serves the program in an archive such as `make dist` makes, and gives its URL and checksum.
func serveArchive(t *testing.T, program string) (url, sum string) {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&archive, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	packed := tar.NewWriter(zipped)
	if err := packed.WriteHeader(&tar.Header{Name: "mlpromote", Mode: 0o755, Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { _, err := packed.Write(data); return err }, packed.Close, zipped.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive.Bytes()) }))
	t.Cleanup(server.Close)
	digest := sha256.Sum256(archive.Bytes())
	return server.URL + "/mlpromote.tar.gz", hex.EncodeToString(digest[:])
}

func lines(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
