package serving

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
)

// samples is a setting of every kind.
type samples struct {
	data, name, secret string
	number             int
	flag               bool
	pause              time.Duration
}

func (s *samples) settings() []Setting {
	return []Setting{
		{Name: "data", at: &s.data, Shared: true, usage: "folder"},
		{Name: "a-name", at: &s.name, Fallback: "default", usage: "a name"},
		{Name: "number", at: &s.number, Fallback: "1", usage: "a number"},
		{Name: "flag", at: &s.flag, Fallback: "false", usage: "a flag"},
		{Name: "pause", at: &s.pause, Fallback: "1s", usage: "a pause"},
		{Name: "secret", at: &s.secret, usage: "a secret", secret: true},
	}
}

// resolveSamples reads a command line, an environment and a file.
func resolveSamples(t *testing.T, args []string, env map[string]string, file string) (*samples, map[string]Effective, error) {
	t.Helper()
	s := &samples{data: t.TempDir()}
	c := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	c.Flags().StringVar(&s.data, "data", s.data, "folder")
	settings := s.settings()
	DefineSettings(c, settings)
	if err := c.ParseFlags(args); err != nil {
		return nil, nil, err
	}
	if file != "" {
		if err := os.WriteFile(filepath.Join(s.data, ConfigFile), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Resolve(c, settings, func(name string) string { return env[name] }, "")
	byName := make(map[string]Effective)
	for _, e := range all {
		byName[e.Name] = e
	}
	return s, byName, err
}

// A flag goes before the environment, that before the file, and that before the default,
// for each kind of setting and wherever the others are said too.
func TestSettingsPrecedence(t *testing.T) {
	t.Parallel()
	values := map[string][3]string{ // flag, environment, file
		"a-name": {"from flag", "from env", "from file"}, "number": {"2", "3", "4"}, "flag": {"true", "true", "true"},
		"pause": {"2s", "3s", "4s"}, "secret": {"s-flag", "s-env", "s-file"},
	}
	for name, v := range values {
		for said := range 8 { // a bit for each place
			var args []string
			env, file := make(map[string]string), ""
			want, from := map[string]string{"a-name": "default", "number": "1", "flag": "false", "pause": "1s"}[name], "default"
			if said&4 != 0 {
				file = strings.ReplaceAll(name, "-", "_") + ": " + v[2] + "\n"
				want, from = v[2], ConfigFile
			}
			if said&2 != 0 {
				variable := "MLPROMOTE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
				env[variable] = v[1]
				want, from = v[1], variable
			}
			if said&1 != 0 {
				args = append(args, "--"+name+"="+v[0])
				want, from = v[0], "--"+name
			}
			s, all, err := resolveSamples(t, args, env, file)
			if err != nil {
				t.Fatalf("%s, places %b: %v", name, said, err)
			}
			i := slices.IndexFunc(s.settings(), func(s Setting) bool { return s.Name == name })
			if got := s.settings()[i].String(); got != want || !strings.HasSuffix(all[name].From, from) {
				t.Errorf("%s, places %b: got %q from %s, want %q from %s", name, said, got, all[name].From, want, from)
			}
		}
	}
}

func TestSettingsRefuse(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		args []string
		env  map[string]string
		file string
		says string
	}{
		"number in the environment": {nil, map[string]string{"MLPROMOTE_NUMBER": "many"}, "", "MLPROMOTE_NUMBER=many: want a whole number"},
		"pause in the environment":  {nil, map[string]string{"MLPROMOTE_PAUSE": "5"}, "", "MLPROMOTE_PAUSE=5: want a time such as 90s"},
		"flag in the environment":   {nil, map[string]string{"MLPROMOTE_FLAG": "maybe"}, "", "want true or false"},
		"secret in the environment": {nil, map[string]string{"MLPROMOTE_PAUSE": "1s"}, "pause: hunter2\n", "serve.yaml:1:8: pause: want a time"},
		"typo in the file":          {nil, nil, "a_nane: x\n", `serve.yaml:1:1: unknown setting "a_nane" (did you mean "a_name"?)`},
		"flag's name in the file":   {nil, nil, "a-name: x\n", `unknown setting "a-name"`},
		"a list":                    {nil, nil, "a_name: [x]\n", "a_name: want text"},
		"nothing":                   {nil, nil, "number:\n", "number: want a whole number"},
		"no mapping":                {nil, nil, "- number\n", "found a list"},
		"twice":                     {nil, nil, "number: 1\nnumber: 2\n", "twice"},
		"overridden all the same":   {[]string{"--number=1"}, nil, "number: many\n", "serve.yaml:1:9: number: want a whole number"},
		"another directory":         {nil, nil, "data: /elsewhere\n", "cannot name another"},
	} {
		_, _, err := resolveSamples(t, c.args, c.env, c.file)
		if registry.CodeOf(err) != registry.CodeInvalid || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", title, err, c.says)
		}
	}
	if _, _, err := resolveSamples(t, nil, nil, "# nothing is set here\n"); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// A secret is never shown, neither as it is nor in what is wrong with it.
func TestSettingsHideSecrets(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"hunter2": "(hidden)", "": "", "postgres://mlpromote:hunter2@db.example.com/catalog?sslpassword=hunter2": "postgres://mlpromote:xxxxx@db.example.com/catalog",
		"host=db password=hunter2": "(hidden)", "postgres://hunter2%zz@": "(hidden)",
	} {
		_, all, err := resolveSamples(t, nil, map[string]string{"MLPROMOTE_SECRET": value}, "")
		if err != nil || all["secret"].Value != want {
			t.Errorf("%s is shown as %q (%v), want %q", value, all["secret"].Value, err, want)
		}
	}
}

