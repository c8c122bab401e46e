package s3_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// shared is the server of the tests that do not stop theirs; nil if there is none.
var shared *registrytest.S3Server

func TestMain(m *testing.M) {
	minio.DefaultRetryUnit = time.Millisecond // a store that does not answer is no reason to wait here
	code, err := registrytest.WithS3Server(func(s *registrytest.S3Server) int {
		shared = s
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newPrefix is where one test keeps its things, on the shared server.
func newPrefix(t testing.TB) string {
	t.Helper()
	if shared == nil {
		t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
	}
	return strings.ToLower(rand.Text()) + "/registry"
}

func open(t testing.TB, server *registrytest.S3Server, prefix string) *s3.Bucket {
	t.Helper()
	config, err := s3.ParseURL(server.URL(prefix))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	registrytest.TestBlobs(t, func(t *testing.T) (storage.RepairableBlobs, registrytest.Damage) {
		prefix := newPrefix(t)
		return open(t, shared, prefix), registrytest.DamageFile(shared.Folder(prefix))
	})
}

func TestRemover(t *testing.T) {
	t.Parallel()
	registrytest.TestRemover(t, func(t *testing.T) registrytest.RemovableBlobs { return open(t, shared, newPrefix(t)) })
}

func TestUploads(t *testing.T) {
	t.Parallel()
	registrytest.TestUploads(t, func(t *testing.T) (storage.Uploads, storage.Blobs, registrytest.Damage) {
		prefix := newPrefix(t)
		b := open(t, shared, prefix)
		return s3.NewUploads(b, mem.New()), b, registrytest.DamageFile(shared.Folder(prefix))
	})
}

// Clients of their own over one bucket and one database are what processes have.
func TestReplicas(t *testing.T) {
	t.Parallel()
	registrytest.TestReplicas(t, func(t *testing.T) (replicas [2]registrytest.Replica) {
		path, prefix := filepath.Join(t.TempDir(), "registry.db"), newPrefix(t)
		for i := range replicas {
			db, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			b := open(t, shared, prefix)
			replicas[i] = registrytest.Replica{Uploads: s3.NewUploads(b, db), Blobs: b}
		}
		return replicas
	})
}
