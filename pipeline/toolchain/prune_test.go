package toolchain_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// sizedJob leaves one file of n bytes, and one that all such jobs share.
func sizedJob(name string, n int) toolchain.Job {
	job := echoJob()
	job.Inputs[0].Digest = digest.FromString(name)
	job.Options = map[string]any{"own": strings.Repeat(name[:1], n), "common": "the same everywhere"}
	return job
}

func TestPruneRemovesWhatWasNotUsedForLongest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := toolchain.NewStore(dir)
	keys := make(map[string]toolchain.Outcome)
	for i, name := range []string{"a", "b", "c"} {
		outcome, err := toolchain.Cache(newEcho(), store).Do(t.Context(), sizedJob(name, 1000), filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = outcome
		hex := outcome.Key.Encoded()
		then := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, "steps", hex[:2], hex+".json"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	// The oldest is used again, so that b is the one that nobody misses.
	if _, err := store.Load(t.Context(), keys["a"].Key, filepath.Join(t.TempDir(), "out")); err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(filepath.Dir(objectOf(dir, keys["a"])), "left.tmp-1")
	if err := os.WriteFile(crashed, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	removed, left, err := store.Prune(t.Context(), 2100)
	if err != nil || len(removed) != 1 || removed[0].Key != keys["b"].Key || left != 2019 {
		t.Fatalf("removed %v, %d bytes left (%v), want b alone and 2019", removed, left, err)
	}
	kept, err := store.List(t.Context())
	if err != nil || len(kept) != 2 || kept[0].Key != keys["a"].Key || kept[1].Key != keys["c"].Key {
		t.Errorf("kept %v (%v), want a, then c", kept, err)
	}
	for _, path := range []string{crashed, objectOf(dir, keys["b"])} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	for _, name := range []string{"a", "c"} {
		if _, err := store.Load(t.Context(), keys[name].Key, filepath.Join(t.TempDir(), "out")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, left, err := store.Prune(t.Context(), 0); err != nil || left != 0 {
		t.Errorf("%d bytes left (%v), want none", left, err)
	}
	files, err := toolchain.Collect(dir)
	if err != nil || slices.ContainsFunc(files, func(f toolchain.OutputFile) bool { return f.Name != "lock" }) {
		t.Errorf("left behind: %v (%v)", files, err)
	}
}

// objectOf is the object that a step's own file became.
func objectOf(dir string, o toolchain.Outcome) string {
	f, _ := o.File("own")
	return filepath.Join(dir, "objects", f.Digest.Encoded()[:2], f.Digest.Encoded())
}

// What a build has taken from the store stays, although the store forgets it.
func TestPruneSparesWhatIsInUse(t *testing.T) {
	t.Parallel()
	store := toolchain.NewStore(t.TempDir())
	cached := toolchain.Cache(newEcho(), store)
	var last toolchain.Outcome
	for range 2 {
		var err error
		if last, err = cached.Do(t.Context(), echoJob(), filepath.Join(t.TempDir(), "out")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := store.Prune(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := content(t, last); !last.Cached || got["model.onnx"] != "weights" {
		t.Errorf("files %v", got)
	}
}

// steps of the test of processes.
const processSteps = 24

// TestCacheAcrossProcesses: of two processes that want the same steps of one store, one
// does each, while a third clears the store now and then.
func TestCacheAcrossProcesses(t *testing.T) {
	t.Parallel()
	for _, clearing := range []bool{false, true} {
		t.Run(fmt.Sprintf("clearing %t", clearing), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var processes []*exec.Cmd
			var outputs []*bytes.Buffer
			for range 2 {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCacheProcess$", "-test.count=1")
				cmd.Env = append(os.Environ(), "TOOLCHAIN_TEST_STORE="+dir)
				out := new(bytes.Buffer)
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				processes, outputs = append(processes, cmd), append(outputs, out)
			}
			store := toolchain.NewStore(filepath.Join(dir, "store"))
			for range 10 {
				if !clearing {
					break
				}
				if _, _, err := store.Prune(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
			for i, cmd := range processes {
				if err := cmd.Wait(); err != nil {
					t.Errorf("process %d: %v\n%s", i, err, outputs[i])
				}
			}
			done, err := os.ReadDir(filepath.Join(dir, "done"))
			if err != nil || len(done) < processSteps || !clearing && len(done) != processSteps {
				t.Errorf("%d steps were done (%v), want %d", len(done), err, processSteps)
			}
		})
	}
}

// TestCacheProcess is a process of the test above.
func TestCacheProcess(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TOOLCHAIN_TEST_STORE")
	if dir == "" {
		return // not a process of that test
	}
	done := filepath.Join(dir, "done")
	if err := os.MkdirAll(done, 0o777); err != nil {
		t.Fatal(err)
	}
	driver := newEcho()
	cached := toolchain.Cache(driver, toolchain.NewStore(filepath.Join(dir, "store")))
	for i := range processSteps {
		before := driver.jobs.Load()
		outcome, err := cached.Do(t.Context(), sizedJob(fmt.Sprintf("%c", 'a'+i), 10), filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, outcome); got["own"] != strings.Repeat(string(rune('a'+i)), 10) {
			t.Errorf("files %v", got)
		}
		if driver.jobs.Load() == before {
			continue
		}
		f, err := os.CreateTemp(done, fmt.Sprintf("%d-", i))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
