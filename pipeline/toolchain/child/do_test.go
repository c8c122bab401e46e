package child_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/child"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

func program(t *testing.T, behaviour string) child.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return child.Program{Name: "fake", Path: self, Args: []string{"fake", behaviour}}
}

// compile is a job with one input for each name.
func compile(t *testing.T, names ...string) toolchain.Job {
	t.Helper()
	job := toolchain.Job{Verb: toolchain.VerbCompile}
	for _, name := range names {
		path := filepath.Join(t.TempDir(), "blob")
		if err := os.WriteFile(path, []byte("bytes of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleModel, name, path))
	}
	return job
}

func TestDo(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	job := compile(t, "a/model.onnx", "model.data")
	job.Options = map[string]any{"level": "basic"}
	outcome, err := child.Do(t.Context(), program(t, "well behaved"), child.Budget{}, job, out)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Files) != 1 || outcome.Files[0].Name != "deep/file" || outcome.Files[0].Size != 4 || outcome.Elapsed <= 0 {
		t.Errorf("outcome %+v, want deep/file of 4 bytes", outcome)
	}
	var saw facts
	if err := json.Unmarshal(outcome.Result, &saw); err != nil {
		t.Fatal(err)
	}
	// A model of several files holds no symbolic links: runtimes refuse to follow them.
	if len(saw.Inputs) != 2 || saw.Inputs["model/a/model.onnx ----------"] != "bytes of a/model.onnx" || saw.Inputs["model/model.data ----------"] != "bytes of model.data" {
		t.Errorf("the driver saw the inputs %v", saw.Inputs)
	}
	if saw.Entries != 0 || !saw.Leader || saw.Options["level"] != "basic" {
		t.Errorf("the driver saw %+v, want an empty working directory, a process group and its options", saw)
	}
	for _, entry := range saw.Environment {
		if strings.Contains(entry, secret) {
			t.Errorf("the driver inherited %s", entry)
		}
	}
	if !slices.Contains(saw.Environment, "PYTHONHASHSEED=0") || !slices.Contains(saw.Environment, "TZ=UTC") {
		t.Errorf("the driver's environment is not pinned: %v", saw.Environment)
	}
}

// What a driver gets wrong is told from what it says is wrong.
func TestDoFailures(t *testing.T) {
	t.Parallel()
	for behaviour, want := range map[string]struct {
		code registry.Code
		text string
	}{
		"crash":                    {registry.CodeInternal, "exit status 3"},
		"killed":                   {registry.CodeInternal, "crashed"},
		"silent":                   {registry.CodeInternal, "left no answer"},
		"garbage":                  {registry.CodeInternal, "no JSON"},
		"empty":                    {registry.CodeInternal, "outside its protocol"},
		"wrong id":                 {registry.CodeInternal, "outside its protocol"},
		"liar":                     {registry.CodeInternal, "outside its protocol"},
		"no reason":                {registry.CodeInternal, "outside its protocol"},
		"pipe":                     {registry.CodeInternal, "no file"},
		"unlisted":                 {registry.CodeInternal, "surprise"},
		"missing":                  {registry.CodeInternal, "did not leave: model.onnx"},
		"miscounted":               {registry.CodeInternal, "lists model.onnx as sha256:00"},
		"link":                     {registry.CodeInternal, "not a regular file"},
		"overwrite":                {registry.CodeInternal, "wrote to its input model/m.onnx"},
		"error unavailable":        {registry.CodeUnavailable, "the model's fault"},
		"error unsupported_op":     {registry.CodeInvalid, "the model's fault"},
		"error unsupported_format": {registry.CodeInvalid, "the model's fault"},
		"error bad_input":          {registry.CodeInvalid, "the model's fault"},
		"error untrusted":          {registry.CodeUnsafe, "the model's fault"},
		"error target_mismatch":    {registry.CodeWrongNode, "the model's fault"},
		"error tool_failed":        {registry.CodeInternal, "the model's fault"},
		"error limit":              {registry.CodeUnavailable, "the model's fault"},
		"error no_such_code":       {registry.CodeInternal, "the model's fault"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			_, err := child.Do(t.Context(), program(t, behaviour), child.Budget{}, compile(t, "m.onnx"), t.TempDir())
			if registry.CodeOf(err) != want.code || err == nil || !strings.Contains(err.Error(), want.text) {
				t.Errorf("error %v (%s), want %s and %q", err, registry.CodeOf(err), want.code, want.text)
			}
		})
	}
}

func TestDoKeepsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	_, err := child.Do(t.Context(), program(t, "crash"), child.Budget{}, compile(t), t.TempDir())
	var failure *child.Error
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want a *child.Error in it", err)
	}
	if !strings.HasSuffix(failure.Log, "the disk is on fire\n") || len(failure.Log) > 64<<10 {
		t.Errorf("log of %d bytes, want at most 64 KiB and the last line", len(failure.Log))
	}
	if hints := registry.Hints(err); len(hints) != 1 || !strings.Contains(hints[0], "the disk is on fire") || len(hints[0]) > 2000 {
		t.Errorf("hints %q, want the last lines of the log", hints)
	}
}

func TestDoBudget(t *testing.T) {
	t.Parallel()
	for behaviour, c := range map[string]struct {
		budget child.Budget
		code   registry.Code
	}{
		"hang":       {child.Budget{Wall: 300 * time.Millisecond}, registry.CodeUnavailable},
		"burn":       {child.Budget{CPU: time.Second}, registry.CodeUnavailable},
		"big file":   {child.Budget{FileBytes: 1 << 16}, registry.CodeInternal},
		"big memory": {child.Budget{MemoryBytes: 1 << 30}, registry.CodeInternal},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			_, err := child.Do(t.Context(), program(t, behaviour), c.budget, compile(t), t.TempDir())
			if registry.CodeOf(err) != c.code || err == nil {
				t.Errorf("error %v (%s), want %s", err, registry.CodeOf(err), c.code)
			}
		})
	}
}

func TestDoStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := child.Do(ctx, program(t, "hang"), child.Budget{}, compile(t), t.TempDir())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// A process that the driver left behind does not outlive the job: its end of the pipe closes.
func TestDoLeavesNoProcess(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	job := compile(t)
	job.Options = map[string]any{"fifo": fifo}
	held := make(chan error, 1)
	go func() {
		f, err := os.Open(fifo)
		if err == nil {
			defer f.Close()
			_, err = io.ReadAll(f)
		}
		held <- err
	}()
	keep, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Do(t.Context(), program(t, "orphan"), child.Budget{}, job, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	keep.Close()
	if err := <-held; err != nil {
		t.Error(err)
	}
}

func TestDoRefuses(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := child.Do(t.Context(), program(t, "silent"), child.Budget{}, compile(t), full)
	if !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a full output directory: error %v, want CodeInvalid", err)
	}
	job := compile(t, "m.onnx")
	job.Inputs[0].Size++
	if _, err := child.Do(t.Context(), program(t, "silent"), child.Budget{}, job, t.TempDir()); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("an input of another size: error %v, want CodeDigest", err)
	}
	gone := program(t, "silent")
	gone.Path = filepath.Join(full, "no-such-program")
	if _, err := child.Do(t.Context(), gone, child.Budget{}, compile(t), t.TempDir()); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("no program: error %v, want CodeUnavailable", err)
	}
}

// Whatever arrives on standard input, Serve answers with a status and does not panic.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"protocol":"mlpromote.driver/v1","verb":"probe"}`))
	f.Add([]byte(`{"protocol":"other","run":{"engines":[{}]},"options":{"a":[[[]]]}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, request []byte) {
		var r child.Request
		if json.NewDecoder(bytes.NewReader(request)).Decode(&r) == nil && r.ResponsePath != "" {
			t.Skip("it would write there")
		}
		status := child.Serve(t.Context(), bytes.NewReader(request), io.Discard, func(context.Context, child.Request) (any, error) {
			return nil, child.Errorf(child.BadInput, "no")
		})
		if status != 1 && status != 2 {
			t.Errorf("status %d for a request that is refused", status)
		}
	})
}
