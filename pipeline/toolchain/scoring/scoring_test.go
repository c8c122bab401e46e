package scoring_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/pipeline/toolchain/scoring"
	"mlpromote.dev/mlpromote/registry"
)

func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	os.Setenv("COSIGN_PASSWORD", "open sesame") // which no program may see
	os.Exit(m.Run())
}

// jobOf is a job with two shards, of which the program reads what it wants.
func jobOf(t *testing.T, program string, count int) toolchain.ScoreJob {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) toolchain.Input {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := toolchain.FileInput("", name, path)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	return toolchain.ScoreJob{Program: file("score.py", program), Count: count,
		Cases:   []toolchain.Input{file("b.safetensors", "1 2"), file("a.safetensors", "3")},
		Outputs: []toolchain.Input{file("x.safetensors", "10 20"), file("y.safetensors", "30")}}
}

// runs skips a test where a machine cannot run programs of users.
func runs(t *testing.T) {
	t.Helper()
	if _, err := (scoring.Python{}).Score(t.Context(),
		jobOf(t, "import sys\nopen(sys.argv[3], 'w').write('1\\n')\n", 1)); registry.HasCode(err, registry.CodeUnavailable) {
		t.Skip(err)
	}
}

// all is a program that reads everything that it is given.
const all = `
import os, sys
_, cases, outputs, scores = sys.argv
print("noise", file=sys.stdout); print("noise", file=sys.stderr)
with open(scores, "w") as f:
    for name in sorted(os.listdir(outputs)):
        ours = open(os.path.join(cases, name)).read().split()
        theirs = open(os.path.join(outputs, name)).read().split()
        for a, b in zip(ours, theirs):
            print(float(b) - float(a), file=f)
`

func TestScore(t *testing.T) {
	t.Parallel()
	runs(t)
	got, err := scoring.Python{}.Score(t.Context(), jobOf(t, all, 3))
	if err != nil || !slices.Equal(got, []float64{9, 18, 27}) {
		t.Errorf("got %v, error %v; want 9, 18, 27", got, err)
	}
}

// Whatever a program does, it gives scores of all cases or an error that says why not.
func TestHostilePrograms(t *testing.T) {
	t.Parallel()
	runs(t)
	write := "import sys\nf = open(sys.argv[3], 'w')\n"
	for name, c := range map[string]struct{ program, want string }{
		"fails":               {"x = 1 / 0\n", "score.py ended with exit status 1: ZeroDivisionError: division by zero"},
		"no Python":           {"(", "exit status 1: SyntaxError"},
		"another status":      {"raise SystemExit(7)\n", "score.py crashed: exit status 7"},
		"crashes":             {"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "score.py crashed"},
		"nothing":             {"pass\n", "score.py left no result: no file"},
		"an empty file":       {write, "score.py: it wrote 0 lines for 3 cases"},
		"too few":             {write + "f.write('1\\n2\\n')\n", "it wrote 2 lines for 3 cases"},
		"too many":            {write + "f.write('1\\n2\\n3\\n4\\n')\n", "it wrote 4 lines for 3 cases"},
		"an empty line":       {write + "f.write('1\\n\\n3\\n')\n", `line 2 is "": want a finite number`},
		"NaN":                 {write + "f.write('1\\nnan\\n3\\n')\n", `line 2 is "nan": want a finite number`},
		"infinity":            {write + "f.write('1\\n2\\n-inf\\n')\n", `line 3 is "-inf": want a finite number`},
		"out of range":        {write + "f.write('1\\n2\\n1e999\\n')\n", `line 3 is "1e999": want a finite number`},
		"text":                {write + "f.write('1\\n2\\ngood\\n')\n", `line 3 is "good": want a finite number`},
		"a long number":       {write + "f.write('1\\n2\\n' + '0' * 100 + '\\n')\n", `want a finite number`},
		"bytes":               {"import sys\nopen(sys.argv[3], 'wb').write(b'1\\n2\\n\\xff\\x00\\n')\n", `want a finite number`},
		"a folder":            {"import os, sys\nos.mkdir(sys.argv[3])\n", "it is no regular file"},
		"a link":              {"import os, sys\nos.symlink('/etc/passwd', sys.argv[3])\n", "it is no regular file"},
		"a pipe":              {"import os, sys\nos.mkfifo(sys.argv[3])\n", "it is no regular file"},
		"huge":                {write + "while True: f.write('1' * 1000000)\n", "score.py "},
		"huge log":            {"import sys\nfor i in range(200000): print('noise' * 9)\nraise ValueError('last')\n", "ended with exit status 1: ValueError: last"},
		"hangs":               {"import time\ntime.sleep(1000)\n", "score.py ran longer than 3s and was stopped"},
		"hangs in a child":    {"import os, time\nif os.fork(): os._exit(0)\ntime.sleep(1000)\n", "left no result"},
		"changes its input":   {"import sys\nopen(sys.argv[1] + '/00000.safetensors', 'w').write('9')\n", "exit status 1: "},
		"changes the program": {"open(__file__, 'w').write('pass')\n", "exit status 1: "},
		"uses the network":    {"import socket\nsocket.create_connection(('127.0.0.1', 22), 2)\n", "exit status 1: "},
		"reads our files":     {"print(open('" + secretFile(t) + "').read())\n", "exit status 1: FileNotFoundError"},
		"reads the password":  {"import os\nraise SystemExit(os.environ.get('COSIGN_PASSWORD') and 1 or 3)\n", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if name == "hangs" {
				limit = 3 * time.Second
			}
			got, err := scoring.Python{Time: limit}.Score(t.Context(), jobOf(t, c.program, 3))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
				t.Errorf("got %v, error %v; want one with %q", got, err, c.want)
			}
		})
	}
}

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("open sesame"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithoutPython(t *testing.T) {
	t.Parallel()
	_, err := scoring.Python{Named: filepath.Join(t.TempDir(), "python3")}.Score(t.Context(), jobOf(t, all, 3))
	if !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(strings.Join(registry.Hints(err), " "), "--python program=PATH") {
		t.Errorf("got %v with hints %q, want code unavailable and how to name a Python", err, registry.Hints(err))
	}
}

// A program that was replaced after it was hashed does not run.
func TestReplacedProgram(t *testing.T) {
	t.Parallel()
	runs(t)
	job := jobOf(t, all, 3)
	if err := errors.Join(os.Rename(job.Program.Path, job.Program.Path+".old"), os.WriteFile(job.Program.Path, []byte(all), 0o644)); err != nil {
		t.Fatal(err)
	}
	if got, err := (scoring.Python{}).Score(t.Context(), job); !registry.HasCode(err, registry.CodeDigest) {
		t.Errorf("got %v, error %v; want code digest", got, err)
	}
}
