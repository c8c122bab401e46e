//go:build cgo

package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// componentInput is an input in the header of a component.
type componentInput struct {
	Default any      `yaml:"default"`
	Options []string `yaml:"options"`
	Regex   string   `yaml:"regex"`
	Type    string   `yaml:"type"`
}

// gitlabJob is the job of the component, as far as a runner needs it.
type gitlabJob struct {
	Variables map[string]any `yaml:"variables"`
	Before    []string       `yaml:"before_script"`
	Script    []string       `yaml:"script"`
	Artifacts struct {
		Paths   []string          `yaml:"paths"`
		Reports map[string]string `yaml:"reports"`
	} `yaml:"artifacts"`
}

// renderComponent puts inputs into the component as GitLab does: each is checked, then is text of the YAML.
func renderComponent(t *testing.T, inputs map[string]string) (string, error) {
	t.Helper()
	data, err := os.ReadFile(programtest.Root("ci", "gitlab", "templates", "step.yml"))
	if err != nil {
		t.Fatal(err)
	}
	header, body, ok := strings.Cut(string(data), "\n---\n")
	var spec struct {
		Spec struct {
			Inputs map[string]componentInput `yaml:"inputs"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(header), &spec); !ok || err != nil {
		t.Fatalf("header (found: %v): %v", ok, err)
	}
	for name, input := range spec.Spec.Inputs {
		value, given := inputs[name]
		if !given {
			if input.Default == nil {
				return "", fmt.Errorf("input %s is required", name)
			}
			value = fmt.Sprint(input.Default)
		}
		if input.Options != nil && !strings.Contains(" "+strings.Join(input.Options, " ")+" ", " "+value+" ") {
			return "", fmt.Errorf("input %s is none of its options", name)
		}
		if input.Regex != "" && !regexp.MustCompile(input.Regex).MatchString(value) {
			return "", fmt.Errorf("input %s does not match its regex", name)
		}
		if input.Regex == "" && input.Options == nil && input.Type != "array" {
			t.Errorf("input %s takes any text, want a regex", name)
		}
		body = strings.ReplaceAll(body, "$[[ inputs."+name+" ]]", value)
	}
	return body, nil
}

// runGitLab runs the job as a runner does, in dir, with variables of the job and those that the project and jobs before it have.
func runGitLab(t *testing.T, dir, rendered string, env ...string) (gitlabJob, string, int) {
	t.Helper()
	jobs := map[string]gitlabJob{}
	if err := yaml.Unmarshal([]byte(rendered), &jobs); err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	var job gitlabJob
	for _, job = range jobs {
	}
	all := []string{"GITLAB_CI=true", "CI=true", "PATH=" + os.Getenv("PATH")}
	for name, value := range job.Variables {
		if text, plain := value.(string); plain {
			all = append(all, name+"="+text)
			continue
		}
		variable := value.(map[string]any)
		if variable["expand"] != false {
			t.Errorf("variable %s is expanded, want its value as it is", name)
		}
		all = append(all, name+"="+fmt.Sprint(variable["value"]))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eo pipefail\n"+strings.Join(append(job.Before, job.Script...), "\n"))
	cmd.Dir, cmd.Env = dir, append(all, env...) // variables of a project and of dotenv reports come before those of a job
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return job, string(out), cmd.ProcessState.ExitCode()
}

// TestGitLabComponent builds, verifies and promotes by jobs of the component. What a job hands on reaches the next by its artifacts
// alone.
func TestGitLabComponent(t *testing.T) {
	t.Parallel()
	work, state := t.TempDir(), t.TempDir()
	keys, before := jobKeys(t, work, state), map[string]gitlabJob{}
	if err := yaml.Unmarshal([]byte(workflowBlock.FindAllStringSubmatch(lines(t, programtest.Root("docs/how-to/gitlab.md")), -1)[1][1]), &before); err != nil {
		t.Fatal(err)
	}
	project := []string{"COSIGN_PASSWORD=" + jobPassword, "BUILDER_KEY=" + keys("builder"), "VERIFIER_KEY=" + keys("verifier"), "CI_PROJECT_DIR=" + work, "HOME=" + state, "MLPROMOTE_DATA=" + filepath.Join(state, "data"), "MLPROMOTE_CACHE=" + programtest.Cache(t)}
	var handed []string
	for _, step := range []string{"build", "verify", "promote"} {
		rendered, err := renderComponent(t, map[string]string{"step": step, "job": "digits " + step, "program": programtest.Program(t)})
		if err != nil {
			t.Fatal(err)
		}
		first, err := yaml.Marshal(map[string]any{"before_script": before[step+"-digits"].Before})
		if err != nil {
			t.Fatal(err)
		}
		rendered += "  " + strings.ReplaceAll(strings.TrimSpace(string(first)), "\n", "\n  ") + "\n"
		if step == "promote" { // a service would sign with its own key
			project = append(project, "MLPROMOTE_KEYS="+filepath.Dir(keys("promoter")))
		}
		job, log, exit := runGitLab(t, work, rendered, project...)
		if exit != 0 || !strings.Contains(log, "section_start:") {
			t.Fatalf("%s: exit code %d\n%s", step, exit, log)
		}
		last := handed
		if job.Artifacts.Reports["dotenv"] != "" || !slices.Contains(job.Artifacts.Paths, "mlpromote.env") {
			t.Errorf("%s: artifacts %v, want mlpromote.env as a file: a dotenv report sets any variable of later jobs", step, job.Artifacts)
		}
		handed = dotenvReport(t, filepath.Join(work, "mlpromote.env"))
		if len(last) > 0 && valueOf(handed, "MLPROMOTE_RELEASE_DIGEST") != valueOf(last, "MLPROMOTE_RELEASE_DIGEST") {
			t.Errorf("%s: digest %q, want that of the build", step, valueOf(handed, "MLPROMOTE_RELEASE_DIGEST"))
		}
		if step == "promote" {
			continue
		}
		junit := lines(t, filepath.Join(work, job.Artifacts.Reports["junit"]))
		var issues []map[string]any
		var links map[string][]any
		if !strings.HasPrefix(junit, "<?xml") || json.Unmarshal([]byte(lines(t, filepath.Join(work, job.Artifacts.Reports["codequality"]))), &issues) != nil ||
			json.Unmarshal([]byte(lines(t, filepath.Join(work, job.Artifacts.Reports["annotations"]))), &links) != nil {
			t.Errorf("%s: a report that GitLab cannot read: %.80q, %v, %v", step, junit, issues, links)
		}
	}
	if valueOf(handed, "MLPROMOTE_ENVIRONMENT") != "prod" {
		t.Errorf("handed on %q, want a promotion to prod", handed)
	}
}

// dotenvReport reads a report as GitLab does: at most 5 KiB, and nothing but NAME=VALUE.
func dotenvReport(t *testing.T, path string) []string {
	t.Helper()
	text := lines(t, path)
	if len(text) > 5<<10 {
		t.Errorf("the dotenv report has %d bytes, want at most 5 KiB", len(text))
	}
	all := strings.Split(text, "\n")
	for _, line := range all {
		if !regexp.MustCompile(`^[A-Za-z0-9_]+=`).MatchString(line) {
			t.Errorf("the dotenv report has the line %q", line)
		}
	}
	return all
}

func valueOf(env []string, name string) string {
	for _, line := range env {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// TestGitLabComponentSchema checks jobs of each step, and the pipelines of the page, with the schema of GitLab's pipelines.
func TestGitLabComponentSchema(t *testing.T) {
	t.Parallel()
	schema := newStock(t, "check-jsonschema")
	check := func(text string) {
		file := filepath.Join(t.TempDir(), "pipeline.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		schema.must(t, "--builtin-schema", "vendor.gitlab-ci", file)
	}
	for _, step := range []string{"build", "assemble", "verify", "promote", "rollback"} {
		rendered, err := renderComponent(t, map[string]string{"step": step, "job": step, "tags": "[builder]"})
		if err != nil {
			t.Fatal(err)
		}
		check(rendered)
	}
	blocks := workflowBlock.FindAllStringSubmatch(lines(t, programtest.Root("docs/how-to/gitlab.md")), -1)
	if len(blocks) == 0 {
		t.Error("the page has no pipeline")
	}
	check(blocks[0][1])
}

// No input ends the quotes around it, and none of them is run.
func TestGitLabComponentHostileInputs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"step", "job", "stage", "ref", "args", "program", "url", "sha256", "registry", "resource-group"} {
		for _, value := range []string{hostileText, `x"`, "x\ny", "$(touch ran)", "`touch ran`", "x'; touch ran", `\x`, "$CI_JOB_TOKEN", "x\n"} {
			inputs := map[string]string{"step": "build", "job": "x"}
			inputs[name] = value
			if _, err := renderComponent(t, inputs); err == nil {
				t.Errorf("input %s took %q, want it refused", name, value)
			}
		}
	}
	// What earlier jobs and the project say is no input. It is refused as a value.
	dir := t.TempDir()
	rendered, err := renderComponent(t, map[string]string{"step": "verify", "job": "x", "program": programtest.Program(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, log, exit := runGitLab(t, dir, rendered, "HOME="+dir, "MLPROMOTE_DATA="+filepath.Join(dir, "data"), "MLPROMOTE_REF="+hostileText, "CI_COMMIT_REF_NAME="+hostileText)
	if _, err := os.Stat(filepath.Join(dir, "ran")); exit == 0 || err == nil {
		t.Errorf("exit code %d, file made: %v, want a refusal alone\n%s", exit, err == nil, log)
	}
}

// What ran in the job before can write what it likes into the file that is handed on. The ref is read of it, and nothing else.
func TestGitLabComponentHostileOutputs(t *testing.T) {
	t.Parallel()
	const ref = "staging/vision/digits:1.0.0"
	for name, c := range map[string]struct{ text, want string }{
		"other variables": {"MLPROMOTE_PROGRAM=/bin/false\nMLPROMOTE_STEP=build\nMLPROMOTE_REGISTRY=http://127.0.0.1:9\n" +
			"MLPROMOTE_ARGS=--force\nMLPROMOTE_REF=" + ref + "\n", ref},
		"a command": {"MLPROMOTE_REF=$(touch ran)`touch ran`\n", "$(touch ran)`touch ran`"},
		"nothing":   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, "program") // says what the component hands to the program
			rendered, err := renderComponent(t, map[string]string{"step": "verify", "job": "x", "program": program})
			if err != nil {
				t.Fatal(err)
			}
			script := "#!/bin/sh\nprintf '%s|' \"$*\" \"$MLPROMOTE_STEP\" \"$MLPROMOTE_REF\" \"${MLPROMOTE_REGISTRY-unset}\" \"$MLPROMOTE_ARGS\"\n"
			handed := filepath.Join(dir, "mlpromote.env")
			if err := errors.Join(os.WriteFile(program, []byte(script), 0o700), os.WriteFile(handed, []byte(c.text), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, got, exit := runGitLab(t, dir, rendered, "HOME="+dir)
			if want := "ci step|verify|" + c.want + "|unset||"; exit != 0 || got != want {
				t.Errorf("exit code %d, the program got %q, want %q", exit, got, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("what the file says was run")
			}
		})
	}
}

// The job has the script of other systems word for word, since a component cannot carry files.
func TestGitLabComponentHasTheScript(t *testing.T) {
	t.Parallel()
	rendered, err := renderComponent(t, map[string]string{"step": "build", "job": "x"})
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]gitlabJob{}
	if err := yaml.Unmarshal([]byte(rendered), &jobs); err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(lines(t, programtest.Root("ci", "generic", "step.sh")), "\nset -euf\n")
	if got := strings.Join(jobs["x"].Script, "\n"); want == "" || !strings.HasSuffix(strings.TrimSpace(got), want) {
		t.Errorf("the script of the job does not end as ci/generic/step.sh does:\n%s", got)
	}
}
