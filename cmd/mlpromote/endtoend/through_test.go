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

// What is wrong between an engine and the clients of its server is found, and a policy can ask for what was found.
func TestThrough(t *testing.T) {
	t.Parallel()
	program, serve := programtest.Program(t), programtest.Server(t)
	root := t.TempDir()
	own := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+filepath.Join(root, "data"), "MLPROMOTE_TOOLCHAINS="+filepath.Join(root, "toolchains"))
	j := programtest.NewJob(t, program, filepath.Join(root, "digits"), own...)
	if err := os.MkdirAll(filepath.Join(root, "toolchains", "servers"), 0o755); err != nil {
		t.Fatal(err)
	}
	j.Must("build")
	server := func(name, edits string, files ...string) {
		text := strings.NewReplacer("NAME", name, "PROGRAM", serve).Replace(`name: NAME
program: PROGRAM
arguments: ["-model={folder}/m/model.onnx", "-name=digits", "-http=127.0.0.1:{http}", "-grpc=127.0.0.1:{grpc}"]
engine: m
model: digits
protocol: oip-rest
ready: 60s
`)
		for edit := range strings.SplitSeq(edits, ";") {
			if was, is, ok := strings.Cut(edit, "=>"); ok {
				text = strings.ReplaceAll(text, was, is)
			}
		}
		dir := filepath.Join(root, "toolchains", "servers")
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(j.Dir, "digits.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(code int, args ...string) string {
		cmd := j.Command(args...)
		out, _ := cmd.CombinedOutput() // the exit code tells
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("mlpromote %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
		}
		return string(out)
	}
	const one = "linux-amd64-v1/fp32"
	through := func(name string) []string { return []string{"verify", "--engine", one, "--through", name} }

	for name, edits := range map[string]string{"serve": "",
		"mapped": "oip-rest=>http\nversion: \"0.1.0\"\nhttp: {path: /predict, body: '{\"image\": \"{image}\"}', outputs: {logits: /logits}}"} {
		server(name, edits)
		if out := j.Must(through(name)...); !strings.Contains(out, "bytes of the engine: seen") {
			t.Errorf("%s: %s", name, out)
		}
	}

	// A copy of another engine, whose answers keep every limit.
	server("stale", "{folder}/m/=>{folder}/old/;engine: m=>engine: m\nfiles: stale", "stale/old/model.onnx")
	if out := ends(registry.ExitLimit, through("stale")...); !strings.Contains(out, "it answered although all bytes of the engine were zeros") {
		t.Error(out)
	}
	// A name that the server does not have, and a program that ends.
	server("unknown", "model: digits=>model: other;60s=>2s")
	if out := j.Refused(registry.ExitFailed, through("unknown")...); !strings.Contains(out, "the server unknown was not ready after 2s: status 404") {
		t.Error(out)
	}
	server("ends", "-name=digits=>-no-such-flag")
	if out := j.Refused(registry.ExitFailed, through("ends")...); !strings.Contains(out, "the server ends ended before it was ready, with exit status") || !strings.Contains(out, "no-such-flag") {
		t.Error(out)
	}
	// The file of the engine is there twice.
	server("twice", "engine: m=>engine: m\nfiles: twice", "twice/m/model.onnx")
	if out := j.Refused(registry.ExitInvalid, through("twice")...); !strings.Contains(out, "m/model.onnx is both in the folder of the server and a file of the engine") {
		t.Error(out)
	}
	if out := j.Refused(registry.ExitNotFound, through("no-such")...); !strings.Contains(out, `no manifest of a server "no-such"`) {
		t.Error(out)
	}

	// A server that no environment names has no effect; the one that the policy asks for has to pass, whatever failed before.
	j.Must("verify")
	j.Must("promote", "--dry-run")
	environments := filepath.Join(root, "data", "environments.yaml")
	rules := `registry: local
environments:
  staging:
  prod: {from: staging, served: {by: serve, version: ">=0.1"}}
trust:
  - {key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: ["oci://local/"]}
`
	if err := os.WriteFile(environments, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := j.Refused(registry.ExitPolicy, "promote"); !strings.Contains(out, "served of linux-amd64-v1/int8: no pass through serve >= 0.1") {
		t.Error(out)
	}
	j.Must("verify", "--through", "serve")
	j.Must("promote")
}

// A compiler of a user's has a server as its only runtime: its engines are checked, built, verified and promoted by it.
func TestThroughAsRuntime(t *testing.T) {
	t.Parallel()
	program, serve := programtest.Program(t), programtest.Server(t)
	root := t.TempDir()
	toolchains := filepath.Join(root, "toolchains")
	own := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+filepath.Join(root, "data"), "MLPROMOTE_TOOLCHAINS="+toolchains)
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/acc", "#!/bin/sh\n[ \"$1\" = --version ] && { echo acc 2.1; exit; }\n[ \"$(head -c 1 \"$1\" | od -An -tu1)\" -eq 8 ] || exit 1\ncp \"$1\" \"$2\"\n", 0o755)
	write("toolchains/acc.yaml", `name: acc
licence: of its maker
executable: `+filepath.Join(root, "bin", "acc")+`
version: {arguments: [--version], pattern: 'acc ([0-9.]+)'}
compile: {arguments: ["{model}", "{out}/model.onnx"]}
engine: {format: onnx, entry: model.onnx, outputs: [model.onnx]}
run: {through: serve, version: "2.1"}
`, 0o600)
	server := `name: serve
program: ` + serve + `
arguments: ["-model={folder}/m/model.onnx", "-name=m", "-http=127.0.0.1:{http}"]
engine: m
model: m
protocol: oip-rest
`
	write("toolchains/servers/serve.yaml", server, 0o600)
	j := programtest.NewJob(t, program, filepath.Join(root, "digits"), own...)
	spec := filepath.Join(j.Dir, "mlpromote.yaml")
	text, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	targets := "targets:\n  - {name: card, os: linux, cpu: {arch: amd64}, toolchain: acc, variants: [fp32]}\n"
	before, after, found := strings.Cut(string(text), "targets:\n")
	if !found {
		t.Fatalf("no targets in %s", text)
	}
	for strings.HasPrefix(after, " ") {
		_, after, _ = strings.Cut(after, "\n")
	}
	if err := os.WriteFile(spec, []byte(before+targets+after), 0o600); err != nil {
		t.Fatal(err)
	}
	j.Must("toolchain", "check", filepath.Join(toolchains, "acc.yaml"))
	j.Must("build")
	if out := j.Must("verify"); !strings.Contains(out, "through serve 0.1.0, oip-rest, bytes of the engine: seen") {
		t.Error(out)
	}
	j.Must("promote")
	if out := j.Must("inspect", "--output", "json"); !strings.Contains(out, `"name": "acc"`) || !strings.Contains(out, `"bytesSeen": true`) {
		t.Error(out)
	}
}
