package main

import (
	"os"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// secretVariables are the variables that a file can hold instead, as NAME_FILE names it:
// what systemd, Kubernetes and compose give as files is then in no environment.
func secretVariables() []string {
	return []string{"COSIGN_PASSWORD", "MLPROMOTE_DATABASE", "MLPROMOTE_STORAGE", "MLPROMOTE_TOKEN"}
}

// readSecretFiles reads the files that stand for variables. Errors: CodeInvalid.
func (a *app) readSecretFiles() error {
	read := make(map[string]string)
	for _, name := range secretVariables() {
		path := a.getenv(name + "_FILE")
		switch {
		case path == "":
			continue
		case a.getenv(name) != "":
			return registry.Errorf(registry.CodeInvalid, "%s and %s_FILE are both set: want one of the two", name, name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s_FILE: %w", name, err)
		}
		read[name] = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	}
	environment := a.getenv
	a.getenv = func(name string) string {
		if text, ok := read[name]; ok {
			return text
		}
		return environment(name)
	}
	return nil
}
