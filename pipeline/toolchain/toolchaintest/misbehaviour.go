package toolchaintest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry"
)

// Misbehaviour is something that a driver may do wrong, and the expected error.
type Misbehaviour struct {
	Name   string // for [Fake]
	Budget driverproc.Budget
	Code   registry.Code
	Text   string            // text of the error
	Needs  toolchain.Sandbox // the weakest sandbox that prevents it; empty: all prevent it
}

// The most frequent codes.
const (
	broken      = registry.CodeInternal
	unavailable = registry.CodeUnavailable
	invalid     = registry.CodeInvalid
)

// Faults returns the violations of the protocol that [Fake] can commit.
func Faults() []Misbehaviour {
	return []Misbehaviour{
		{Name: "crash", Code: broken, Text: "exit status 3"},
		{Name: "killed", Code: registry.CodeUnavailable, Text: "was killed from outside"},
		{Name: "silent", Code: broken, Text: "left no response"},
		{Name: "garbage", Code: broken, Text: "not JSON"},
		{Name: "empty", Code: broken, Text: "broke the driver protocol"},
		{Name: "wrong id", Code: broken, Text: "broke the driver protocol"},
		{Name: "liar", Code: broken, Text: "broke the driver protocol"},
		{Name: "no reason", Code: broken, Text: "broke the driver protocol"},
		{Name: "endless", Code: broken, Text: "more than"},
		{Name: "pipe", Code: broken, Text: "not a file"},
		{Name: "unlisted", Code: broken, Text: "surprise"},
		{Name: "missing", Code: broken, Text: "did not leave: model.onnx"},
		{Name: "miscounted", Code: broken, Text: "lists model.onnx as sha256:00"},
		{Name: "climbing", Code: broken, Text: "does not list: model.onnx"},
		{Name: "link", Code: broken, Text: "not a regular file"},
		{Name: "refusal with files", Code: invalid, Text: "the model's fault"},

		{Name: "error unavailable", Code: unavailable, Text: "the model's fault"},
		{Name: "error unsupported_op", Code: invalid, Text: "the model's fault"},
		{Name: "error unsupported_format", Code: invalid, Text: "the model's fault"},
		{Name: "error bad_input", Code: invalid, Text: "the model's fault"},
		{Name: "error untrusted", Code: registry.CodeUnsafe, Text: "the model's fault"},
		{Name: "error target_mismatch", Code: registry.CodeWrongNode, Text: "the model's fault"},
		{Name: "error tool_failed", Code: broken, Text: "the model's fault"},
		{Name: "error limit", Code: unavailable, Text: "the model's fault"},
		{Name: "error no_such_code", Code: broken, Text: "the model's fault"},
	}
}

// Escapes returns the attempts of [Fake] to leave its sandbox.
func Escapes() []Misbehaviour {
	return []Misbehaviour{
		{Name: "hang", Budget: driverproc.Budget{Wall: 300 * time.Millisecond}, Code: unavailable, Text: "longer than"},
		{Name: "burn", Budget: driverproc.Budget{CPU: time.Second}, Code: unavailable, Text: "computed for"},
		{Name: "big file", Budget: driverproc.Budget{FileBytes: 1 << 16}, Code: broken, Text: ""},
		{Name: "big memory", Budget: driverproc.Budget{MemoryBytes: 1 << 30}, Code: broken, Text: ""},
		{Name: "many files", Budget: driverproc.Budget{OpenFiles: 64}, Code: broken, Text: "too many open files"},
		{Name: "fork bomb", Budget: driverproc.Budget{Processes: 64}, Code: broken, Text: "resource temporarily unavailable"},

		{Name: "overwrite", Code: broken, Text: ""}, // if the sandbox allows it, it changes a copy, which is detected
		{Name: "remove input", Code: broken, Text: ""},
		{Name: "write outside", Code: broken, Needs: toolchain.SandboxLandlock},
		{Name: "read outside", Code: broken, Needs: toolchain.SandboxLandlock},
		{Name: "connect", Code: broken, Needs: toolchain.SandboxLandlock},
		{Name: "signal", Code: broken, Text: "no such process", Needs: toolchain.SandboxNamespaces},
	}
}

