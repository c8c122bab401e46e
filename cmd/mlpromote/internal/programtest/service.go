package programtest

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
	"slices"
	"strings"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Service is a data directory with the service that has it. The fields but URL are set
// before it is started.
type Service struct {
	Program string
	Dir     string   // data directory of the service
	Client  string   // data directory of its clients: keys, no content
	Env     []string // of the service, beside that of this process
	Flags   []string // of serve, besides those for where

	URL string // without a path; set by Start

	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// NewService is a service that is not started, over folders that do not exist yet, in root.
func NewService(tb testing.TB, program, root string, env ...string) *Service {
	tb.Helper()
	return &Service{
		Program: program, Dir: filepath.Join(root, "served"), Client: filepath.Join(root, "client"),
		Env: append(Environment(root, Cache(tb)), env...),
	}
}

// Start runs the service and waits until it says where it is. It ends with the process of the
// tests at the latest.
func (s *Service) Start() error {
	ctx := context.Background() // it is stopped by name
	s.cmd = exec.CommandContext(ctx, s.Program, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", s.Dir}, s.Flags...)...)
	s.cmd.Env = append(os.Environ(), s.Env...)
	s.stderr.Reset()
	s.cmd.Stderr = &s.stderr
	registrytest.EndWithTests(s.cmd)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("serve printed no URL: %w", err), s.cmd.Wait(), errors.New(s.stderr.String()))
	}
	s.URL = strings.TrimSpace(line)
	go func() { _, _ = io.Copy(io.Discard, out) }() // it says nothing more
	return nil
}

// MustStart starts the service, which is killed at the end of the test.
func (s *Service) MustStart(tb testing.TB) {
	tb.Helper()
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
}

// MustStartAndStop starts the service, which is asked to stop at the end of the test, and
// must do so well.
func (s *Service) MustStartAndStop(tb testing.TB) {
	tb.Helper()
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

// Host is HOST:PORT of the service.
func (s *Service) Host() string { return s.URL[strings.Index(s.URL, "//")+2:] }

// Process is that of the service.
func (s *Service) Process() *os.Process { return s.cmd.Process }

// Said is what the service wrote to stderr since its last start; it has ended.
func (s *Service) Said() string { return s.stderr.String() }

// ShareKeys gives clients copies of the keys of the service, which has been started.
func (s *Service) ShareKeys() error {
	return CopyTree(filepath.Join(s.Dir, "keys"), filepath.Join(s.Client, "keys"))
}

// ClientEnv is Env with what makes the program a client of the service.
func (s *Service) ClientEnv() []string {
	return append(slices.Clone(s.Env), "MLPROMOTE_REGISTRY="+s.URL, "MLPROMOTE_DATA="+s.Client)
}

// Stop asks the service to stop, which it must do well.
func (s *Service) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.Wait()
}

// Wait waits for the end of the service, which must be good.
func (s *Service) Wait() error {
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("serve ended with %w\n%s", err, s.stderr.String())
	}
	return nil
}

// ExitCode is that of a service that has ended.
func (s *Service) ExitCode() int { return s.cmd.ProcessState.ExitCode() }

// Kill ends the service at once. It may be gone.
func (s *Service) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Serve starts a service over an empty directory with settings, those of its serve.yaml. It
// is killed at the end of the test.
func Serve(tb testing.TB, program, settings string) *Service {
	tb.Helper()
	s := NewService(tb, program, tb.TempDir())
	if err := errors.Join(os.Mkdir(s.Dir, 0o755), os.WriteFile(filepath.Join(s.Dir, "serve.yaml"), []byte(settings), 0o600)); err != nil {
		tb.Fatal(err)
	}
	s.MustStart(tb)
	return s
}
