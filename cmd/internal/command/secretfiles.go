package command

import (
	"os"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// SecretFiles reads the files that stand for variables: what NAME_FILE names has the value of NAME, so that
// what systemd, Kubernetes and compose give as files is in no environment. It returns getenv with those values.
// Errors: CodeInvalid.
func SecretFiles(getenv func(string) string, names ...string) (func(string) string, error) {
	read := make(map[string]string)
	for _, name := range names {
		path := getenv(name + "_FILE")
		switch {
		case path == "":
			continue
		case getenv(name) != "":
			return nil, registry.Errorf(registry.CodeInvalid, "%s and %s_FILE are both set: want one of the two", name, name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "%s_FILE: %w", name, err)
		}
		read[name] = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	}
	return func(name string) string {
		if text, ok := read[name]; ok {
			return text
		}
		return getenv(name)
	}, nil
}

// JobSecret is the variable with which a job of GitHub Actions can ask for tokens in its name.
const JobSecret = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"

// KeepJobSecret takes [JobSecret] out of the environment of this process, so that nothing that it starts has it: no credential
// helper, no plugin of a key service, no converter. It returns os.Getenv with the variable as it was.
func KeepJobSecret() (getenv func(string) string) {
	secret := os.Getenv(JobSecret)
	_ = os.Unsetenv(JobSecret) // it fails for names with "=" alone
	return func(name string) string {
		if name == JobSecret {
			return secret
		}
		return os.Getenv(name)
	}
}
