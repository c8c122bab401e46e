package toolchaintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// fakeName is args[0] of a driver that this test program implements.
const fakeName = "fake"

// Fake returns a driver with a given behavior: a name of [Faults] or [Escapes]; "well behaved", whose
// result is [Facts]; "record", which saves the request in the file request.json; "subject", whose error has the
// fields in the option subject; or "tool", which only supports probe. The test program must have [Main].
func Fake(behaviour string) driverproc.Program {
	return driverproc.Program{Name: fakeName, Path: "/proc/self/exe", Args: []string{fakeName, behaviour}}
}

func fake(behaviour string) int {
	if handle, ok := handlers[behaviour]; ok {
		return driverproc.Serve(context.Background(), os.Stdin, os.Stderr, handle)
	}
	if code, ok := strings.CutPrefix(behaviour, "error "); ok {
		return driverproc.Serve(context.Background(), os.Stdin, os.Stderr, func(context.Context, driverproc.Request) (any, error) {
			return nil, driverproc.Errorf(driverproc.ErrorCode(code), "it is the\nmodel's fault")
		})
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 2
	}
	if behaviour == "record" {
		return driverproc.Serve(context.Background(), bytes.NewReader(text),
			os.Stderr, func(_ context.Context, r driverproc.Request) (any, error) {
				return nil, os.WriteFile(filepath.Join(r.OutDir, "request.json"), text, 0o666)
			})
	}
	var r driverproc.Request
	if err := json.Unmarshal(text, &r); err != nil {
		return 2
	}
	return raw[behaviour](r)
}

// environ is the environment before any test changes it.
var environ = os.Environ()

// Facts are what the well-behaved driver saw.
type Facts struct {
	Inputs      map[string]string // role/name and type of file, to content
	Environment []string
	Entries     int // in its working directory
	Leader      bool
	Options     map[string]any
}

