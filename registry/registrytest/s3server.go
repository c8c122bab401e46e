package registrytest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// S3Server is an object store on this machine: the program that MLPROMOTE_S3SERVER names,
// a versitygw, over a folder.
type S3Server struct {
	Endpoint string // URL

	program string
	folder  string
	address string
	process *exec.Cmd
}

// The bucket that there is, and who may use it.
const (
	s3Bucket    = "mlpromote-test"
	s3AccessKey = "AKIATESTTESTTESTTEST"
	s3SecretKey = "a-secret-that-no-log-may-have"

	s3StartTimeout = time.Minute
)

// StartS3Server starts an object store for one test, which is skipped where
// MLPROMOTE_S3SERVER names none. Its credentials, which all have, are in the environment
// from then on.
func StartS3Server(t testing.TB) *S3Server {
	t.Helper()
	server := newS3Server(t.TempDir())
	if server == nil {
		t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// WithS3Server runs the tests of a package while an object store runs that they share.
// It is nil where MLPROMOTE_S3SERVER names none.
func WithS3Server(run func(*S3Server) int) (code int, err error) {
	folder, err := os.MkdirTemp("", "s3-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	server := newS3Server(folder)
	if server == nil {
		return run(nil), nil
	}
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer server.Stop()
	return run(server), nil
}

// newS3Server is an object store over a folder, which is not started yet.
func newS3Server(folder string) *S3Server {
	program := os.Getenv("MLPROMOTE_S3SERVER")
	if program == "" {
		return nil
	}
	return &S3Server{program: program, folder: folder}
}

// Start starts the server, at the same address after a stop.
func (s *S3Server) Start() error {
	for _, variable := range s.Env() {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, folder := range []string{filepath.Join("data", s3Bucket), "metadata"} {
		if err := os.MkdirAll(filepath.Join(s.folder, folder), 0o755); err != nil {
			return err
		}
	}
	if s.address == "" {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.address = listener.Addr().String()
		s.Endpoint = "http://" + s.address
		if err := listener.Close(); err != nil {
			return err
		}
	}
	s.process = exec.CommandContext(context.Background(), s.program, "--port", s.address, "--quiet", "--keep-alive",
		"posix", "--sidecar", filepath.Join(s.folder, "metadata"), filepath.Join(s.folder, "data"))
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s3AccessKey, "ROOT_SECRET_KEY="+s3SecretKey)
	s.process.Stderr = os.Stderr
	EndWithTests(s.process)
	if err := s.process.Start(); err != nil {
		return err
	}
	return s.answers()
}

// answers waits until the server takes connections.
func (s *S3Server) answers() error {
	deadline := time.Now().Add(s3StartTimeout)
	for {
		connection, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.address)
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			s.Stop()
			return fmt.Errorf("%s does not listen on %s after %v: %w", s.program, s.address, s3StartTimeout, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Stop ends the server as a power failure does. Its folder stays.
func (s *S3Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// URL is the storage of a prefix.
func (s *S3Server) URL(prefix string) string {
	return "s3://" + s3Bucket + "/" + prefix + "?endpoint=" + s.Endpoint
}

// Folder is where the objects of a prefix are files.
func (s *S3Server) Folder(prefix string) string {
	return filepath.Join(s.folder, "data", s3Bucket, filepath.FromSlash(prefix))
}

// Env is the credentials, for the environment of who uses the server.
func (s *S3Server) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s3AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3SecretKey}
}
