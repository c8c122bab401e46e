// Package cistep runs a verb as a step of a CI job: its log in a group, its results as outputs of the step, its failure as
// an annotation, all in the form of the system that the job runs in.
package cistep

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// system is a CI system, as far as a step speaks to it. What it writes goes to the log of the job.
type system interface {
	// mask hides a secret in what the job prints from now on.
	mask(secret string) string
	// open begins a group of lines, within which no line is a command to the system; close ends it.
	open(title string) string
	close() string
	// failure marks what went wrong.
	failure(title, message string) string
	// marks is the format of ci report whose text in the log marks lines of the spec; empty for none.
	marks() string
	// Files, to which the step can write before it begins, for outputs and the summary; empty for none.
	outputs() string
	summary() string
	// encode gives what outputs, sorted by name, add to files, by their paths.
	encode(names []string, values map[string]string) (map[string]string, error)
}

// github is GitHub Actions. Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands,
// and for the exact escapes src/Runner.Common/ActionCommand.cs of actions/runner.
type github struct {
	getenv func(string) string
	token  string // ends the part of the log without commands; who does not know it cannot
}

// data and property escape what a command says, and a property of it.
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func (g *github) mask(secret string) string {
	var text strings.Builder
	for line := range strings.Lines(secret) { // the log is masked line by line
		if line = strings.TrimSpace(line); line != "" {
			text.WriteString("::add-mask::" + githubData.Replace(line) + "\n")
		}
	}
	return text.String()
}

func (g *github) open(title string) string {
	return "::group::" + githubData.Replace(title) + "\n::stop-commands::" + g.token + "\n"
}

// close begins with an end of line, in case the last line has none.
func (g *github) close() string { return "\n::" + g.token + "::\n::endgroup::\n" }

func (g *github) failure(title, message string) string {
	return "::error title=" + githubProperty.Replace(title) + "::" + githubData.Replace(message) + "\n"
}

func (g *github) marks() string { return "github" }

func (g *github) outputs() string { return g.getenv("GITHUB_OUTPUT") }

func (g *github) summary() string { return g.getenv("GITHUB_STEP_SUMMARY") }

// encode writes each value between lines of a random text, so that no value can end itself and begin another one.
func (g *github) encode(names []string, values map[string]string) (map[string]string, error) {
	var text strings.Builder
	for _, name := range names {
		end := rand.Text()
		if strings.Contains(values[name], end) {
			return nil, registry.Errorf(registry.CodeInternal, "output %s contains a random text", name)
		}
		text.WriteString(name + "<<" + end + "\n" + values[name] + "\n" + end + "\n")
	}
	return map[string]string{g.outputs(): text.String()}, nil
}

// gitlab is GitLab CI/CD. Source: https://docs.gitlab.com/ci/jobs/job_logs/ and, for dotenv reports,
// https://docs.gitlab.com/ci/yaml/artifacts_reports/.
type gitlab struct {
	getenv  func(string) string
	now     func() time.Time
	section string
}

// mask can do nothing: GitLab masks variables by their settings.
func (g *gitlab) mask(string) string { return "" }

func (g *gitlab) open(title string) string {
	return fmt.Sprintf("\x1b[0Ksection_start:%d:%s\r\x1b[0K%s\n", g.now().Unix(), g.section, registry.PlainText(title))
}

func (g *gitlab) close() string {
	return fmt.Sprintf("\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", g.now().Unix(), g.section)
}

func (g *gitlab) failure(title, message string) string {
	return title + ": " + registry.PlainText(message) + "\n"
}

func (g *gitlab) marks() string { return "" } // its reports do

func (g *gitlab) outputs() string { return g.getenv("MLPROMOTE_CI_OUTPUTS") }

func (g *gitlab) summary() string { return g.getenv("MLPROMOTE_CI_SUMMARY") }

// maxDotenv is how large a dotenv report may be.
const maxDotenv = 5 << 10

// encode writes a dotenv report, which knows neither quotes nor values of several lines.
func (g *gitlab) encode(names []string, values map[string]string) (map[string]string, error) {
	text := dotenv(names, values)
	if len(text) > maxDotenv {
		text = dotenv(withoutLists(names, values), values)
	}
	return map[string]string{g.outputs(): text}, nil
}

// withoutLists leaves out outputs that grow with the engines. They are in the JSON of stdout too.
func withoutLists(names []string, values map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(values[name], "{") })
}

// generic is a system that says nothing of itself: Jenkins, or a shell.
type generic struct{ getenv func(string) string }

func (g generic) mask(string) string { return "" }

func (g generic) open(title string) string { return "--- " + registry.PlainText(title) + "\n" }

func (g generic) close() string { return "" }

func (g generic) failure(title, message string) string {
	return title + ": " + registry.PlainText(message) + "\n"
}

func (g generic) marks() string { return "" }

func (g generic) outputs() string { return g.getenv("MLPROMOTE_CI_OUTPUTS") }

func (g generic) summary() string { return g.getenv("MLPROMOTE_CI_SUMMARY") }

func (g generic) encode(names []string, values map[string]string) (map[string]string, error) {
	return map[string]string{g.outputs(): dotenv(names, values)}, nil
}

// dotenv is a line NAME=VALUE for each output, with names as variables have them.
func dotenv(names []string, values map[string]string) string {
	var text strings.Builder
	for _, name := range names {
		variable := "MLPROMOTE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		text.WriteString(variable + "=" + oneLine(values[name]) + "\n")
	}
	return text.String()
}

// oneLine is a text with spaces for ends of lines.
func oneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) }

// appendTo adds to a file that the system gave to the step.
func appendTo(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	_, err = io.WriteString(f, text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