// handlers follow the protocol, but may misbehave in other ways.
var handlers = map[string]driverproc.Handler{
	"well behaved": wellBehaved,
	"tool": func(_ context.Context, r driverproc.Request) (any, error) {
		if r.Verb != toolchain.VerbProbe {
			return nil, driverproc.Errorf(driverproc.BadInput, "verb %s: this is a fake", r.Verb)
		}
		return toolchain.ProbeResult{Tool: map[string]string{"fake": "1"}}, nil
	},
	"subject": func(_ context.Context, r driverproc.Request) (any, error) {
		failed := driverproc.Errorf(driverproc.BadInput, "it is out of range")
		if err := json.Unmarshal([]byte(option(r, "subject")), &failed.Subject); err != nil {
			return nil, err
		}
		return nil, failed
	},
	"link": func(_ context.Context, r driverproc.Request) (any, error) {
		return nil, os.Symlink("/etc/hostname", filepath.Join(r.OutDir, "link"))
	},
	"overwrite": func(_ context.Context, r driverproc.Request) (any, error) {
		return nil, os.WriteFile(r.Inputs[0].Path, []byte("spoilt by the driver"), 0o666)
	},
	"remove input": func(_ context.Context, r driverproc.Request) (any, error) { return nil, os.Remove(r.Inputs[0].Path) },
	"write outside": func(_ context.Context, r driverproc.Request) (any, error) {
		return nil, os.WriteFile(filepath.Join(option(r, "folder"), "new"), nil, 0o666)
	},
	"read outside": func(_ context.Context, r driverproc.Request) (any, error) {
		return os.ReadFile(filepath.Join(option(r, "folder"), "secret"))
	},
	"connect": func(ctx context.Context, r driverproc.Request) (any, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", option(r, "address"))
		if err != nil {
			return nil, err
		}
		return nil, c.Close()
	},
	"signal": func(_ context.Context, r driverproc.Request) (any, error) {
		pid, err := strconv.Atoi(option(r, "process"))
		if err != nil {
			return nil, nil
		}
		return nil, syscall.Kill(pid, 0)
	},
	"orphan": func(_ context.Context, r driverproc.Request) (any, error) {
		cmd := exec.Command("/bin/sleep", option(r, "seconds"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return nil, cmd.Start()
	},
	"fork bomb": func(context.Context, driverproc.Request) (any, error) {
		for range 10_000 {
			if err := exec.Command("/bin/sleep", "1000").Start(); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
	"many files": func(context.Context, driverproc.Request) (any, error) {
		for range 100_000 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return nil, err
			}
			defer f.Close()
		}
		return nil, nil
	},
	"big file": func(_ context.Context, r driverproc.Request) (any, error) {
		return nil, os.WriteFile(filepath.Join(r.OutDir, "big"), make([]byte, 1<<20), 0o666)
	},
	"big memory": func(context.Context, driverproc.Request) (any, error) {
		big := make([]byte, 4<<30)
		return len(big), nil
	},
}

func option(r driverproc.Request, name string) string {
	text, _ := r.Options[name].(string)
	return text
}

func wellBehaved(_ context.Context, r driverproc.Request) (any, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(cwd)
	if err != nil {
		return nil, err
	}
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
	err = errors.Join(os.MkdirAll(filepath.Join(r.OutDir, "deep"), 0o777),
		os.WriteFile(filepath.Join(r.OutDir, "deep", "file"), []byte("made"), 0o666))
	return Facts{inputs, environ, len(entries), os.Getpid() == syscall.Getpgrp(), r.Options}, err
}

// sink keeps the compiler from removing a loop.
var sink atomic.Int64

// raw do not follow the protocol.
var raw = map[string]func(driverproc.Request) int{
	"hang": func(driverproc.Request) int {
		time.Sleep(time.Hour)
		return 0
	},
	"burn": func(driverproc.Request) int {
		for i := 0; ; i++ {
			sink.Store(int64(i))
		}
	},
	"segfault": func(driverproc.Request) int { // as a library does that Go called
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {} // the signal ends it
	},
	"crash": func(driverproc.Request) int {
		fmt.Fprint(os.Stderr,
			strings.Repeat("chatter\n", 100_000)+"\x1b[1;31mthe disk\x1b]0;title\x07 is on\x00 fire\x1b[m\r\n")
		return 3
	},
	"killed": func(driverproc.Request) int {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return 4
		}
		select {}
	},
	"silent":  func(driverproc.Request) int { return 0 },
	"garbage": func(r driverproc.Request) int { return respond(r, "<html>", 0) },
	"empty":   func(r driverproc.Request) int { return respond(r, "{}", 0) },
	"wrong id": func(r driverproc.Request) int {
		return respond(r, `{"protocol":"mlpromote.driver/v1","id":"7","ok":true}`, 0)
	},
	"liar": func(r driverproc.Request) int { return respond(r, answer(r, `"ok":true`), 1) },
	"no reason": func(r driverproc.Request) int {
		return respond(r, answer(r, `"ok":false`), 1)
	},
	"endless": func(r driverproc.Request) int {
		return respond(r, answer(r, `"ok":true,"result":"`+strings.Repeat("x", 65<<20)+`"`), 0)
	},
	"unlisted": func(r driverproc.Request) int { return leave(r, "surprise", `"ok":true`) },
	"missing": func(r driverproc.Request) int {
		return respond(r, answer(r, `"ok":true,"files":[{"path":"model.onnx","size":3,"sha256":"00"}]`), 0)
	},
	"miscounted": func(r driverproc.Request) int {
		return leave(r, "model.onnx", `"ok":true,"files":[{"path":"model.onnx","size":3,"sha256":"00"}]`)
	},
	"climbing": func(r driverproc.Request) int {
		return leave(r, "model.onnx", `"ok":true,"files":[{"path":"../out/model.onnx","size":3,"sha256":"00"}]`)
	},
	"pipe": func(r driverproc.Request) int {
		if err := syscall.Mkfifo(r.ResponsePath, 0o600); err != nil {
			return 4
		}
		return 0
	},
	"refusal with files": func(r driverproc.Request) int {
		if leave(r, "half", "") != 0 {
			return 4
		}
		return respond(r, answer(r, `"ok":false,"error":{"code":"bad_input","message":"it is the model's fault"}`), 1)
	},
}

func answer(r driverproc.Request, rest string) string {
	return `{"protocol":"` + driverproc.Protocol + `","id":"` + r.ID + `",` + rest + `}`
}

func respond(r driverproc.Request, text string, status int) int {
	if err := os.WriteFile(r.ResponsePath, []byte(text), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return status
}

// leave leaves a file and answers.
func leave(r driverproc.Request, name, rest string) int {
	if err := os.WriteFile(filepath.Join(r.OutDir, name), []byte("abc"), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return respond(r, answer(r, rest), 0)
}
