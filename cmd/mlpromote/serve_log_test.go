//go:build cgo

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every line of a service whose log is JSON is JSON, also where it does not start.
func TestJSONLogOfFailures(t *testing.T) {
	t.Parallel()
	program := fastProgram(t)
	for name, c := range map[string]struct {
		args  []string
		env   string
		files map[string]string
		exit  int
		says  string
	}{
		"a flag that is unknown":      {[]string{"--log-format", "json", "--bogus"}, "", nil, 2, "unknown flag: --bogus"},
		"a bad value":                 {[]string{"--log-format=json", "--gc-interval", "soon"}, "", nil, 2, "gc-interval"},
		"a variable of the format":    {[]string{"--config", "missing.yaml"}, "MLPROMOTE_LOG_FORMAT=json", nil, 2, "missing.yaml"},
		"a file that sets the format": {nil, "", map[string]string{"serve.yaml": "log_format: json\ngc_interval: 1ms\n"}, 2, "gc-interval"},
		"bad environments": {
			[]string{"--log-format", "json", "--listen", "127.0.0.1:0"},
			"", map[string]string{"environments.yaml": "environments: 1\n"}, 2, "environments.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(data, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), program, append([]string{"serve", "--data", data}, c.args...)...)
			cmd.Env = append(os.Environ(), c.env)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != c.exit {
				t.Errorf("exit code %d, want %d", got, c.exit)
			}
			said := ""
			for line := range strings.Lines(stderr.String()) {
				var l struct{ Level, Msg, Time string }
				if err := json.Unmarshal([]byte(line), &l); err != nil || l.Level == "" || l.Time == "" {
					t.Errorf("not a line of a JSON log: %s", line)
				}
				if l.Level == "ERROR" {
					said += l.Msg
				}
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("the errors say %q, want %q among them", said, c.says)
			}
		})
	}
}
