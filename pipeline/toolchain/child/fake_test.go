package child_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/child"
)

// TestMain makes this test program the drivers of its tests: args[0] is "fake",
// args[1] what it does.
func TestMain(m *testing.M) {
	if os.Args[0] == "fake" {
		syscall.Exit(fake(os.Args[1])) // without the second that the race detector takes to leave
	}
	os.Setenv("COSIGN_PASSWORD", secret)
	os.Exit(m.Run())
}

// secret is what no driver may see.
const secret = "open sesame"

func fake(behaviour string) int {
	if handle, ok := handlers[behaviour]; ok {
		return child.Serve(context.Background(), os.Stdin, os.Stderr, handle)
	}
	if code, ok := strings.CutPrefix(behaviour, "error "); ok {
		return child.Serve(context.Background(), os.Stdin, os.Stderr, func(context.Context, child.Request) (any, error) {
			return nil, child.Errorf(child.ErrorCode(code), "it is the model's fault")
		})
	}
	var r child.Request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return 2
	}
	return raw[behaviour](r)
}

// handlers follow the protocol; what some of them leave is another matter.
var handlers = map[string]child.Handler{
	"well behaved": func(_ context.Context, r child.Request) (any, error) {
		cwd, _ := os.Getwd()
		entries, _ := os.ReadDir(cwd)
		inputs := make(map[string]string)
		for _, in := range r.Inputs {
			info, err := os.Lstat(in.Path)
			if err != nil {
				return nil, err
			}
			text, err := os.ReadFile(in.Path)
			if err != nil {
				return nil, err
			}
			inputs[in.Role+"/"+in.Name+" "+info.Mode().Type().String()] = string(text)
		}
		err := os.MkdirAll(filepath.Join(r.OutDir, "deep"), 0o777)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.OutDir, "deep", "file"), []byte("made"), 0o666)
		}
		return facts{inputs, os.Environ(), len(entries), os.Getpid() == syscall.Getpgrp(), r.Options}, err
	},
	"link": func(_ context.Context, r child.Request) (any, error) {
		return nil, os.Symlink("/etc/hostname", filepath.Join(r.OutDir, "link"))
	},
	"overwrite": func(_ context.Context, r child.Request) (any, error) {
		return nil, os.WriteFile(r.Inputs[0].Path, []byte("spoilt by the driver"), 0o666)
	},
	"orphan": func(_ context.Context, r child.Request) (any, error) {
		cmd := exec.Command("/bin/sh", "-c", `exec 3>"$0"; echo ready >&3; exec sleep 3600`, r.Options["fifo"].(string))
		return nil, cmd.Start()
	},
	"big file": func(_ context.Context, r child.Request) (any, error) {
		return nil, os.WriteFile(filepath.Join(r.OutDir, "big"), make([]byte, 1<<20), 0o666)
	},
	"big memory": func(context.Context, child.Request) (any, error) {
		big := make([]byte, 4<<30)
		return len(big), nil
	},
}

// facts are what the well-behaved driver saw.
type facts struct {
	Inputs      map[string]string
	Environment []string
	Entries     int
	Leader      bool
	Options     map[string]any
}

// sink keeps a loop from being empty.
var sink atomic.Int64

// raw do not follow the protocol.
var raw = map[string]func(child.Request) int{
	"hang": func(child.Request) int { select {} },
	"burn": func(child.Request) int {
		for i := 0; ; i++ {
			sink.Store(int64(i))
		}
	},
	"crash": func(child.Request) int {
		os.Stderr.WriteString(strings.Repeat("chatter\n", 100_000) + "the disk is on fire\n")
		return 3
	},
	"killed": func(child.Request) int {
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	},
	"silent":  func(child.Request) int { return 0 },
	"garbage": func(r child.Request) int { return respond(r, "<html>", 0) },
	"empty":   func(r child.Request) int { return respond(r, "{}", 0) },
	"wrong id": func(r child.Request) int {
		return respond(r, `{"protocol":"mlpromote.driver/v1","id":"7","ok":true}`, 0)
	},
	"liar": func(r child.Request) int { return respond(r, answer(r, `"ok":true`), 1) },
	"no reason": func(r child.Request) int {
		return respond(r, answer(r, `"ok":false`), 1)
	},
	"unlisted": func(r child.Request) int {
		os.WriteFile(filepath.Join(r.OutDir, "surprise"), nil, 0o666)
		return respond(r, answer(r, `"ok":true`), 0)
	},
	"missing": func(r child.Request) int {
		return respond(r, answer(r, `"ok":true,"files":[{"path":"model.onnx","size":3,"sha256":"00"}]`), 0)
	},
	"miscounted": func(r child.Request) int {
		os.WriteFile(filepath.Join(r.OutDir, "model.onnx"), []byte("abc"), 0o666)
		return respond(r, answer(r, `"ok":true,"files":[{"path":"model.onnx","size":3,"sha256":"00"}]`), 0)
	},
	"pipe": func(r child.Request) int {
		syscall.Mkfifo(r.ResponsePath, 0o600)
		return 0
	},
}

func answer(r child.Request, rest string) string {
	return `{"protocol":"mlpromote.driver/v1","id":"` + r.ID + `",` + rest + `}`
}

func respond(r child.Request, text string, status int) int {
	os.WriteFile(r.ResponsePath, []byte(text), 0o600)
	return status
}
