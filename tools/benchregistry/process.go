package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a process that answers on loopback.
type server struct {
	name   string
	url    string // http://HOST:PORT
	token  string // to show; empty: none
	client *http.Client
	dir    string // all that it writes
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ended  chan struct{}
	stderr bytes.Buffer // read it after ended
}

const startTimeout = 20 * time.Second

// start runs a program and waits until it answers. Without a url, it is the first line
// of the program's stdout.
func start(ctx context.Context, s *server, environment []string, program string, args ...string) error {
	ctx, s.cancel = context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, program, args...)
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.Stderr = &s.stderr
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = startTimeout
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	first := make(chan string, 1)
	go func() {
		defer close(s.ended)
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n') // none: it has ended, or says nothing
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r)
		_ = s.cmd.Wait() // that it was told to end is no news
	}()
	if s.url == "" {
		select {
		case s.url = <-first:
		case <-time.After(startTimeout):
		}
	}
	if err := s.answers(ctx); err != nil {
		s.stop()
		return fmt.Errorf("start %s: %w\n%s", s.name, err, s.stderr.String())
	}
	return nil
}

// answers waits until the server answers anything.
func (s *server) answers(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v2/", nil)
		if err != nil {
			return err
		}
		response, err := s.client.Do(request)
		if err == nil {
			return errors.Join(response.Body.Close())
		}
		select {
		case <-s.ended:
			return errors.New("it has ended")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// stop ends the process and removes what it wrote.
func (s *server) stop() {
	s.cancel()
	<-s.ended
	s.client.CloseIdleConnections()
	os.RemoveAll(s.dir)
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// cpu is the processor time that the process has taken, and its children, which do the work of nginx.
func (s *server) cpu() (time.Duration, error) {
	pid := s.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	var all time.Duration
	for _, process := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		taken, err := cpuOf(process)
		if err != nil {
			return 0, err
		}
		all += taken
	}
	return all, nil
}

func cpuOf(pid string) (time.Duration, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may hold spaces. After it, utime and
	// stime are fields 12 and 13, in hundredths of a second.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var ticks int64
	for _, i := range []int{11, 12} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// resetPeak makes the memory that the process holds now its peak, and gives it.
func (s *server) resetPeak() (int64, error) {
	if err := os.WriteFile(s.procPath("clear_refs"), []byte("5"), 0); err != nil {
		return 0, err
	}
	return s.peakRSS()
}

// peakRSS is the most memory that the process has held, in bytes.
func (s *server) peakRSS() (int64, error) {
	kib, err := s.field("status", "VmHWM:")
	return kib << 10, err
}

// written is how many bytes the process has caused to be sent to a disk.
func (s *server) written() (int64, error) { return s.field("io", "write_bytes:") }

// field is the number behind a name in a file of /proc.
func (s *server) field(file, name string) (int64, error) {
	raw, err := s.proc(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(raw) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", s.cmd.Process.Pid, file, name)
}

func (s *server) proc(file string) (string, error) {
	raw, err := os.ReadFile(s.procPath(file))
	return string(raw), err
}

func (s *server) procPath(file string) string {
	return filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), file)
}
