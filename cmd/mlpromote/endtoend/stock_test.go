//go:build cgo

package endtoend

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// programs are those by others that tests run, with the variable that names each, and how
// it is to be had.
var programs = map[string]struct{ variable, from string }{
	"act":              {"MLPROMOTE_ACT", "make test builds it"},
	"check-jsonschema": {"MLPROMOTE_CHECK_JSONSCHEMA", "make test installs it for CPython 3.11"},
	"helm":             {"MLPROMOTE_HELM", "make test builds it"},
	"kustomize":        {"MLPROMOTE_KUSTOMIZE", "make test builds it"},
	"writers":          {"MLPROMOTE_YAML_WRITERS", "make test builds it"},
	"tekton":           {"MLPROMOTE_TEKTON", "make test builds it"},
	"zizmor":           {"MLPROMOTE_ZIZMOR", "make test installs it for CPython 3.11"},
	"actionlint":       {"MLPROMOTE_ACTIONLINT", "make test builds it"},
	"cosign":           {"MLPROMOTE_COSIGN", "make test builds it"},
	"crane":            {"MLPROMOTE_CRANE", "make test builds it"},
	"oras":             {"MLPROMOTE_ORAS", "make test builds it"},
	"regctl":           {"MLPROMOTE_REGCTL", "make test builds it"},
	"skopeo":           {"MLPROMOTE_SKOPEO", "Debian: apt-get install skopeo"},
}

// findProgram gives the path of a program by others, if it is here: the one that its
// variable names, or the one in PATH.
func findProgram(name string) (string, bool) {
	if path := os.Getenv(programs[name].variable); path != "" {
		return path, true
	}
	path, err := exec.LookPath(name)
	return path, err == nil
}

// stock is a program as others have it, with a home of its own.
type stock struct {
	program string
	dir     string // where it runs; its home
	env     []string
}

// newStock skips the test where the program is not here.
func newStock(t *testing.T, name string) *stock {
	t.Helper()
	path, ok := findProgram(name)
	if !ok {
		t.Skipf("no %s in PATH, and %s names none; %s", name, programs[name].variable, programs[name].from)
	}
	dir := t.TempDir()
	return &stock{program: path, dir: dir, env: []string{
		"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "DOCKER_CONFIG=" + dir, "REGCTL_CONFIG=" + filepath.Join(dir, "regctl.json"),
		"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"),
	}}
}

// try runs the program, and gives what it wrote to stdout and to stderr.
func (s *stock) try(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.env, bytes.NewReader(stdin)
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	err = cmd.Run()
	return out.String(), told.String(), err
}

// must runs the program, which must succeed, and gives its stdout.
func (s *stock) must(t *testing.T, args ...string) string {
	t.Helper()
	out, told, err := s.try(t, nil, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(s.program), strings.Join(args, " "), err, out, told)
	}
	return strings.TrimSpace(out)
}

// fails runs the program, which must fail and say why.
func (s *stock) fails(t *testing.T, why string, args ...string) {
	t.Helper()
	out, told, err := s.try(t, nil, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(told, why) {
		t.Errorf("%s %s: %v, want a failure that says %q\n%s%s", filepath.Base(s.program), strings.Join(args, " "), err, why, out, told)
	}
}

// wantWords compares what a program said, whatever the space between its words.
func wantWords(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if strings.Join(strings.Fields(got), " ") != strings.Join(want, " ") {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// serveEmpty starts a service that has the default environments and nothing in them.
func serveEmpty(t *testing.T) *programtest.Service {
	t.Helper()
	s := programtest.NewService(t, programtest.Program(t), t.TempDir())
	s.MustStartAndStop(t)
	return s
}

// protectedSays is what the service tells who writes to an environment that promotions
// alone write.
const protectedSays = "environment prod is protected: promote a release into it"

// random gives bytes that nothing can compress.
func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data) // never fails
	return data
}

// writeFile writes a file into the folder of the program.
func (s *stock) writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tarOf gives the layer of an image, with one file in it.
func tarOf(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
