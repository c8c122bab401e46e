//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// oneBlock is the block of a kind on the page about cases.
func oneBlock(t *testing.T, kind string) string {
	t.Helper()
	blocks := programtest.Blocks(t, "docs/how-to/cases.md", kind)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of %s, want one", len(blocks), kind)
	}
	return strings.TrimSpace(blocks[0].Text)
}

// TestCasesPageImages makes cases of images as the page about cases says.
func TestCasesPageImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := programtest.Digits(dir); err != nil {
		t.Fatal(err)
	}
	if err := writeImages(filepath.Join(dir, "scans")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", oneBlock(t, "images"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(programtest.Program(t))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "wrote 4 cases to scanned") {
		t.Errorf("error %v, want 4 cases:\n%s", err, out)
	}
}

// TestCasesPageParquet makes cases of a file of pandas as the page about cases says.
func TestCasesPageParquet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := programtest.Digits(dir); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(programtest.Root("cmd", "mlpromote", "testdata", "digits.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "digits.parquet"), table, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", oneBlock(t, "parquet"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(programtest.Program(t))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "wrote 20 cases to tabled") {
		t.Errorf("error %v, want 20 cases:\n%s", err, out)
	}
}

// TestCasesPageTorch records what a module of PyTorch gets as the page about cases says.
func TestCasesPageTorch(t *testing.T) {
	t.Parallel()
	record, err := (&install.Installer{Root: programtest.Cache(t)}).Find("torch")
	if err != nil {
		t.Skip("torch is not installed: mlpromote toolchain install torch")
	}
	folders := []string{filepath.Dir(programtest.Program(t)), filepath.Dir(record.Interpreter()), os.Getenv("PATH")}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", oneBlock(t, "torch"))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "PATH="+strings.Join(folders, ":"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "wrote 1000 cases to converted") {
		t.Errorf("error %v, want 1000 cases:\n%s", err, out)
	}
}

// recordsAt is where a recording tells that clients find it.
var recordsAt = regexp.MustCompile(`send requests to (http://[^;]+);`)

// TestCasesPageProxy records from a service as the page about cases says, until a signal ends it.
func TestCasesPageProxy(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}]}`)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(service.Close)
	for name, end := range map[string]os.Signal{"interrupted": os.Interrupt, "terminated": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := strings.Fields(strings.NewReplacer("http://127.0.0.1:8000", service.URL, "127.0.0.1:8001", "127.0.0.1:0").Replace(oneBlock(t, "proxy")))
			cmd := exec.CommandContext(t.Context(), programtest.Program(t), append(args[1:], "--output", "json")...)
			cmd.Dir = dir
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer limit.Stop()
			lines := bufio.NewScanner(stderr)
			at := ""
			for at == "" && lines.Scan() {
				if m := recordsAt.FindStringSubmatch(lines.Text()); m != nil {
					at = m[1]
				}
			}
			body := `{"inputs": [{"name": "image", "datatype": "FP32", "shape": [2, 1, 8, 8], "data": [1` + strings.Repeat(", 0", 127) + `]}]}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v2/models/digits/infer", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			echo, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil || string(echo) != body {
				t.Errorf("the service answered %q through the proxy (%v), want what was sent", echo, err)
			}
			if err := cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
				t.Log(lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var recorded struct{ Cases, Requests int }
			if err := json.Unmarshal(stdout.Bytes(), &recorded); err != nil || recorded.Cases != 2 || recorded.Requests != 1 {
				t.Errorf("recorded %s (%v), want 2 cases of 1 request", stdout.Bytes(), err)
			}
			if err := checkOutput(args[1:], stdout.String(), 0); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "recorded", "cases-00000.safetensors")); err != nil {
				t.Error(err)
			}
		})
	}
}
