//go:build cgo && linux

package endtoend

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// smallDisk makes a folder that is a disk of 8 MiB, or skips the test.
func smallDisk(t *testing.T, disk string) {
	t.Helper()
	sizedDisk(t, disk, "8m")
}

// sizedDisk makes a folder that is a disk of some size, or skips the test.
func sizedDisk(t *testing.T, disk, size string) {
	t.Helper()
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small file system can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestFullDisk fills the disk under a service. What cannot be written is refused with a
// sentence, what is there stays and is read, and with room again the job goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "served")
	smallDisk(t, disk)
	server := programtest.NewService(t, programtest.Program(t), root) // served is the disk
	server.MustStartAndStop(t)
	if err := server.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	c := programtest.NewJob(t, server.Program, filepath.Join(root, "digits"), server.ClientEnv()...)
	c.Release()
	staged, proven := c.Head("staging"), c.Head("prod")

	filler := fill(t, disk)
	refuses := func(verb string) {
		t.Helper()
		if said := c.Refused(1, verb); !regexp.MustCompile(`mlpromote: error: .*(disk( of the registry)? is full|no space is left)`).MatchString(said) {
			t.Errorf("%s on a full disk says %s", verb, said)
		}
	}
	refuses("verify") // by REST
	c.Bump()
	refuses("build") // by the OCI endpoint
	wantFull(t, server.URL)
	c.Must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(root, "pulled"))
	if c.Head("staging") != staged || c.Head("prod") != proven {
		t.Errorf("a head moved: staging %s, prod %s", c.Head("staging"), c.Head("prod"))
	}
	c.Check("a full disk")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.Promote()
	c.Check("room again")
	if c.Head("prod") == proven {
		t.Error("the job did not go on")
	}
}

// TestDiskReserve fills the disk of a service with uploads. What speaks against a release, a
// rollback and the history still have room.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "served")
	sizedDisk(t, disk, "32m")
	server := programtest.NewService(t, programtest.Program(t), root)
	server.Flags = []string{"--disk-reserve", "8388608"}
	server.MustStartAndStop(t)
	if err := server.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	c := programtest.NewJob(t, server.Program, filepath.Join(root, "digits"), server.ClientEnv()...)
	c.Release()
	proven := c.Head("prod")
	c.Release()
	bad := c.Head("prod")

	large := bytes.NewReader(bytes.Repeat([]byte("x"), 64<<20)) // more than the disk has
	if answer, err := http.Post(server.URL+"/v2/staging/copied/blobs/uploads/?digest="+digest.FromString("").String(), "application/octet-stream", large); err == nil {
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusInsufficientStorage {
			t.Errorf("an upload larger than the disk: status %d, %v; want %d", answer.StatusCode, err, http.StatusInsufficientStorage)
		}
	} // otherwise the service closed the connection, and the client was still sending
	wantFull(t, server.URL)
	if got := pushTo(t, server, "small"); got != http.StatusInsufficientStorage {
		t.Errorf("a small upload got %d, want %d", got, http.StatusInsufficientStorage)
	}
	var state unix.Statfs_t
	if err := unix.Statfs(disk, &state); err != nil {
		t.Fatal(err)
	}
	if free := int64(state.Bavail) * state.Bsize; free < 7<<20 {
		t.Errorf("uploads left %d bytes, want the reserve of 8 MiB or nearly", free)
	}
	if got := send(t, http.MethodGet, server.URL+"/readyz", nil); got != http.StatusOK {
		t.Errorf("readiness is %d, want %d: something needs repair", got, http.StatusOK)
	}

	c.Must("quarantine", "prod/vision/digits@"+bad, "--reason", "wrong labels")
	c.Must("rollback", "vision/digits", "--env", "prod", "--reason", "wrong labels")
	if got := c.Head("prod"); got != proven {
		t.Errorf("after the rollback the head is %s, want %s", got, proven)
	}
	c.Must("history", "verify")
	c.Check("a disk that is full up to its reserve")
}

// wantFull pushes a blob as any client would.
func wantFull(t *testing.T, url string) {
	t.Helper()
	content := strings.Repeat("x", 1<<20)
	response, err := http.Post(url+"/v2/staging/vision/digits/blobs/uploads/?digest="+digest.FromString(content).String(), "application/octet-stream", strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusInsufficientStorage || !strings.Contains(string(body), `"DENIED","message":"the disk of the registry is full: nothing was stored`) {
		t.Errorf("push to a full disk: status %d, %s (%v)", response.StatusCode, body, err)
	}
}

// fill takes all the room that a file system has, and gives the file that has it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// On a full disk every verb on a data directory says so, also those that change nothing.
func TestFullDiskOfVerbs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	smallDisk(t, disk)
	c := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+disk)...)
	c.Release()
	filler := fill(t, disk)
	for _, verb := range [][]string{{"list"}, {"history", "verify"}, {"resolve", programtest.Model, "--env", "prod"}, {"verify"}, {"gc"}} {
		if said := c.Refused(1, verb...); !regexp.MustCompile(`mlpromote: error: .*(disk( of the registry)? is full|no space is left)`).MatchString(said) {
			t.Errorf("%s on a full disk says %s", verb, said)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.Check("room again")
}

// TestNoSpaceForBuild has less space than a build may take: it is refused before its first
// step, and nothing is left of it.
func TestNoSpaceForBuild(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	smallDisk(t, disk)
	if err := writeLargeModel(root, 16<<20); err != nil {
		t.Fatal(err)
	}
	spec := "model: large\nversion: 1.0.0\nsource: model.onnx\ncases: {generate: 1, seed: 1}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n"
	if err := os.WriteFile(filepath.Join(root, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(programtest.Environment(root, programtest.Cache(t)), "TMPDIR="+disk)
	c := &programtest.Job{T: t, Program: programtest.Program(t), Dir: root, Env: append(os.Environ(), env...)}
	said := c.Refused(1, "build")
	if !regexp.MustCompile(`error: the build may take \d+\.\d GiB, \d+\.\d GiB free in ` + regexp.QuoteMeta(disk) + `: nothing was begun`).MatchString(said) {
		t.Errorf("build without space says %s", said)
	}
	if strings.Contains(said, "run the reference") {
		t.Errorf("a step was begun:\n%s", said)
	}
}
