//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScriptsServed runs scripts once more, against a service that has the data
// directory to itself. The client has keys and the default trust in a folder of its own.
//
// Left out are scripts in which no registry is asked (usage, toolchain, the refusals of
// files), those that change environments.yaml, keys or the history under the program
// (key, folder, history), what a service has no need of (reindex), those of other
// registries (external_*), and those that serve by themselves (serve_*, refuse_wrong_role).
func TestScriptsServed(t *testing.T) {
	t.Parallel()
	p := scripts(t, func(env *testscript.Env, program string) error {
		s := &served{program: program, dir: filepath.Join(env.WorkDir, "served"), client: filepath.Join(env.WorkDir, "client"), env: env.Vars}
		if err := s.start(); err != nil {
			return err
		}
		env.Defer(func() {
			if err := s.stop(); err != nil {
				env.T().Fatal(err)
			}
		})
		if err := copyTree(filepath.Join(s.dir, "keys"), filepath.Join(s.client, "keys")); err != nil {
			return err
		}
		env.Values[servedKey{}] = s
		s.announce(env.Setenv)
		return nil
	})
	for _, name := range []string{
		"main_job", "init", "rebuild", "pull", "rollback", "tamper", "text", "node_type", "version_taken", "refuse_broken_calibration", "refuse_wrong_node",
		"refuse_bent_index", "refuse_junk", "refuse_missing_evidence", "refuse_other_hardware",
	} {
		p.Files = append(p.Files, filepath.Join("testdata", "script", name+".txtar"))
	}
	testscript.Run(t, p)
}

// servedKey is the key of a script's *served.
type servedKey struct{}

// served is a data directory with the service that has it.
type served struct {
	program string
	dir     string   // of the service
	client  string   // data directory of the client: keys, no content
	env     []string // of the service
	flags   []string // of serve, besides those for where

	url    string
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// start runs the service and waits until it says where it is.
func (s *served) start() error {
	ctx := context.Background() // it is stopped by name
	s.cmd = exec.CommandContext(ctx, s.program, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", s.dir}, s.flags...)...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.stderr.Reset()
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("serve says no URL: %w", err), s.cmd.Wait(), errors.New(s.stderr.String()))
	}
	s.url = strings.TrimSpace(line)
	go func() { _, _ = io.Copy(io.Discard, out) }() // it says nothing more
	return nil
}

// host is HOST:PORT of the service.
func (s *served) host() string { return s.url[strings.Index(s.url, "//")+2:] }

// announce tells a script where the service is, and where things are.
func (s *served) announce(set func(key, value string)) {
	set("MLPROMOTE_REGISTRY", s.url)
	set("MLPROMOTE_DATA", s.client)
	set("HOST", s.host()+"/")
	set("DATA", s.client)
	set("STORE", s.dir)
}

// stop asks the service to stop, which it must do well.
func (s *served) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("serve ended with %w\n%s", err, s.stderr.String())
	}
	return nil
}

// kill ends the service at once.
func (s *served) kill() {
	_ = s.cmd.Process.Kill() // it may be gone
	_ = s.cmd.Wait()
}

// take serves what is in a data directory, which is moved. What the program remembers of
// its last build stays.
func (s *served) take(data string) error {
	if err := s.stop(); err != nil {
		return err
	}
	last, err := os.ReadFile(filepath.Join(data, lastBuildFile))
	if err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(s.dir), os.RemoveAll(s.client), os.Rename(data, s.dir),
		os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, lastBuildFile), last, 0o600),
		os.CopyFS(filepath.Join(s.client, "keys"), os.DirFS(filepath.Join(s.dir, "keys"))))
	if err != nil {
		return err
	}
	return s.start()
}

// services are those that a script has started, by data directory.
type services map[string]*served

// cmdServe serves a data directory: serve VAR DIR.
func (j *jobs) cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 10)
	s := &served{program: j.program, dir: ts.MkAbs(args[1]), env: environment(ts.Getenv("WORK"), j.cache), flags: args[2:]}
	ts.Check(s.start())
	ts.Defer(func() { _ = s.cmd.Process.Kill() }) // where the script did not stop it
	ts.Setenv(args[0], s.url)
	ts.Setenv(args[0]+"_HOST", s.host())
	ts.Value(servicesKey{}).(services)[s.dir] = s
}

// servicesKey is the key of a script's services.
type servicesKey struct{}

// cmdStopService asks the service of a data directory to stop: stop-service DIR.
func cmdStopService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(serviceOf(ts, args[0]).stop())
}

// cmdKillService gives the service of a data directory no time: kill-service DIR.
func cmdKillService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	serviceOf(ts, args[0]).kill()
}

func serviceOf(ts *testscript.TestScript, dir string) *served {
	s, ok := ts.Value(servicesKey{}).(services)[ts.MkAbs(dir)]
	if !ok {
		ts.Fatalf("%s is not served", dir)
	}
	return s
}
