//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// BenchmarkRebuild times an unchanged rebuild of examples/digits against the first
// build, both as a user runs them: a process each, the toolchain installed, no step in
// the cache before the first.
func BenchmarkRebuild(b *testing.B) {
	self := filepath.Join(b.TempDir(), "mlpromote")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", self, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	cache := b.TempDir()
	if err := os.Symlink(filepath.Join(programtest.Cache(b), "toolchains"), filepath.Join(cache, "toolchains")); err != nil {
		b.Fatal(err)
	}
	var first, again time.Duration
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "digits")
		if err := programtest.Example("digits", dir); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(cache, "steps")); err != nil {
			b.Fatal(err)
		}
		first += timeBuild(b, self, dir, cache)
		again += timeBuild(b, self, dir, cache)
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "first-ms/op")
	b.ReportMetric(float64(again.Microseconds())/1000/float64(b.N), "again-ms/op")
	b.ReportMetric(100*float64(again)/float64(first), "%-of-first")
}

// BenchmarkFirstRelease counts the processor time from build to resolve for the four engines of examples/digits, as a user runs the
// commands, beside a script that quantizes the same model and compares it on the same cases.
func BenchmarkFirstRelease(b *testing.B) {
	installed, err := filepath.Glob(filepath.Join(programtest.Cache(b), "toolchains", "onnxruntime-*", "venv", "bin", "python"))
	if err != nil || len(installed) == 0 {
		b.Fatalf("no Python of ONNX Runtime in %s (%v)", programtest.Cache(b), err)
	}
	spent := make(map[string]time.Duration)
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "digits")
		if err := programtest.Example("digits", dir); err != nil {
			b.Fatal(err)
		}
		run := func(step, program string, args ...string) {
			cmd := exec.CommandContext(b.Context(), program, args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), programtest.Environment(dir, programtest.Cache(b))...)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", step, err, out)
			}
			spent[step] += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		self := programtest.Program(b)
		run("build", self, "build", "--no-cache")
		run("verify", self, "verify")
		run("promote", self, "promote")
		run("resolve", self, "resolve", "vision/digits", "--env", "prod")
		run("script", installed[0], programtest.Root("cmd", "mlpromote", "testdata", "bare.py"))
	}
	var all time.Duration
	for step, cost := range spent {
		b.ReportMetric(float64(cost.Microseconds())/1000/float64(b.N), step+"-cpu-ms/op")
		if step != "script" {
			all += cost
		}
	}
	b.ReportMetric(float64(all)/float64(spent["script"]), "times-the-script")
}

func timeBuild(b *testing.B, self, dir, cache string) time.Duration {
	b.Helper()
	cmd := exec.Command(self, "build")
	cmd.Args[0] = "mlpromote"
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MLPROMOTE_CACHE="+cache, "MLPROMOTE_DATA=", "COSIGN_PASSWORD=")
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return time.Since(began)
}
