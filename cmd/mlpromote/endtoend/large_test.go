//go:build cgo && linux

package endtoend

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// The sizes of the model of TestLarge: MLPROMOTE_LARGE=1 is the long form, and another
// number is a size in MiB.
const (
	largeMiB = 6 << 10
	smallMiB = 128
)

// What our own process may hold in memory at most, whatever the size of the model. The
// small form is half of that: a copy of the model in memory would not fit beside the rest,
// most of which is what opening a key takes.
const (
	largeMemory = 512 << 20
	smallMemory = 256 << 20
)

// largeDisk is how many times the content of the registry everything may take on disk at
// any time, beside the user's own model and the folder that is pulled.
const largeDisk = 1.2

// TestLarge takes a model with external data through build, verify, promote, pull, save and load, and measures what
// our own processes hold in memory and what lies on disk meanwhile, beside what was pulled, saved and loaded.
func TestLarge(t *testing.T) {
	mib, memory := int64(smallMiB), int64(smallMemory)
	if n, err := strconv.ParseInt(os.Getenv("MLPROMOTE_LARGE"), 10, 64); err == nil && n > 0 {
		mib, memory = max(n, smallMiB), largeMemory
		if n == 1 {
			mib = largeMiB
		}
	} else {
		t.Parallel()
	}
	targets := "linux/amd64/v1, linux/amd64/v2" // two engines with the same weights
	if mib > 2<<10 {
		targets = "linux/amd64/v1" // each is loaded several times, for a minute or more
	}
	l := newLarge(t, mib, "cases: {generate: 3, seed: 1}\ntargets: ["+targets+"]\nbudgets: {onnxruntime: {time: 50m}}\n")
	trust := "registry: local\ntrust: [{key: work/data/keys/local.pub, roles: [builder, verifier, approver, promoter], resources: [\"oci://local/\"]}]\n"
	if err := os.WriteFile(l.path("trust.yaml"), []byte(trust), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"build"}, {"verify"}, {"promote"}, {"pull", "large", "--env", "prod", "-o", l.path("pulled")},
		{"save", "prod/large", "-o", l.path("saved.tar")},
		{"load", l.path("saved.tar"), "--env", "prod", "--trust", l.path("trust.yaml"), "--data", l.path("loaded")},
	} {
		l.run(t, args)
	}
	stored := diskOf(t, l.path("work/data/blobs"))
	t.Logf("model %d MiB, content of the registry %d MiB", mib, stored>>20)
	for _, m := range l.measured {
		t.Logf("%s, %.2f times the content", m, float64(m.disk)/float64(stored))
		if m.memory > memory {
			t.Errorf("%s: the process held %d MiB in memory, want at most %d", m.verb, m.memory>>20, memory>>20)
		}
		if float64(m.disk) > largeDisk*float64(stored) {
			t.Errorf("%s: %d MiB on disk, want at most %.1f times %d", m.verb, m.disk>>20, largeDisk, stored>>20)
		}
	}
	// Engines of one precision share their weights: the reference and one engine are stored.
	if most := 2*(mib<<20) + 16<<20; stored > most {
		t.Errorf("the registry holds %d MiB for a model of %d MiB in one precision, want at most twice that", stored>>20, mib)
	}
}

// large is a run of the test.
type large struct {
	program, root, model string
	env                  []string // more of it
	measured             []measuredVerb
}

type measuredVerb struct {
	verb         string
	memory, disk int64 // the most, bytes
	drivers      int64 // the most that one process of a driver held in private memory, bytes; sampled
	took         time.Duration
}

func (m measuredVerb) String() string {
	return fmt.Sprintf("%-8s memory %4d MiB, of a driver %5d MiB, disk %6d MiB, %s", m.verb, m.memory>>20, m.drivers>>20, m.disk>>20, m.took.Round(time.Millisecond))
}

