package blob_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

const (
	crashSeed  = 7 // MLPROMOTE_CRASH_SEED replaces it
	kills      = 12
	soakKills  = 500
	crashBytes = 1 << 20
	crashPiece = 64 << 10

	// writerFolder and writerRound make this test's program the process that is killed.
	writerFolder = "MLPROMOTE_TEST_UPLOAD_FOLDER"
	writerRound  = "MLPROMOTE_TEST_UPLOAD_ROUND"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(writerFolder); folder != "" {
		if err := push(context.Background(), folder, crashContent(os.Getenv(writerRound)), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashContent is what is pushed in a round.
func crashContent(round string) string {
	return round + strings.Repeat("0123456789abcdef", crashBytes/16)[len(round):]
}

// push pushes content in pieces. It says the upload's name, then how far it is, and
// then that it is done, each after the fact.
func push(ctx context.Context, folder, content string, said io.Writer) error {
	db, err := sqlite.Open(ctx, filepath.Join(folder, "registry.db"))
	if err != nil {
		return err
	}
	uploads := blob.NewUploads(blob.NewDir(folder), db)
	id, err := uploads.Begin(ctx, owner)
	if err != nil {
		return err
	}
	fmt.Fprintln(said, id)
	for sent := 0; sent < len(content); sent += crashPiece {
		n, err := uploads.Append(ctx, owner, id, int64(sent), strings.NewReader(content[sent:sent+crashPiece]))
		if err != nil {
			return err
		}
		fmt.Fprintln(said, n)
	}
	if _, err := uploads.Finish(ctx, owner, id, digest.FromString(content)); err != nil {
		return err
	}
	fmt.Fprintln(said, "done")
	return db.Close()
}

// TestCrash ends a process with SIGKILL while it uploads, and goes on as another replica
// does: all that was acknowledged counts, nothing partial is ever a blob, and the
// content arrives.
func TestCrash(t *testing.T) {
	t.Parallel()
	seed, rounds := uint64(crashSeed), kills
	if text := os.Getenv("MLPROMOTE_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		rounds = soakKills
	}
	t.Logf("seed %d, %d kills", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 1))
	folder, resumed := t.TempDir(), 0
	db, dir := states(t, folder), blob.NewDir(folder)
	uploads := blob.NewUploads(dir, db)
	for n := range rounds {
		round := strconv.Itoa(n)
		said := killed(t, folder, round, random.IntN(crashBytes/crashPiece+2), time.Duration(random.Int64N(int64(2*time.Millisecond))))
		if goOn(t, uploads, dir, crashContent(round), said) {
			resumed++
		}
	}
	age(t, folder)
	db.Now = func() time.Time { return time.Now().Add(2 * blob.LeftoverAge) }
	if _, err := uploads.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "incoming")); err != nil || len(left) != 0 {
		t.Errorf("left are %v (%v), want nothing", left, err)
	}
	t.Logf("uploads that were resumed in the middle: %d", resumed)
	if resumed == 0 {
		t.Error("no upload was broken off in the middle: the test tests nothing")
	}
}

// killed runs a writer until it has said so many lines, and a moment longer. It gives
// what it said.
func killed(t *testing.T, folder, round string, lines int, delay time.Duration) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(self)
	writer.Env = append(os.Environ(), writerFolder+"="+folder, writerRound+"="+round)
	writer.Stderr = os.Stderr
	output, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		said = append(said, scanner.Text())
		if len(said) == lines+1 {
			time.AfterFunc(delay, func() { _ = writer.Process.Kill() })
		}
	}
	_ = writer.Wait() // it was killed
	return said
}

// goOn finishes what a killed writer left, and reports whether it was in the middle.
func goOn(t *testing.T, uploads *blob.Uploads, dir *blob.Dir, content string, said []string) bool {
	t.Helper()
	d := digest.FromString(content)
	id, acknowledged := said[0], 0
	if last := said[len(said)-1]; last == "done" {
		acknowledged = len(content) + 1
	} else if len(said) > 1 {
		var err error
		if acknowledged, err = strconv.Atoi(last); err != nil {
			t.Fatal(err)
		}
	}
	offset, err := uploads.Offset(t.Context(), owner, id)
	switch {
	case registry.HasCode(err, registry.CodeNotFound) && acknowledged >= len(content):
		// It was finishing, or had finished. Who is not told so pushes again.
		if acknowledged == len(content) {
			id, offset = begin(t, uploads, content), int64(len(content))
			break
		}
		wantWhole(t, dir, d, content)
		return false
	case err != nil:
		t.Fatalf("after %d bytes were acknowledged: %v", acknowledged, err)
	case offset < int64(acknowledged):
		t.Fatalf("%d bytes were acknowledged and %d are there", acknowledged, offset)
	}
	if b, _, err := dir.Open(t.Context(), d); err == nil {
		b.Close()
		wantWhole(t, dir, d, content)
	}
	if offset < int64(len(content)) {
		appendTo(t, uploads, id, offset, content[offset:])
	}
	if _, err := uploads.Finish(t.Context(), owner, id, d); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, dir, d, content)
	return offset > 0 && offset < int64(len(content))
}

func wantWhole(t *testing.T, dir *blob.Dir, d registry.Digest, content string) {
	t.Helper()
	b, _, err := dir.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); err != nil || string(got) != content {
		t.Fatalf("the blob has %d bytes (%v) that are not the %d pushed", len(got), err, len(content))
	}
}
