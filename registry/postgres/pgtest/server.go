package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Server is a running PostgreSQL server, in a temporary folder, with one superuser.
type Server struct {
	Password string // of the superuser, over TCP

	programs   string // folder of initdb, pg_ctl and postgres
	dir        string // Unix socket, data and log
	port       int
	settings   []string
	credential *syscall.Credential
	guard      *exec.Cmd
	alive      io.Closer // closing it makes the guard delete everything
}

// guardScript waits until its standard input is closed, which also happens if the test is
// killed. Then it stops the server and deletes the folder. A server that ended removed its file, also if nothing reaps it.
const guardScript = `cat
if pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null); then
	kill -QUIT "$pid"
	while kill -0 "$pid" && [ -e "$0/data/postmaster.pid" ]; do sleep 0.05; done
fi
rm -rf "$0"`

// inMemory is a folder in memory on Linux, and enough the free bytes that it needs. A database
// takes some 8 MB and hundreds of files; creating one on a disk takes eight times as long.
const (
	inMemory = "/dev/shm"
	enough   = 4 << 30
)

// scratch returns a folder for temporary data; empty: the default one.
func scratch() string {
	var fs syscall.Statfs_t
	if err := unix.Access(inMemory, unix.W_OK); err != nil {
		return ""
	}
	if err := syscall.Statfs(inMemory, &fs); err != nil ||
		int64(fs.Bavail)*int64(fs.Bsize) < enough { //nolint:unconvert // the types differ between systems
		return ""
	}
	return inMemory
}

// newServer creates a server in a new folder of parent and starts it. Errors: *missingError.
func newServer(parent string, settings ...string) (s *Server, err error) {
	s = &Server{settings: settings, Password: password()}
	if s.programs, err = findPrograms(); err != nil {
		return nil, err
	}
	if s.credential, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(parent, "mlpromote-postgres-"); err != nil {
		return nil, err
	}
	if err := s.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.create(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// watch starts the guard, in a process group that Ctrl-C does not interrupt.
func (s *Server) watch() error {
	s.guard = exec.CommandContext(context.Background(), "sh", "-c", guardScript, s.dir) // it ends with this process
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := s.guard.StdinPipe()
	if err != nil {
		return err
	}
	s.alive = alive
	return s.guard.Start()
}

// remove stops the server and deletes its folder.
func (s *Server) remove() {
	_ = s.alive.Close()
	_ = s.guard.Wait()
}

func (s *Server) create() error {
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(s.Password), 0o600); err != nil {
		return err
	}
	if s.credential != nil {
		for _, path := range []string{s.dir, secret} {
			if err := os.Chown(path, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
				return err
			}
		}
	}
	err := s.run("initdb", "--pgdata", s.data(), "--no-sync", "--username", superuser, "--pwfile", secret,
		"--auth-local", "trust", "--auth-host", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", "en-US")
	if err != nil {
		return err
	}
	// Another process may take the port between our look and the server's start.
	for range 3 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.start(); err == nil {
			return nil
		}
	}
	return err
}

// Dir returns the folder of the server.
func (s *Server) Dir() string { return s.dir }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Address returns HOST:PORT.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Start starts a stopped server on the same port and waits until it accepts connections.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) start() error {
	options := fmt.Sprintf("-k %s -p %d -c listen_addresses=127.0.0.1 -c max_connections=200", s.dir, s.port)
	for _, setting := range s.settings {
		options += " -c " + setting
	}
	err := s.run("pg_ctl", "start", "--wait", "--pgdata", s.data(), "--log", filepath.Join(s.dir, "log"), "--options",
		options)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("%w\n%s", err, log)
	}
	return nil
}

// Stop stops the server and waits for its end. The mode "fast" disconnects its clients; the
// mode "immediate" is like a crash.
func (s *Server) Stop(t testing.TB, mode string) {
	t.Helper()
	if err := s.run("pg_ctl", "stop", "--wait", "--pgdata", s.data(), "--mode", mode); err != nil {
		t.Fatal(err)
	}
}

// run runs a program of PostgreSQL's.
func (s *Server) run(program string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.programs, program), args...) // they end by themselves
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// unprivileged returns the user that the server runs as. It is the current one except for root,
// which PostgreSQL refuses.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, errors.New("PostgreSQL does not run as root, and this machine has no user postgres or nobody to run it as")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is over at once
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