// newLarge makes a folder with a generated model of so many MiB and its spec.
func newLarge(t *testing.T, mib int64, spec string) *large {
	t.Helper()
	cache := programtest.Cache(t)
	root := t.TempDir()
	l := &large{program: programtest.Program(t), root: root, model: filepath.Join(root, "model")}
	for _, folder := range []string{l.model, l.path("tmp"), l.path("cache"), l.path("work")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(cache, "toolchains"), filepath.Join(l.path("cache"), "toolchains")); err != nil {
		t.Fatal(err)
	}
	if err := writeLargeModel(l.model, mib<<20); err != nil {
		t.Fatal(err)
	}
	policy := "registry: local\nenvironments:\n  staging:\n  prod: {from: staging, require: [signature, provenance, parity]}\n" + // cases are generated here
		"trust: [{key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: [\"oci://local/\"]}]\n"
	if err := os.MkdirAll(filepath.Join(l.path("work"), "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.path("work"), "data", "environments.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	spec = "model: large\nversion: 1.0.0\nsource: model.onnx\nvariants: [fp32]\n" + spec
	if err := os.WriteFile(filepath.Join(l.model, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// command is a verb, to be started.
func (l *large) command(ctx context.Context, args []string) (cmd *exec.Cmd, out *strings.Builder) {
	cmd = exec.CommandContext(ctx, l.program, args...)
	cmd.Dir = l.model
	cmd.Env = append(os.Environ(), programtest.Environment(l.root, l.path("cache"))...)
	cmd.Env = append(cmd.Env, "TMPDIR="+l.path("tmp"), "MLPROMOTE_DATA="+l.path("work/data"))
	cmd.Env = append(cmd.Env, l.env...)
	out = new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func (l *large) path(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

// run runs a verb and watches it.
func (l *large) run(t *testing.T, args []string) {
	t.Helper()
	cmd, out := l.command(t.Context(), args)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	m := measuredVerb{verb: args[0]}
	var watch sync.WaitGroup
	watch.Go(func() { l.watch(ctx, cmd.Process.Pid, &m) })
	err := cmd.Wait()
	stop()
	watch.Wait()
	m.took = time.Since(began)
	t.Logf("mlpromote %v\n%s%s", args, out, m) // as it comes: what follows may not come to an end
	if err != nil {
		t.Fatalf("mlpromote %v: %v", args, err)
	}
	if m.memory == 0 || m.disk == 0 {
		t.Fatalf("%v ended before anything was measured", args)
	}
	l.measured = append(l.measured, m)
}

// watch notes the peaks of a process until it ends. VmHWM is one itself; disk is sampled.
func (l *large) watch(ctx context.Context, pid int, m *measuredVerb) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		m.memory = max(m.memory, memoryOf(pid, "VmHWM:"))
		m.drivers = max(m.drivers, driverMemory(pid))
		if disk, err := blocks(l.path("tmp"), l.path("work"), l.path("cache")); err == nil {
			m.disk = max(m.disk, disk)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// driverMemory is the most private memory that one of the children of a process holds, or
// of theirs.
func driverMemory(pid int) int64 {
	var most int64
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // who has ended has none
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				most = max(most, memoryOf(n, "RssAnon:"), driverMemory(n))
			}
		}
	}
	return most
}

// memoryOf is a line of what the kernel says of a process, without its children, in
// bytes: its peak ("VmHWM:") or its private memory now ("RssAnon:"); 0 when it has ended.
func memoryOf(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

func diskOf(t *testing.T, folder string) int64 {
	t.Helper()
	n, err := blocks(folder)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// blocks is what folders take on disk, each file once, however many names it has.
func blocks(folders ...string) (int64, error) {
	seen := make(map[uint64]bool)
	var n int64
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what was just removed takes nothing
			}
			info, err := entry.Info()
			if err != nil || !info.Mode().IsRegular() {
				return nil //nolint:nilerr // as above
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && !seen[stat.Ino] {
				seen[stat.Ino] = true
				n += stat.Blocks * 512
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// largeWidth is the width of the layers of the generated model: 1 MiB of weights each.
const largeWidth = 512

// writeLargeModel writes a chain of matrix products whose weights, size bytes of them, are
// external data.
func writeLargeModel(dir string, size int64) error {
	layers := int(size / (4 * largeWidth * largeWidth))
	if err := writeLargeWeights(filepath.Join(dir, "weights.bin"), layers); err != nil {
		return err
	}
	var graph []byte
	for i := range layers {
		weight := fmt.Sprintf("w%d", i)
		var node []byte
		node = text(node, 1, value(i, layers))
		node = text(node, 1, weight)
		node = text(node, 2, value(i+1, layers))
		node = text(node, 4, "MatMul")
		graph = message(graph, 1, node)
	}
	graph = text(graph, 2, "large")
	for i := range layers {
		var tensor []byte
		tensor = varint(tensor, 1, largeWidth)
		tensor = varint(tensor, 1, largeWidth)
		tensor = varint(tensor, 2, 1) // float
		tensor = text(tensor, 8, fmt.Sprintf("w%d", i))
		for _, kv := range [][2]string{
			{"location", "weights.bin"}, {"offset", strconv.Itoa(i * 4 * largeWidth * largeWidth)}, {"length", strconv.Itoa(4 * largeWidth * largeWidth)},
		} {
			tensor = message(tensor, 13, text(text(nil, 1, kv[0]), 2, kv[1]))
		}
		tensor = varint(tensor, 14, 1) // external
		graph = message(graph, 5, tensor)
	}
	graph = message(graph, 11, floats("x"))
	graph = message(graph, 12, floats("y"))
	model := varint(nil, 1, 8) // IR version
	model = message(model, 7, graph)
	model = message(model, 8, varint(nil, 2, 17))
	return os.WriteFile(filepath.Join(dir, "model.onnx"), model, 0o600)
}

func value(i, layers int) string {
	switch i {
	case 0:
		return "x"
	case layers:
		return "y"
	}
	return fmt.Sprintf("h%d", i)
}

// floats describes a value of shape [1, largeWidth].
func floats(name string) []byte {
	shape := message(message(nil, 1, varint(nil, 1, 1)), 1, varint(nil, 1, largeWidth))
	kind := message(varint(nil, 1, 1), 2, shape)
	return message(text(nil, 1, name), 2, message(nil, 1, kind))
}

func varint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func text(b []byte, field protowire.Number, s string) []byte { return message(b, field, []byte(s)) }

// writeLargeWeights writes seeded weights that keep the size of what goes through them.
func writeLargeWeights(path string, layers int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	scale := float32(math.Sqrt(12.0 / largeWidth))
	var four [4]byte
	for range layers * largeWidth * largeWidth {
		binary.LittleEndian.PutUint32(four[:], math.Float32bits((random.Float32()-0.5)*scale))
		if _, err := w.Write(four[:]); err != nil {
			return err
		}
	}
	return w.Flush()
}
