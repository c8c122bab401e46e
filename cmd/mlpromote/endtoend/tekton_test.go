//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// tektonTask is the task, as far as a run of it needs it.
type tektonTask struct {
	Spec struct {
		Params []struct {
			Name    string  `yaml:"name"`
			Default *string `yaml:"default"`
		} `yaml:"params"`
		Results []struct {
			Name string `yaml:"name"`
		} `yaml:"results"`
		Steps []struct {
			Command []string `yaml:"command"`
			Args    []string `yaml:"args"`
			Env     []struct {
				Name      string         `yaml:"name"`
				Value     string         `yaml:"value"`
				ValueFrom map[string]any `yaml:"valueFrom"`
			} `yaml:"env"`
		} `yaml:"steps"`
	} `yaml:"spec"`
}

func readTask(t *testing.T) tektonTask {
	t.Helper()
	var task tektonTask
	if err := yaml.Unmarshal([]byte(lines(t, programtest.Root("ci", "tekton", "mlpromote.yaml"))), &task); err != nil || len(task.Spec.Steps) != 1 {
		t.Fatalf("%d steps, error %v", len(task.Spec.Steps), err)
	}
	return task
}

// runTask runs the step as Tekton and the kubelet do: parameters are put into values once, then variables that were set before,
// where a value has $(NAME). It gives the results by name. keys is the folder of the workspace, empty for none; secrets are the values of the secret, by variable.
func runTask(t *testing.T, work, keys string, params, secrets map[string]string, env ...string) (results map[string]string, log string, exit int) {
	t.Helper()
	task, folder := readTask(t), t.TempDir()
	var pairs []string
	for _, p := range task.Spec.Params {
		value, given := params[p.Name]
		if !given && p.Default == nil {
			t.Fatalf("parameter %s is required", p.Name)
		} else if !given {
			value = *p.Default
		}
		pairs = append(pairs, "$(params."+p.Name+")", value)
	}
	fill := strings.NewReplacer(append(pairs, "$(workspaces.source.path)", work, "$(workspaces.keys.path)", keys, "/tekton/results", folder)...)
	step, set := task.Spec.Steps[0], []string{}
	for _, variable := range step.Env {
		value, ok := fill.Replace(variable.Value), true
		if variable.ValueFrom != nil {
			value, ok = secrets[variable.Name]
		} else {
			value = strings.NewReplacer(set...).Replace(value)
		}
		if ok {
			set, env = append(set, "$("+variable.Name+")", value), append(env, variable.Name+"="+value)
		}
	}
	args := append([]string{}, step.Args...)
	for i := range args {
		args[i] = strings.NewReplacer(set...).Replace(fill.Replace(args[i]))
	}
	if len(step.Command) != 1 || step.Command[0] != "mlpromote" {
		t.Fatalf("the step runs %q, want mlpromote", step.Command)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Program(t), args...)
	cmd.Dir, cmd.Env = work, append(env, "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	results = map[string]string{}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		results[f.Name()] = lines(t, filepath.Join(folder, f.Name()))
	}
	for name := range results {
		declared := false
		for _, r := range task.Spec.Results {
			declared = declared || r.Name == name
		}
		if !declared {
			t.Errorf("the step wrote the result %q, which the task does not declare", name)
		}
	}
	return results, string(out), cmd.ProcessState.ExitCode()
}

// TestTektonTask builds, verifies and promotes by runs of the task.
func TestTektonTask(t *testing.T) {
	t.Parallel()
	work, state := t.TempDir(), t.TempDir()
	keys := jobKeys(t, work, state)
	ref, digest := "", ""
	for _, run := range [][2]string{{"build", "builder"}, {"verify", "verifier"}, {"promote", "promoter"}} {
		step, role := run[0], run[1]
		got, log, exit := runTask(t, work, filepath.Dir(keys(role)), map[string]string{"step": step, "image": "x", "registry": "", "ref": ref}, map[string]string{"COSIGN_PASSWORD": jobPassword},
			"HOME="+state, "MLPROMOTE_DATA="+filepath.Join(state, "data"), "MLPROMOTE_CACHE="+programtest.Cache(t))
		if exit != 0 {
			t.Fatalf("%s: exit code %d\n%s", step, exit, log)
		}
		if digest != "" && got["release-digest"] != digest {
			t.Errorf("%s: digest %q, want that of the build, %q", step, got["release-digest"], digest)
		}
		ref, digest = got["ref"], got["release-digest"]
	}
}

// No parameter is read as a flag or a step, and none brings a secret into the log.
func TestTektonTaskHostileParameters(t *testing.T) {
	t.Parallel()
	const secret = "mlp_secretsecretsecret"
	for _, name := range []string{"step", "ref", "args", "registry"} {
		for _, value := range []string{hostileText, "--help", "$(MLPROMOTE_TOKEN)", "staging/$(MLPROMOTE_TOKEN):1", "$(COSIGN_PASSWORD)"} {
			if name == "args" && value == "--help" {
				continue // a flag is an argument
			}
			t.Run(name+" "+value, func(t *testing.T) {
				t.Parallel()
				work := t.TempDir()
				params := map[string]string{"step": "verify", "image": "x", "registry": "http://127.0.0.1:1", "ref": "staging/x:1"}
				params[name] = value
				_, log, exit := runTask(t, work, "", params, map[string]string{"MLPROMOTE_TOKEN": secret, "COSIGN_PASSWORD": secret}, "HOME="+work)
				if _, err := os.Stat(filepath.Join(work, "ran")); exit == 0 || err == nil || strings.Contains(log, secret) {
					t.Errorf("exit code %d, file made: %v, want a refusal without the secret\n%s", exit, err == nil, log)
				}
			})
		}
	}
}

// TestTektonTaskIsValid checks the task with the code of Tekton's controller.
func TestTektonTaskIsValid(t *testing.T) {
	t.Parallel()
	newStock(t, "tekton").must(t, programtest.Root("ci", "tekton", "mlpromote.yaml"))
}
