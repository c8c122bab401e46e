//go:build cgo

package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// hostileText is what a stranger would put into a value that reaches the log or a script.
const hostileText = "$(touch ran)`touch ran`;touch ran\n::error::forged\n##[error]forged ##[set-output name=ref]forged\n::add-path::/forged%0A::warning::forged"

// Both forms of a command to the runner. Source: src/Runner.Common/ActionCommand.cs of actions/runner: the newer one begins a
// line, the older one is found anywhere in it.
var (
	newCommand = regexp.MustCompile(`^\s*::([A-Za-z][A-Za-z0-9-]*)(?: ([^:]*))?::(.*)$`)
	oldCommand = regexp.MustCompile(`##\[([A-Za-z][A-Za-z0-9-]*)[^\]]*\]`)
)

// commands are those that the runner would follow in a log.
func commands(log string) (all []string) {
	stopped := ""
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		if stopped != "" {
			if strings.TrimSpace(line) == "::"+stopped+"::" {
				stopped = ""
			}
			continue
		}
		if found := newCommand.FindStringSubmatch(line); found != nil {
			if found[1] == "stop-commands" {
				stopped = found[3]
				continue
			}
			all = append(all, line)
		} else if found := oldCommand.FindString(line); found != "" {
			all = append(all, found)
		}
	}
	return all
}

// Each input, the names in a spec, and the branch hold commands to the runner and to a shell. The runner follows the commands of
// the action alone.
func TestGitHubActionHostileValues(t *testing.T) {
	t.Parallel()
	program := programtest.Program(t)
	const spec = "model: \"vision/x\\n::error::forged\"\nspec: 1\n"
	for name, c := range map[string]struct {
		script string
		env    []string
	}{
		"the program":              {"setup.sh", []string{"PROGRAM=" + hostileText, "URL=", "SHA256="}},
		"the URL":                  {"setup.sh", []string{"PROGRAM=", "URL=" + hostileText, "SHA256=" + strings.Repeat("0", 64)}},
		"the checksum":             {"setup.sh", []string{"PROGRAM=", "URL=https://127.0.0.1:1/x", "SHA256=" + hostileText}},
		"a URL that is a flag":     {"setup.sh", []string{"PROGRAM=", "URL=--output=ran", "SHA256=" + strings.Repeat("0", 64)}},
		"the step":                 {"run.sh", []string{"STEP=" + hostileText, "ARGS=", "MLPROMOTE_REGISTRY="}},
		"a step that is a flag":    {"run.sh", []string{"STEP=--help", "ARGS=", "MLPROMOTE_REGISTRY="}},
		"arguments of build":       {"run.sh", []string{"STEP=build", "ARGS=" + hostileText, "MLPROMOTE_REGISTRY="}},
		"arguments of promote":     {"run.sh", []string{"STEP=promote", "ARGS=" + hostileText, "MLPROMOTE_REGISTRY="}},
		"an argument of matrix":    {"run.sh", []string{"STEP=matrix", "ARGS=" + strings.ReplaceAll(hostileText, "\n", " "), "MLPROMOTE_REGISTRY="}},
		"a ref":                    {"run.sh", []string{"STEP=promote", "ARGS=staging/x##[error]forged:1", "MLPROMOTE_REGISTRY="}},
		"the release":              {"run.sh", []string{"STEP=verify", "ARGS=", "MLPROMOTE_REGISTRY=", "REF=" + hostileText}},
		"a release that is a flag": {"run.sh", []string{"STEP=promote", "ARGS=", "MLPROMOTE_REGISTRY=", "REF=--help"}},
		"the reason":               {"run.sh", []string{"STEP=rollback", "ARGS=--env=prod", "MLPROMOTE_REGISTRY=", "REF=vision/x", "REASON=" + hostileText}},
		"the audience":             {"run.sh", []string{"STEP=promote", "ARGS=", "MLPROMOTE_REGISTRY=http://127.0.0.1:1", "MLPROMOTE_TOKEN_AUDIENCE=" + hostileText}},
		"the service":              {"run.sh", []string{"STEP=verify", "ARGS=staging/x:1", "MLPROMOTE_REGISTRY=" + hostileText}},
		"the spec":                 {"run.sh", []string{"STEP=build", "ARGS=", "MLPROMOTE_REGISTRY="}},
		"the branch":               {"run.sh", []string{"STEP=build", "ARGS=", "MLPROMOTE_REGISTRY=", "GITHUB_REF=" + hostileText, "GITHUB_REF_NAME=" + hostileText}},
		"a secret of more lines":   {"run.sh", []string{"STEP=build", "ARGS=", "MLPROMOTE_REGISTRY=", "MLPROMOTE_TOKEN=" + hostileText}},
		"the secret of a runner":   {"run.sh", []string{"STEP=build", "ARGS=", "MLPROMOTE_REGISTRY=", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + hostileText}},
		"a token of another form":  {"run.sh", []string{"STEP=build", "ARGS=", "MLPROMOTE_REGISTRY=", "MLPROMOTE_CI_TOKEN=" + hostileText}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "mlpromote.yaml"), []byte(spec), 0o600); err != nil {
				t.Fatal(err)
			}
			outputs := filepath.Join(dir, "outputs")
			cmd := exec.CommandContext(t.Context(), "bash", programtest.Root("ci", "github", c.script))
			cmd.Dir = dir
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PROGRAM=" + program, "GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + outputs,
				"GITHUB_PATH=" + filepath.Join(dir, "paths"), "MLPROMOTE_DATA=" + filepath.Join(dir, "data")}, c.env...)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("got no failure, want one\n%s", out)
			}
			for _, command := range commands(string(out)) {
				own := strings.HasPrefix(command, "::error title=mlpromote") || strings.HasPrefix(command, "::group::mlpromote ") ||
					command == "::group::result" || command == "::endgroup::" || strings.HasPrefix(command, "::add-mask::")
				if !own {
					t.Errorf("the runner follows %q, want no command of others\n%s", command, out)
				}
			}
			if written, err := os.ReadFile(outputs); err == nil && strings.Contains(string(written), "forged") {
				t.Errorf("got the outputs %q, want none that a value made", written)
			}
			for _, file := range []string{"ran", "paths"} {
				if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
					t.Errorf("the file %s was made, want no effect of a value", file)
				}
			}
		})
	}
}
