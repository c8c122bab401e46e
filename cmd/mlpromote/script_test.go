//go:build cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// TestScripts runs what users type. Each script has a folder and a data directory of its
// own; toolchains, finished steps and the states of the job are shared.
func TestScripts(t *testing.T) {
	t.Parallel()
	j := &jobs{root: t.TempDir(), cache: programtest.Cache(t), program: fastProgram(t)}
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		p := j.params("directory", nil)
		p.Dir = "testdata/script"
		testscript.Run(t, p)
	})
	t.Run("served", func(t *testing.T) {
		t.Parallel()
		j.again(t, "served", onService, scriptsOnService())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		j.again(t, "postgres", onPostgres(t), scriptsOnPostgres())
	})
}

// scriptsOnService run once more, each with a service from its beginning. Left out are
// scripts in which no registry is asked (usage, toolchain, the refusals of files), those
// that change environments.yaml, keys or the history under the program (key, folder,
// history), what a service has no need of (reindex), those of other registries (external_*),
// and those that serve by themselves (serve_*, refuse_wrong_role).
func scriptsOnService() []string {
	return []string{
		"script/main_job", "script/init", "script/rebuild", "script/pull", "script/rollback", "script/tamper", "script/text", "script/node_type",
		"script/version_taken", "script/refuse_broken_calibration", "script/refuse_wrong_node", "script/refuse_bent_index", "script/refuse_junk",
		"script/refuse_missing_evidence", "script/refuse_other_hardware", "script/quarantine", "script/restrict",
		"script/history_follow", "script/suggest", "script/report", "script/render", "script/ci_report", "script/image_form",
	}
}

// scriptsOnPostgres run on data directories whose catalog is in PostgreSQL. Left out are
// those that go on from directories which other scripts share: these have a catalog of
// their own.
func scriptsOnPostgres() []string {
	return []string{"script/main_job", "script/init", "script/refuse_broken_calibration", "postgres/database", "postgres/gc", "postgres/move"}
}

// setup is what a kind of catalog wants before a script begins.
type setup = func(env *testscript.Env, program string) error

// again runs scripts on another kind of catalog.
func (j *jobs) again(t *testing.T, kind string, setup setup, files []string) {
	t.Helper()
	p := j.params(kind, setup)
	for _, file := range files {
		p.Files = append(p.Files, filepath.Join("testdata", filepath.FromSlash(file)+".txtar"))
	}
	testscript.Run(t, p)
}

// params are the parameters of scripts, with what else their setup does. A script may ask
// for its kind, [served], whether the race detector is here, [race], and what is installed, such as [softhsm].
func (j *jobs) params(kind string, setup setup) testscript.Params {
	return testscript.Params{
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, programtest.Environment(env.WorkDir, j.cache)...)
			env.Vars = append(env.Vars, "COLUMNS=1000") // a row is a line; script/columns has the width that users get
			env.Vars = append(env.Vars, "TESTDATA="+programtest.Root("cmd", "mlpromote", "testdata"),
				"ONNX_TESTDATA="+programtest.Root("validators", "format", "onnx", "testdata"))
			env.Vars = append(env.Vars, "ORT_HEADERS="+runtimeHeaders(),
				"MLPROMOTE_SOFTHSM="+os.Getenv("MLPROMOTE_SOFTHSM"), "HOST=", "DATA="+defaultData, "STORE="+defaultData)
			if filepath.Base(env.WorkDir) != "script-main_race" {
				env.Vars = append(env.Vars, "PATH="+filepath.Dir(j.program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
			}
			env.Values[servicesKey{}] = make(services)
			env.Values[followingKey{}] = new(*following)
			env.Values[authorityKey{}] = new(authority)
			if setup == nil {
				return nil
			}
			return setup(env, j.program)
		},
		Condition: func(name string) (bool, error) {
			if toolchain, ok := strings.CutPrefix(name, "toolchain:"); ok {
				return hasToolchain(j.cache, toolchain), nil
			}
			switch name {
			case "served", "postgres":
				return kind == name, nil
			case "race":
				return raceEnabled, nil
			case "softhsm": // a hardware module in software, and the plugin that signs with it
				_, util := exec.LookPath("softhsm2-util")
				_, tool := exec.LookPath("pkcs11-tool")
				return os.Getenv("MLPROMOTE_SOFTHSM") != "" && util == nil && tool == nil, nil
			case "browser":
				return browserProgram() != "", nil
			case "bf16": // of the processor
				info, err := os.ReadFile("/proc/cpuinfo")
				return err == nil && bytes.Contains(info, []byte("avx512_bf16")), nil
			}
			return false, fmt.Errorf("no condition %s", name)
		},
		Cmds: commands(j),
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

// fastProgram is the path of the program without the race detector: what stands in for it,
// or where that has the detector, what is built. The script main_race has the detector.
func fastProgram(t *testing.T) string {
	t.Helper()
	if raceEnabled {
		return programtest.Program(t)
	}
	path, err := exec.LookPath("mlpromote")
	if err != nil {
		t.Fatal(err)
	}
	return path
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

// authorityKey is where a script keeps its certificate authority.
type authorityKey struct{}

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
		ts.Check(programtest.Digits(dir))
	} else {
		ts.Check(programtest.CopyTree(from, dir))
	}
	cmd := exec.Command(j.program, verb)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), programtest.Environment(j.root, j.cache)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("mlpromote %s for the state %s: %v\n%s", verb, state, err, out)
	}
	return dir
}
