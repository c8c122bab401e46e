// Package programtest runs the program mlpromote for tests as its users do: as a process,
// in folders of its own, with a service where one is asked for.
package programtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// Main runs the tests of a package and removes what [Program] built for them.
type Main struct{ M *testing.M }

// Run gives the exit status.
func (m Main) Run() int {
	defer func() {
		for _, b := range []*build{&built, &shifted, &node, &shiftedNode, &modelServer} {
			if b.dir != "" {
				_ = os.RemoveAll(b.dir) // a temporary folder
			}
		}
	}()
	return m.M.Run()
}

// build is a program that is built once for all tests of a process; linking it takes seconds.
type build struct {
	once sync.Once
	dir  string
	err  error
}

var built, shifted, node, shiftedNode, modelServer build

// BuiltVariable has the path of the program where a test that built it runs itself again.
const BuiltVariable = "MLPROMOTE_TEST_BUILT"

// Program gives the path of the program, which is built once for all tests of a process, and
// never with the race detector, under which it opens a key in two seconds and not in a fifth
// of one. TestMain of the package runs [Main].
func Program(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv(BuiltVariable); path != "" {
		return path
	}
	return built.program(tb)
}

// Node gives the path of mlpromote-node, built as it is released: without cgo, and once for all tests of a process.
func Node() (string, error) {
	return node.path("cmd/mlpromote-node", []string{"CGO_ENABLED=0"})
}

// ShiftedNode is [Node] with a clock that is wrong by MLPROMOTE_CLOCK_SHIFT, such as "24h".
func ShiftedNode() (string, error) {
	return shiftedNode.path("cmd/mlpromote-node", []string{"CGO_ENABLED=0"}, "-tags", "shiftedclock")
}

// Shifted is [Program] with a clock that is wrong by MLPROMOTE_CLOCK_SHIFT, such as "24h".
func Shifted(tb testing.TB) string {
	tb.Helper()
	return shifted.program(tb, "-tags", "shiftedclock")
}

// Server gives the path of the model server of examples/serve, with the shared library of ONNX Runtime beside it.
func Server(tb testing.TB) string {
	tb.Helper()
	path, err := modelServer.path("examples/serve", nil)
	if err != nil {
		tb.Fatal(err)
	}
	record, err := toolchaintest.Installer(tb, "onnxruntime").Find("onnxruntime")
	if err != nil {
		tb.Fatal(err)
	}
	library.Lock()
	defer library.Unlock()
	to := filepath.Join(filepath.Dir(path), "libonnxruntime.so")
	if _, missing := os.Stat(to); missing == nil {
		return path
	}
	data, err := os.ReadFile(record.LibraryPath())
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// library guards the copy of the library beside the model server.
var library sync.Mutex

func (b *build) program(tb testing.TB, flags ...string) string {
	tb.Helper()
	path, err := b.path("cmd/mlpromote", nil, flags...)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// path builds a program of ours, with variables beside those of this process.
func (b *build) path(name string, env []string, flags ...string) (string, error) {
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "mlpromote-program-"); b.err != nil {
			return
		}
		args := slices.Concat([]string{"build", "-buildvcs=false", "-ldflags", "-s -w"},
			flags, []string{"-o", b.dir, "mlpromote.dev/mlpromote/" + name})
		cmd := exec.Command("go", args...) //nolint:noctx // no test owns it
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	return filepath.Join(b.dir, filepath.Base(name)), b.err
}

// Cache is the MLPROMOTE_CACHE of tests: it has ONNX Runtime, installed now if need be, and
// the steps of earlier runs.
func Cache(tb testing.TB) string {
	tb.Helper()
	return toolchaintest.Installer(tb, "onnxruntime").Root
}

// Environment is what the program sees of ours, beside the variables of the test's process:
// a home, a cache, and no setting of the user's. With the race detector every process would
// sleep for a second before it ends; tests start hundreds.
func Environment(home, cache string) []string {
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=", "MLPROMOTE_CACHE=" + cache, "MLPROMOTE_INSTALLS=", "MLPROMOTE_DATA=",
		"MLPROMOTE_POLICY_DIR=", "MLPROMOTE_REGISTRY=", "MLPROMOTE_KEYS=", "MLPROMOTE_STORAGE=",
		"MLPROMOTE_DATABASE=", "MLPROMOTE_TOKEN=", "MLPROMOTE_CA=", "COSIGN_PASSWORD=", "GORACE=atexit_sleep_ms=10",
	}
}

// Root is the folder of the repository, with more elements below it.
func Root(elements ...string) string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return filepath.Join(append([]string{dir}, elements...)...)
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("no go.mod in the working directory, nor above it")
		}
		dir = filepath.Dir(dir)
	}
	panic(err) // tests run in the folder of their package
}
