package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// stopTime is for a server to end by itself.
const stopTime = 10 * time.Second

// server is one that runs, and how it is asked.
type server struct {
	client
	at      addresses
	process *exec.Cmd     // nil: one that was there before
	ended   chan struct{} // closed after it has ended
	folder  folder
	log     tail
}

// tail passes a log on and keeps its end.
type tail struct {
	to   io.Writer
	lock sync.Mutex
	end  []byte
}

// tailBytes is how much of a log a message repeats.
const tailBytes = 600

func (t *tail) Write(p []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(len(t.end)-tailBytes, 0):]
	return t.to.Write(p)
}

// said is the end of what the server printed, for a message; empty for nothing.
func (s *server) said() string {
	s.log.lock.Lock()
	defer s.log.lock.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(s.log.end), "?")), " ")
	if text == "" {
		return ""
	}
	return "; it printed: " + text
}

// notReady says that a server did not get ready. It need not be the engine's fault.
type notReady struct{ why string }

func (e *notReady) Error() string { return e.why }

// start starts the server of a config on a folder, and waits until it is ready. Without a command, the server is at the URL. Its output goes to
// log. Errors: *notReady.
func start(ctx context.Context, c Config, at folder, log io.Writer) (*server, error) {
	if len(c.Command) == 0 {
		s := &server{at: addresses{http: c.URL, grpc: strings.TrimPrefix(c.URL, "grpc://")}, ended: make(chan struct{})}
		var err error
		if s.client, err = dial(c, s.at); err != nil {
			return nil, err
		}
		return s, s.wait(ctx, c)
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	s := &server{at: addresses{http: "http://127.0.0.1:" + ports[0], grpc: "127.0.0.1:" + ports[1]}, folder: at, ended: make(chan struct{})}
	if s.client, err = dial(c, s.at); err != nil {
		return nil, err
	}
	replacer := strings.NewReplacer("{folder}", at.path, "{http}", ports[0], "{grpc}", ports[1], "{model}", c.Model)
	arguments := make([]string, len(c.Command)-1)
	for i, a := range c.Command[1:] {
		arguments[i] = replacer.Replace(a)
	}
	s.process = exec.CommandContext(ctx, c.Command[0], arguments...)
	s.process.Dir, s.process.Env = at.path, os.Environ()
	for name, value := range c.Environment {
		s.process.Env = append(s.process.Env, name+"="+replacer.Replace(value))
	}
	s.log.to = log
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.process.Cancel = func() error { return syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) }
	s.process.WaitDelay = time.Second // children may hold the pipe of the log
	if err := s.process.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &notReady{fmt.Sprintf("start %s: %v", filepath.Base(c.Command[0]), err)}
	}
	go func() {
		_ = s.process.Wait() // wait tells how it ended
		close(s.ended)
	}()
	if err := s.wait(ctx, c); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// wait returns nil once the server is ready. Errors: *notReady after the time that it has, or if it ended.
func (s *server) wait(ctx context.Context, c Config) error {
	limit, cancel := context.WithTimeout(ctx, c.ready())
	defer cancel()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	var last error
	for {
		err := s.ready(limit)
		if err == nil {
			return nil
		}
		if last == nil || limit.Err() == nil { // the end of the time is no answer
			last = err
		}
		select {
		case <-s.ended:
			return &notReady{fmt.Sprintf("the server %s ended before it was ready, with %s%s", c.Name, s.process.ProcessState, s.said())}
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &notReady{fmt.Sprintf("the server %s was not ready after %v: %v%s; ready in its manifest gives it longer", c.Name, c.ready(), last, s.said())}
		case <-tick.C:
		}
	}
}

// stop ends the server and all that it started.
func (s *server) stop() {
	s.hangUp()
	if s.process == nil {
		return
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopTime):
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) // what is left of its group
	<-s.ended
}

// close stops a server and removes its folder. Errors: a file that is not as it was exported, so that the answers are not known to be the
// engine's.
func (s *server) close() error {
	if s == nil || s.process == nil {
		return nil
	}
	s.stop()
	file, err := s.folder.changed()
	if err == nil && file != "" {
		err = driverproc.Errorf(driverproc.ToolFailed, "the server changed %s in its folder, so its answers are not known to be the engine's", file)
	}
	return errors.Join(err, os.RemoveAll(s.folder.path))
}

// deathTime is how long a server may take to end whose connections broke.
const deathTime = 500 * time.Millisecond

// death returns how the server ended, with the end of its log; nil if it goes on.
func (s *server) death() error {
	select {
	case <-s.ended:
		return driverproc.Errorf(driverproc.ToolFailed, "the server ended, with %s%s", s.process.ProcessState, s.said())
	case <-time.After(deathTime):
		return nil
	}
}

// freePorts returns ports of this machine that no program listens on. The network is this process's own, so none is taken meanwhile.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // nothing was sent
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// asNotReady returns an error of start for a response: what is missing is the server, not the engine, unless it has no other runtime.
func asNotReady(err error, c Config) error {
	code := driverproc.Unavailable
	if c.Runtime {
		code = driverproc.BadInput
	}
	if missing := new(notReady); errors.As(err, &missing) {
		return driverproc.Errorf(code, "%s", missing.why)
	}
	return err
}

// isUnavailable reports whether an error says nothing against an engine.
func isUnavailable(err error) bool {
	failed := new(driverproc.Error)
	return errors.As(err, &failed) && failed.Code == driverproc.Unavailable
}

// open exports the folder of an engine and starts the server on it.
func open(ctx context.Context, r driverproc.Request, c Config, entry string, blank bool, log io.Writer) (*server, error) {
	var at folder
	if len(c.Command) > 0 {
		path, err := os.MkdirTemp("", "served-")
		if err != nil {
			return nil, err
		}
		if at, err = export(c, r.Inputs, entry, path, blank); err != nil {
			return nil, err
		}
	}
	s, err := start(ctx, c, at, log)
	if err != nil {
		return nil, asNotReady(err, c)
	}
	return s, nil
}