// TestFaults runs every fault: each gives an error with its code and leaves nothing.
func TestFaults(t *testing.T) {
	t.Helper()
	for _, m := range Faults() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.test(t)
		})
	}
}

// TestEscapes runs every escape in the strongest sandbox that is at most most: each gives an
// error with its code, does no harm and leaves nothing.
func TestEscapes(t *testing.T, most toolchain.Sandbox) {
	t.Helper()
	outcome, err := driverproc.Do(t.Context(), Fake("well behaved"), driverproc.Budget{Sandbox: most}, Compile(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	order := map[toolchain.Sandbox]int{toolchain.SandboxNamespaces: 0,
		toolchain.SandboxLandlock: 1, toolchain.SandboxNone: 2, "": 3}
	for _, m := range Escapes() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if order[outcome.Enforced.Sandbox] > order[m.Needs] {
				t.Skipf("this machine has the sandbox %s (%v); only %s prevents it",
					outcome.Enforced.Sandbox, outcome.Enforced.Lacks, m.Needs)
			}
			m.Budget.Sandbox = most
			m.test(t)
		})
	}
}

func (m Misbehaviour) test(t *testing.T) {
	t.Helper()
	job, out, bystander := Compile(t, "m.onnx"), t.TempDir(), newBystander(t)
	job.Options = map[string]any{"folder": bystander.folder,
		"address": bystander.listener.Addr().String(), "process": strconv.Itoa(os.Getpid())}
	if m.Name == "fork bomb" && m.unbounded(t) {
		t.Skip("this machine cannot bound the number of processes")
	}
	_, err := driverproc.Do(t.Context(), Fake(m.Name), m.Budget, job, out)
	if registry.CodeOf(err) != m.Code || err == nil || !strings.Contains(err.Error(), m.Text) {
		t.Errorf("error %v (%s), want %s and %q", err, registry.CodeOf(err), m.Code, m.Text)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		t.Errorf("it left %v (%v)", files, err)
	}
	if in, err := toolchain.FileInput(toolchain.RoleModel, "m.onnx", job.Inputs[0].Path); err != nil ||
		in.Digest != job.Inputs[0].Digest {
		t.Errorf("its input is now %+v (%v)", in, err)
	}
	bystander.check(t)
}

// unbounded reports whether this machine does not limit processes.
func (m Misbehaviour) unbounded(t *testing.T) bool {
	t.Helper()
	outcome, err := driverproc.Do(t.Context(), Fake("well behaved"), m.Budget, Compile(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Enforced.Processes == 0
}

// bystander has things that no driver may access.
type bystander struct {
	folder   string // with the file secret
	listener net.Listener
	met      chan struct{} // receives a value for each connection
}

func newBystander(t *testing.T) bystander {
	t.Helper()
	b := bystander{folder: t.TempDir(), met: make(chan struct{}, 1)}
	if err := os.WriteFile(filepath.Join(b.folder, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.listener.Close() })
	go func() {
		for {
			c, err := b.listener.Accept()
			if err != nil {
				return
			}
			b.met <- struct{}{}
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return b
}

func (b bystander) check(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(b.folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("a folder that it was not given holds %v (%v)", entries, err)
	}
	if len(b.met) > 0 {
		t.Error("it connected to a port on loopback")
	}
}

// Compile is a job for [Fake], with a model file for each name.
func Compile(tb testing.TB, names ...string) toolchain.Job {
	tb.Helper()
	job := toolchain.Job{Verb: toolchain.VerbCompile}
	for _, name := range names {
		path := filepath.Join(tb.TempDir(), "blob")
		if err := os.WriteFile(path, []byte("bytes of "+name), 0o600); err != nil {
			tb.Fatal(err)
		}
		job.Inputs = append(job.Inputs, Input(tb, toolchain.RoleModel, name, path))
	}
	return job
}
