package driverproc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

func TestDo(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	job := toolchaintest.Compile(t, "a/model.onnx", "model.data")
	job.Options = map[string]any{"level": "basic"}
	outcome, err := driverproc.Do(t.Context(), toolchaintest.Fake("well behaved"), driverproc.Budget{}, job, out)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Files) != 1 || outcome.Files[0].Name != "deep/file" || outcome.Files[0].Size != 4 || outcome.Elapsed <= 0 {
		t.Errorf("outcome %+v, want deep/file of 4 bytes", outcome)
	}
	var saw toolchaintest.Facts
	if err := json.Unmarshal(outcome.Result, &saw); err != nil {
		t.Fatal(err)
	}
	// A model of several files holds no symbolic links: runtimes refuse to follow them.
	if len(saw.Inputs) != 2 || saw.Inputs["model/a/model.onnx ----------"] != "bytes of a/model.onnx" ||
		saw.Inputs["model/model.data ----------"] != "bytes of model.data" {
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

func TestFaults(t *testing.T) {
	t.Parallel()
	toolchaintest.TestFaults(t)
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, most := range []toolchain.Sandbox{toolchain.SandboxNamespaces, toolchain.SandboxLandlock, toolchain.SandboxNone} {
		t.Run(string(most), func(t *testing.T) {
			t.Parallel()
			toolchaintest.TestEscapes(t, most)
		})
	}
}

// What a driver says that its error is about is kept as fields, as far as the job has it, and shown in front of the message.
func TestErrorsHaveSubjects(t *testing.T) {
	t.Parallel()
	job := toolchaintest.Compile(t, "m.onnx")
	job.Verb, job.Run = toolchain.VerbRun, &toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "m", Path: "m.onnx"}}}
	casesFile := filepath.Join(t.TempDir(), "b.safetensors")
	if err := os.WriteFile(casesFile, []byte("cases"), 0o600); err != nil {
		t.Fatal(err)
	}
	job.Inputs = append(job.Inputs, toolchaintest.Input(t, toolchain.RoleCases, "b.safetensors", casesFile))
	for said, want := range map[string]string{
		`{}`: "it is out of range",
		`{"engine":"m","shard":"b.safetensors","row":1,"case":2}`:                      "engine m: case 2 (row 1 of b.safetensors): it is out of range",
		`{"engine":"m","shard":"b.safetensors","case":0,"op":"Mul","dtype":"float16"}`: "engine m: case 0 (row 0 of b.safetensors): Mul: it is out of range",
		`{"shard":"b.safetensors"}`:                                                    "it is out of range",
		`{"engine":"other","shard":"../b.safetensors","case":2}`:                       "it is out of range",
		`{"shard":"b.safetensors","row":3,"case":2}`:                                   "it is out of range",
		`{"shard":"b.safetensors","row":-1,"case":2}`:                                  "it is out of range",
		`{"op":"M\u001b[2Jul\n"}`:                                                      "Mul: it is out of range",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			job := job
			job.Options = map[string]any{"subject": said}
			_, err := driverproc.Do(t.Context(), toolchaintest.Fake("subject"), driverproc.Budget{}, job, t.TempDir())
			var failed *toolchain.Failure
			if !errors.As(err, &failed) || err.Error() != "fake: "+want {
				t.Fatalf("error %v, want %q", err, want)
			}
			if strings.HasPrefix(want, "engine m") != (failed.Engine == "m" && failed.Case != nil) || strings.Contains(said, "float16") != (failed.DType == "float16") {
				t.Errorf("the failure is about %+v", failed.Subject)
			}
		})
	}
}

func TestDoKeepsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	_, err := driverproc.Do(t.Context(), toolchaintest.Fake("crash"), driverproc.Budget{}, toolchaintest.Compile(t), t.TempDir())
	var failure *driverproc.Error
	if !errors.As(err, &failure) {
		t.Fatalf("error %v, want a *driverproc.Error in it", err)
	}
	if !strings.HasSuffix(failure.Log, "the disk is on fire\n") || len(failure.Log) > 64<<10 {
		t.Errorf("log of %d bytes, want at most 64 KiB and the last line", len(failure.Log))
	}
	if hints := registry.Hints(err); len(hints) != 1 || !strings.Contains(hints[0], "the disk is on fire") || len(hints[0]) > 2000 {
		t.Errorf("hints %q, want the last lines of the log", hints)
	}
}

// A crash in a library that a driver in Go calls is told by its signal, and not by stacks and registers.
func TestDoTellsTheSignal(t *testing.T) {
	t.Parallel()
	_, err := driverproc.Do(t.Context(), toolchaintest.Fake("segfault"), driverproc.Budget{}, toolchaintest.Compile(t), t.TempDir())
	if err == nil || !strings.HasSuffix(err.Error(), "crashed: segmentation violation") {
		t.Errorf("error %v, want the name of the signal", err)
	}
	if hints := strings.Join(registry.Hints(err), "\n"); !strings.HasSuffix(hints, "SIGSEGV: segmentation violation") {
		t.Errorf("hints %q, want the log up to the signal", hints)
	}
}

func TestDoStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := driverproc.Do(ctx, toolchaintest.Fake("hang"), driverproc.Budget{}, toolchaintest.Compile(t), t.TempDir())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// A process that the driver left behind, in a session of its own, does not outlive the job.
func TestDoLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, most := range []toolchain.Sandbox{"", toolchain.SandboxLandlock, toolchain.SandboxNone} {
		job := toolchaintest.Compile(t)
		seconds := fmt.Sprintf("%d", 36_000_000+rand.IntN(1_000_000)) // tells it from all others
		job.Options = map[string]any{"seconds": seconds}
		if _, err := driverproc.Do(t.Context(), toolchaintest.Fake("orphan"), driverproc.Budget{Sandbox: most}, job, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil || len(lines) == 0 {
			t.Fatalf("no processes at all: %v", err)
		}
		for _, line := range lines {
			if text, err := os.ReadFile(line); err == nil && strings.Contains(string(text), seconds) {
				t.Errorf("sandbox %q: %s is still there", most, line)
			}
		}
	}
}

func TestDoRefuses(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := driverproc.Do(t.Context(), toolchaintest.Fake("silent"), driverproc.Budget{}, toolchaintest.Compile(t), full)
	if !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a full output directory: error %v, want CodeInvalid", err)
	}
	job := toolchaintest.Compile(t, "m.onnx")
	job.Inputs[0].Size++
	if _, err := driverproc.Do(t.Context(), toolchaintest.Fake("silent"),
		driverproc.Budget{}, job, t.TempDir()); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("an input of another size: error %v, want CodeDigest", err)
	}
	gone := toolchaintest.Fake("silent")
	gone.Path = filepath.Join(full, "no-such-program")
	if _, err := driverproc.Do(t.Context(), gone, driverproc.Budget{},
		toolchaintest.Compile(t), t.TempDir()); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("no program: error %v, want CodeUnavailable", err)
	}
}

// Whatever arrives on standard input, Serve answers with a status and does not panic.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"protocol":"mlpromote.driver/v1","verb":"probe"}`))
	f.Add([]byte(`{"protocol":"other","run":{"engines":[{}]},"options":{"a":[[[]]]}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, request []byte) {
		var r driverproc.Request
		if json.NewDecoder(bytes.NewReader(request)).Decode(&r) == nil && r.ResponsePath != "" {
			t.Skip("it would write there")
		}
		status := driverproc.Serve(t.Context(), bytes.NewReader(request), io.Discard, func(context.Context, driverproc.Request) (any, error) {
			return nil, driverproc.Errorf(driverproc.BadInput, "no")
		})
		if status != 1 && status != 2 {
			t.Errorf("status %d for a request that is refused", status)
		}
	})
}
