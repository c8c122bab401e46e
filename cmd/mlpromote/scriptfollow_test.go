//go:build cgo

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// following is a verb that goes on.
type following struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	limit *time.Timer // ends it, so that a line that never comes is the end of output
}

type followingKey struct{}

func cmdFollow(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 100)
	cmd := exec.Command("mlpromote", args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), programtest.Environment(ts.Getenv("WORK"), ts.Getenv("MLPROMOTE_CACHE"))...)
	for _, name := range []string{"MLPROMOTE_DATA", "MLPROMOTE_REGISTRY", "MLPROMOTE_TOKEN"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	f := &following{cmd, bufio.NewReader(out), time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })}
	ts.Defer(func() {
		f.limit.Stop()
		_ = cmd.Process.Kill() // it ended, or the script failed
	})
	*follows(ts) = f
}

// follows is where a script keeps what it follows.
func follows(ts *testscript.TestScript) **following { return ts.Value(followingKey{}).(**following) }

func cmdFollowed(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	line, err := (*follows(ts)).lines.ReadString('\n')
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(line), 0o600))
}

func cmdUnfollow(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	f := *follows(ts)
	ts.Check(f.cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(f.lines)
	ts.Check(err)
	var ended *exec.ExitError
	if err := f.cmd.Wait(); err != nil && !errors.As(err, &ended) {
		ts.Check(err)
	}
	if got := f.cmd.ProcessState.ExitCode(); got != code || len(rest) > 0 {
		ts.Fatalf("exit code %d, want %d; the rest of what it printed: %q", got, code, rest)
	}
}