// Every setting of the service has a default that it takes, a name that reads the same
// everywhere, and a line in the reference.
func TestServeSettings(t *testing.T) {
	t.Parallel()
	var config Config
	settings := Settings(noFlags(), &config)
	page, err := os.ReadFile("../../../../docs/reference/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range settings {
		if err := s.Set(s.Fallback); err != nil || s.String() != s.Fallback {
			t.Errorf("default of %s is %q and becomes %q (%v)", s.Name, s.Fallback, s.String(), err)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(s.Name) || s.usage == "" {
			t.Errorf("%q: want words with '-' between them, and a usage", s.Name)
		}
		want = append(want, fmt.Sprintf("| `--%s` | `%s` | `%s` | %s | %s |", s.Name, s.Env(), s.key(), ui.Dash(s.Fallback), s.usage))
	}
	if err := config.Check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	got := regexp.MustCompile("(?m)^\\| `--.*$").FindAllString(string(page), -1)
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference/serve.md wants these lines:\n%s", strings.Join(want, "\n"))
	}
}

// defaultConfig is a service as it is when nobody sets anything.
func defaultConfig(t testing.TB) Config {
	t.Helper()
	var config Config
	for _, s := range Settings(noFlags(), &config) {
		if err := s.Set(s.Fallback); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

func TestServeConfigRefuses(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Config){
		"header-timeout":            func(c *Config) { c.headerTimeout = 0 },
		"body-timeout":              func(c *Config) { c.bodyTimeout = 0 },
		"idle-timeout":              func(c *Config) { c.idleTimeout = -1 },
		"gc-interval":               func(c *Config) { c.collect = time.Millisecond },
		"shutdown-grace":            func(c *Config) { c.ShutdownGrace = -1 },
		"max-header-bytes":          func(c *Config) { c.maxHeaderBytes = 10 },
		"log-level":                 func(c *Config) { c.LogLevel = "loud" },
		"log-format":                func(c *Config) { c.LogFormat = "xml" },
		"metrics-listen":            func(c *Config) { c.MetricsListen = "9090" },
		"others reach this address": func(c *Config) { c.Listen = "0.0.0.0:5080" },
		"want HOST:PORT":            func(c *Config) { c.Listen = "127.0.0.1" },
		"grace of 1s is too ":       func(c *Config) { c.keep.Grace = time.Second },
	} {
		config := defaultConfig(t)
		change(&config)
		if err := config.Check(); registry.CodeOf(err) != registry.CodeInvalid || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// noFlags are flags that nobody gave.
func noFlags() SharedFlags {
	return SharedFlags{Data: new(string), Keys: new(string), Database: new(string), Storage: new(string), PolicyDir: new(string)}
}
