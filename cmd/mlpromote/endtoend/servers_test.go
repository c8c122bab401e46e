//go:build cgo && linux && amd64

package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
)

// Triton and MLServer serve engines as examples/servers describes it, and what is wrong in a configuration of Triton is found.
func TestServers(t *testing.T) {
	t.Parallel()
	installs := os.Getenv("MLPROMOTE_SERVERS")
	if installs == "" {
		t.Skip("MLPROMOTE_SERVERS names no folder with Triton and MLServer; make interop installs them")
	}
	root := t.TempDir()
	servers := filepath.Join(root, "toolchains", "servers")
	if err := programtest.Example("servers", servers); err != nil {
		t.Fatal(err)
	}
	rewrite := func(file string, pairs ...string) {
		path := filepath.Join(servers, filepath.FromSlash(file))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"triton", "mlserver"} {
		rewrite(name+".yaml", "PATH/TO/VENV", filepath.Join(installs, name, ".venv"))
	}
	own := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+filepath.Join(root, "data"), "MLPROMOTE_TOOLCHAINS="+filepath.Dir(servers))
	j := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), own...)
	j.Must("build")
	verify := func(code int, name, want string) {
		cmd := j.Command("verify", "--engine", "linux-amd64-v1/fp32", "--through", name)
		out, _ := cmd.CombinedOutput() // the exit code tells
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", name, got, code, want, out)
		}
	}
	verify(registry.ExitDone, "triton", "through triton 2.51.0, oip-rest, bytes of the engine: seen")
	verify(registry.ExitDone, "mlserver", "through mlserver 1.7.1, oip-grpc, bytes of the engine: seen")
	rewrite("triton.yaml", "protocol: oip-rest", "protocol: oip-grpc")
	verify(registry.ExitDone, "triton", "oip-grpc, bytes of the engine: seen")
	rewrite("triton/m/1/model.py", `"TYPE_FP32"`, `"TYPE_FP64"`)
	verify(registry.ExitLimit, "triton", `is FP64 [-1 10]: the model has FP32 [-1 10]`)
	rewrite("triton/m/1/model.py", `"tensor(float)": "TYPE_FP64"`, `"tensor(float)": "TYPE_FP32"`)

	// Version 1 is an engine of yesterday, with answers that keep every limit; the engine becomes version 2.
	if err := programtest.CopyTree(filepath.Join(servers, "triton", "m", "1"), filepath.Join(servers, "triton", "m", "2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(j.Dir, "digits.onnx"), filepath.Join(servers, "triton", "m", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	rewrite("triton.yaml", "engine: m/1", "engine: m/2")
	verify(registry.ExitDone, "triton", "bytes of the engine: seen") // of versions, Triton serves the highest
	rewrite("triton/m/config.pbtxt", "max_batch_size: 0", "max_batch_size: 0\nversion_policy: { all: {} }")
	verify(registry.ExitLimit, "triton", "it has the versions 1, 2 of the model ready")
	rewrite("triton/m/config.pbtxt", "{ all: {} }", "{ specific: { versions: [1] } }")
	verify(registry.ExitLimit, "triton", "it answered although all bytes of the engine were zeros")
}
