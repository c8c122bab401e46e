package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry"
)

// status gives what a survey says of a toolchain.
func status(t *testing.T, installer *install.Installer, name string, gpus ...string) install.Status {
	t.Helper()
	all, err := installer.Survey(t.Context(), gpus)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s install.Status) bool { return s.Name == name })
	if i < 0 || len(all) != len(drivers.Names()) {
		t.Fatalf("the survey has %v, want all of %v", all, drivers.Names())
	}
	return all[i]
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	installer, _ := newFake(t, "3.12.1", "", "")
	before := status(t, installer, name)
	if before.State != install.StateAvailable || before.Version != "1.30.0" ||
		before.Command != "mlpromote toolchain install onnxruntime" || len(before.Installs) > 0 {
		t.Errorf("before the install: %+v", before)
	}
	if _, err := installer.Install(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	after := status(t, installer, name)
	if after.State != install.StateInstalled || after.Command != "" ||
		len(after.Installs) != 1 || !after.Installs[0].Current || after.Installs[0].Size < 100 {
		t.Errorf("after the install: %+v", after)
	}
}

// A survey asks a Python once what it is, whatever the number of toolchains: starting it takes most of the time.
func TestSurveyAsksOnce(t *testing.T) {
	t.Parallel()
	installer, _ := newFake(t, "3.12.1", "", "")
	folder := t.TempDir()
	installer.Python = filepath.Join(folder, "python3")
	asked := filepath.Join(folder, "asked")
	if err := toolchaintest.WriteProgram(installer.Python, "#!/bin/sh\necho >>"+asked+"\necho 3.12.1\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 4} { // its version, and its venv module; a later survey asks anew
		if s := status(t, installer, name); s.State != install.StateAvailable {
			t.Errorf("onnxruntime is %s, want available", s.State)
		}
		if lines, err := os.ReadFile(asked); err != nil || len(lines) != want {
			t.Errorf("the Python was started %d times (%v), want %d", len(lines), err, want)
		}
	}
}

// What is missing is said, with what to do, and for what it is needed.
func TestSurveyLacks(t *testing.T) {
	t.Parallel()
	old, _ := newFake(t, "3.11.2", "", "")
	s := status(t, old, "litert")
	if s.State != install.StateLacking || s.Missing[0].What != "Python 3.12 or later" || s.Missing[0].Hint == "" {
		t.Errorf("an old Python: %+v", s)
	}
	bare, _ := newFake(t, "3.12.1", "", "")
	bare.Python = filepath.Join(t.TempDir(), "python3")
	script := "#!/bin/sh\ncase \"$*\" in *ensurepip*) exit 1 ;; esac\necho 3.12.1\n"
	if err := toolchaintest.WriteProgram(bare.Python, script); err != nil {
		t.Fatal(err)
	}
	if s := status(t, bare, name); s.State != install.StateLacking ||
		!strings.Contains(s.Missing[0].What, "venv") || !strings.Contains(s.Missing[0].Hint, "python3-venv") {
		t.Errorf("no venv module: %+v", s)
	}
	fine, _ := newFake(t, "3.12.1", "", "")
	for gpu, want := range map[string]int{"nvidia": 0, "intel": 1} {
		s := status(t, fine, "iree", gpu)
		if len(s.Missing) != want || s.State != install.StateAvailable {
			t.Errorf("a GPU of %s: %+v", gpu, s)
		}
		for _, m := range s.Missing {
			if m.What != "a GPU of nvidia or amd" || m.For == "" {
				t.Errorf("missing %+v", m)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	installer, pips := newFake(t, "3.12.1", "", "")
	if _, err := installer.Remove(t.Context(), name, false); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("nothing to remove: error %v, want CodeNotFound", err)
	}
	r, err := installer.Install(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One that an older version of the program made.
	older := filepath.Join(filepath.Dir(r.Dir), name+"-0123456789abcdef")
	if err := os.CopyFS(older, os.DirFS(r.Dir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(older, "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), string(r.Lock), "sha256:"+strings.Repeat("0", 64), 1))
	if err := os.WriteFile(filepath.Join(older, "record.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}

	release, err := install.Hold(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := installer.Remove(t.Context(), name, false); !registry.HasCode(err, registry.CodeConflict) {
		t.Errorf("while a job uses it: error %v, want CodeConflict", err)
	}
	release()
	removed, err := installer.Remove(t.Context(), name, false)
	if err != nil || len(removed) != 1 || removed[0].Dir != r.Dir {
		t.Errorf("removed %+v (%v), want %s", removed, err, r.Dir)
	}
	if _, err := os.Stat(r.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := install.Hold(t.Context(), r); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("hold of what was removed: error %v, want CodeUnavailable", err)
	}
	if s := status(t, installer, name); s.State != install.StateAvailable || len(s.Installs) != 1 || s.Installs[0].Current {
		t.Errorf("status %+v, want one old install", s)
	}
	if _, err := installer.Remove(t.Context(), name, false); !registry.HasCode(err, registry.CodeNotFound) || len(registry.Hints(err)) == 0 {
		t.Errorf("an old install alone: error %v, want CodeNotFound and a hint", err)
	}
	if removed, err := installer.Remove(t.Context(), name, true); err != nil || len(removed) != 1 || removed[0].Dir != older {
		t.Errorf("removed %+v (%v), want %s", removed, err, older)
	}
	if _, err := installer.Install(t.Context(), name, nil); err != nil {
		t.Errorf("again: %v", err)
	}
	if text, err := os.ReadFile(pips); err != nil || string(text) != strings.Repeat("pip\n", 2) {
		t.Errorf("pip ran %q (%v), want twice", text, err)
	}
	if _, err := installer.Remove(t.Context(), "tensorrt", true); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an unknown toolchain: error %v, want CodeNotFound", err)
	}
}

// A job that holds an install does not keep others from finding it.
func TestHoldIsShared(t *testing.T) {
	t.Parallel()
	installer, _ := newFake(t, "3.12.1", "", "")
	r, err := installer.Install(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		release, err := install.Hold(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	again, err := installer.Install(t.Context(), name, func(p install.Progress) { t.Error("it is made again:", p.Stage) })
	if err != nil || again.Dir != r.Dir {
		t.Errorf("install %s (%v), want %s", again.Dir, err, r.Dir)
	}
}

// What pip prints and fetches is told while it does.
func TestProgress(t *testing.T) {
	t.Parallel()
	installer, _ := newFake(t, "3.12.1", "", `
	echo "Collecting numpy==2.2.6 (from -r requirements.lock (line 1))"
	head -c 3000000 /dev/zero > "$TMPDIR/numpy.whl"
	echo "Collecting onnxruntime==1.30.0 (from -r requirements.lock (line 2))"
	echo "Installing collected packages: numpy, onnxruntime"
	while ! test -e "$TMPDIR/../../told"; do sleep 0.05; done`)
	told := filepath.Join(installer.Root, "toolchains", "told")
	var stages []string
	r, err := installer.Install(t.Context(), name, func(p install.Progress) {
		if len(stages) == 0 || stages[len(stages)-1] != p.Stage {
			stages = append(stages, p.Stage)
		}
		if p.Bytes == 3_000_000 && strings.HasPrefix(p.Stage, "unpacking") {
			os.WriteFile(told, nil, 0o600)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"making an environment with Python 3.12.1", "installing the packages of onnxruntime",
		"fetching numpy 2.2.6, package 1", "fetching onnxruntime 1.30.0, package 2", "unpacking 2 packages"}
	if !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q", stages, want)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was fetched is still there: %v", err)
	}
}
