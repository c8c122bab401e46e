package origin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// maxOutput is how much git may print, in bytes: a million files with names of 250 bytes.
const maxOutput = 256 << 20

// git runs git on the repository of a folder.
type git struct {
	folder  string
	filters []string // keys of the configuration that name filters
}

// lacking reports whether there is no git on this machine.
func (git) lacking() bool {
	_, err := exec.LookPath("git")
	return err != nil
}

// run runs git and returns what it printed.
func (g git) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "--no-replace-objects", "--literal-pathspecs"}, args...)...)
	cmd.Dir, cmd.Env = g.folder, g.environment()
	out := &limited{left: maxOutput}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// line runs git and returns its only line.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// environment is that of git. It has nothing of the caller's: neither secrets, nor GIT_DIR and the like. The configuration
// of the machine and the user is not read. What the repository's configuration could make git run is turned
// off, as is every transport: a partial clone would fetch objects that it lacks.
func (g git) environment() []string {
	settings := [][2]string{
		{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"core.untrackedCache", "false"},
		{"safe.directory", "*"}, // the owner may be another user, as in containers: see above
	}
	for _, key := range g.filters {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		settings = append(settings, [2]string{key, value})
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)),
	}
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s[0], "GIT_CONFIG_VALUE_"+n+"="+s[1])
	}
	return env
}

// withoutFilters is git that runs no filter that the repository configures.
func (g git) withoutFilters(ctx context.Context) (git, error) {
	out, err := g.run(ctx, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == 1 { // there are none
		return g, nil
	}
	g.filters = fields(out)
	return g, err
}

// fields splits output that has NUL after each item.
func fields(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// limited keeps a limited number of bytes, and refuses more.
type limited struct {
	bytes.Buffer
	left int
}

var errTooMuch = errors.New("git prints too much")

// Write keeps p, or refuses it.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}
