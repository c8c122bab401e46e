//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// examples is where the examples of the repository are, seen from this package.
const examples = "../../examples"

// TestScripts runs what users type. Each script has a folder and a data directory of
// its own; toolchains and finished steps are shared between scripts and runs.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts(t, nil)
	p.Dir = "testdata/script"
	testscript.Run(t, p)
}

// scripts are the parameters of scripts, with what else their setup does.
func scripts(t *testing.T, setup func(env *testscript.Env, program string) error) testscript.Params {
	t.Helper()
	cache := testCache(t)
	fast := fastProgram(t)
	jobs := &jobs{root: t.TempDir(), cache: cache, program: fast}
	return testscript.Params{
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, environment(env.WorkDir, cache)...)
			env.Vars = append(env.Vars, "ORT_HEADERS="+runtimeHeaders(), "HOST=", "DATA="+defaultData, "STORE="+defaultData)
			if filepath.Base(env.WorkDir) != "script-main_race" {
				env.Vars = append(env.Vars, "PATH="+filepath.Dir(fast)+string(filepath.ListSeparator)+os.Getenv("PATH"))
			}
			env.Values[servicesKey{}] = make(services)
			if setup != nil {
				return setup(env, fast)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if toolchain, ok := strings.CutPrefix(name, "toolchain:"); ok {
				return hasToolchain(cache, toolchain), nil
			}
			if name != "served" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return setup != nil, nil
		},
		Cmds: commands(jobs),
	}
}

// hasToolchain reports whether scripts may use a toolchain: it is installed, or every one
// is to be installed by whoever asks for it.
func hasToolchain(cache, name string) bool {
	_, err := (&install.Installer{Root: cache}).Find(name)
	return err == nil || os.Getenv("MLPROMOTE_TEST_TOOLCHAINS") == "all"
}

// runtimeHeaders is the folder of ONNX Runtime's C headers, which our binding to it has.
var runtimeHeaders = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		panic(err) // tests run where go is
	}
	return strings.TrimSpace(string(out))
})

// fastProgram is the path of the program without the race detector, under which it
// opens a key in two seconds and not in a fifth of one. The script main_race has
// the detector where the tests have it.
func fastProgram(t *testing.T) string {
	t.Helper()
	if !raceEnabled {
		path, err := exec.LookPath("mlpromote")
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(t.TempDir(), "mlpromote")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// environment is what the program sees of ours. With the race detector every process
// would sleep for a second before it ends; scripts start hundreds.
func environment(home, cache string) []string {
	testdata, err := filepath.Abs("../../validators/format/testdata")
	if err != nil {
		panic(err) // the working directory is gone
	}
	own, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return []string{"TESTDATA=" + own, "ONNX_TESTDATA=" + testdata, "HOME=" + home, "MLPROMOTE_CACHE=" + cache, "MLPROMOTE_DATA=", "MLPROMOTE_REGISTRY=", "MLPROMOTE_KEYS=", "MLPROMOTE_STORAGE=", "MLPROMOTE_DATABASE=", "MLPROMOTE_TOKEN=", "MLPROMOTE_CA=", "COSIGN_PASSWORD=", "GORACE=atexit_sleep_ms=10"}
}

// jobs are copies of the digits example that were carried on to some state once, so
// that scripts need not each begin at the beginning.
type jobs struct {
	root, cache, program string

	mu   sync.Mutex
	done map[string]string // folder by state

	keysMu sync.Mutex
	keys   map[string]signer.Signer // by the text of the key file
}

// states are the verbs of the job in order, with the state that each leads to.
var states = []struct{ name, verb string }{{"built", "build"}, {"verified", "verify"}, {"promoted", "promote"}}

// folder is a digits example in the state. It is to be copied, not used.
func (j *jobs) folder(ts *testscript.TestScript, state string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done == nil {
		j.done = make(map[string]string)
	}
	from := ""
	for _, s := range states {
		if j.done[s.name] == "" {
			j.done[s.name] = j.advance(ts, from, s.name, s.verb)
		}
		if from = j.done[s.name]; s.name == state {
			return from
		}
	}
	ts.Fatalf("state %q: want built, verified or promoted", state)
	return ""
}

// key opens a key file, each key once: under the race detector that takes seconds.
func (j *jobs) key(ts *testscript.TestScript, file string) signer.Signer {
	text := ts.ReadFile(file)
	j.keysMu.Lock()
	defer j.keysMu.Unlock()
	if j.keys == nil {
		j.keys = make(map[string]signer.Signer)
	}
	if j.keys[text] == nil {
		opened, err := keyfile.Open(ts.MkAbs(file), nil)
		ts.Check(err)
		j.keys[text] = opened
	}
	return j.keys[text]
}

func (j *jobs) advance(ts *testscript.TestScript, from, state, verb string) string {
	dir := filepath.Join(j.root, state)
	if from == "" {
		ts.Check(copyTree(filepath.Join(examples, "digits"), dir))
		ts.Check(oneTarget(dir))
	} else {
		ts.Check(copyTree(from, dir))
	}
	cmd := exec.Command(j.program, verb)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), environment(j.root, j.cache)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("mlpromote %s for the state %s: %v\n%s", verb, state, err, out)
	}
	return dir
}

// oneTarget leaves one of the two targets out of the spec in a copy of the digits example.
func oneTarget(dir string) error {
	path := filepath.Join(dir, "mlpromote.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, "linux/amd64/v3") {
			kept.WriteString(line)
		}
	}
	return os.WriteFile(path, []byte(kept.String()), 0o644)
}

// copyTree copies folders, files and their permissions. What an example's own use left
// in it stays there.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		leftBehind := strings.HasPrefix(from, examples) && (entry.Name() == ".mlpromote" || entry.Name() == "pulled")
		if entry.IsDir() && leftBehind {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode().Perm())
	})
}
