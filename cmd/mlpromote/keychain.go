package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"mlpromote.dev/mlpromote/registry"
)

// login is a credential for a registry, with where it is from.
type login struct {
	authn.AuthConfig
	helper string // the credential helper that gave it; empty for the docker config itself
}

// String names the credential, and says nothing of what it is.
func (l login) String() string {
	who := l.Username
	switch {
	case l.AuthConfig == authn.AuthConfig{}:
		return "none"
	case l.IdentityToken != "" || l.RegistryToken != "" || who == "":
		who = "a token"
	}
	if l.helper == "" {
		return who
	}
	return who + " by " + helperPrefix + l.helper
}

// helperPrefix begins the names of credential helpers, as docker has it.
const helperPrefix = "docker-credential-"

// credential asks the docker config, with the credential helpers that it names, and then
// the helper of the cloud that the registry belongs to. Errors: CodeUnavailable.
func (c *contents) credential(ctx context.Context, host string) (login, error) {
	target, err := name.NewRegistry(host)
	if err != nil {
		return login{}, registry.Errorf(registry.CodeInvalid, "registry %s: %w", host, err)
	}
	found, err := configured(ctx, c.keychain, target)
	if err != nil {
		return login{}, noCredential("credential for registry %s from the docker config: %w", host, err)
	}
	if found.AuthConfig != (authn.AuthConfig{}) {
		return found, nil
	}
	if helper := cloudHelper(host); helper != "" {
		return ask(ctx, helper, host)
	}
	return login{}, nil
}

// configured asks the docker config. The helper that it names is asked here and not by the
// keychain, which would give it our secrets.
func configured(ctx context.Context, keychain authn.Keychain, target name.Registry) (login, error) {
	if helper, host := configuredHelper(target.RegistryStr()); helper != "" {
		return ask(ctx, helper, host)
	}
	found, err := authn.Resolve(ctx, keychain, target)
	if err != nil {
		return login{}, err
	}
	config, err := authn.Authorization(ctx, found)
	if err != nil || *config == (authn.AuthConfig{}) {
		return login{}, err
	}
	return login{AuthConfig: *config}, nil
}

// configuredHelper is the credential helper that the docker config names for a host, or
// "", and what the host is called there. The file is the one that authn.DefaultKeychain
// reads.
func configuredHelper(host string) (helper, called string) {
	var config struct {
		Store   string            `json:"credsStore"`
		Helpers map[string]string `json:"credHelpers"`
	}
	data, err := os.ReadFile(configPath())
	if err != nil || json.Unmarshal(data, &config) != nil {
		return "", host
	}
	if host == name.DefaultRegistry {
		host = authn.DefaultAuthKey // Docker Hub, for reasons of its own
	}
	return cmp.Or(config.Helpers[host], config.Store), host
}

// configPath is where docker, or else podman, keeps credentials.
func configPath() string {
	home, _ := os.UserHomeDir() // no home has no file
	exists := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	of := cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker"))
	if exists(filepath.Join(home, ".docker", "config.json")) || exists(filepath.Join(of, "config.json")) {
		return filepath.Join(of, "config.json")
	}
	if path := os.Getenv("REGISTRY_AUTH_FILE"); path != "" && exists(path) {
		return path
	}
	path := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "containers", "auth.json")
	if os.Getenv("XDG_RUNTIME_DIR") != "" && exists(path) {
		return path
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "containers", "auth.json")
}

// clouds are the registries of clouds, with the credential helpers that know the identity
// of a machine, or of who is logged in, there.
var clouds = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"ecr-login": regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.(aws|amazonwebservices\.com\.cn))$|^public\.ecr\.aws$`),
		"gcloud":    regexp.MustCompile(`^([a-z]+\.)?gcr\.io$|^[a-z0-9-]+-docker\.pkg\.dev$`),
		"acr-env":   regexp.MustCompile(`^[a-z0-9-]+\.azurecr\.(io|cn|us)$`),
	}
})

// cloudHelper is the helper of the cloud that a registry belongs to, if it is installed.
func cloudHelper(host string) string {
	for helper, hosts := range clouds() {
		if _, err := exec.LookPath(helperPrefix + helper); err == nil && hosts.MatchString(host) {
			return helper
		}
	}
	return ""
}

// ask runs a credential helper, by docker's protocol: the host on stdin, JSON on stdout.
// It sees the environment, since that is where many find the credentials of a cloud, but
// for what is for this program. What it writes besides may hold a secret and is not repeated. Errors: CodeUnavailable.
func ask(ctx context.Context, helper, host string) (login, error) {
	cmd := exec.CommandContext(ctx, helperPrefix+helper, "get")
	cmd.Env = withoutOurs(os.Environ())
	cmd.Stdin = strings.NewReader(host + "\n")
	out, err := cmd.Output()
	if err != nil {
		if bytes.Contains(out, []byte("credentials not found")) {
			return login{}, nil
		}
		return login{}, noCredential("credential for registry %s from %s%s: %w", host, helperPrefix, helper, err)
	}
	var found struct{ Username, Secret string }
	if err := json.Unmarshal(out, &found); err != nil || found.Secret == "" {
		return login{}, noCredential("credential for registry %s from %s%s: %w", host, helperPrefix, helper,
			errors.New("it gave no JSON with Username and Secret"))
	}
	if found.Username == "<token>" {
		return login{authn.AuthConfig{Username: found.Username, IdentityToken: found.Secret}, helper}, nil
	}
	return login{authn.AuthConfig{Username: found.Username, Password: found.Secret}, helper}, nil
}

// withoutOurs is an environment without what is for this program: passwords, tokens, and
// where they are.
func withoutOurs(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "COSIGN_") || strings.HasPrefix(entry, "MLPROMOTE_")
	})
}

// noCredential is the error of a credential that cannot be had. It is not that of a caller
// whom a service does not know: the service would be the one without it.
func noCredential(format string, args ...any) error {
	return registry.WithExit(registry.Errorf(registry.CodeUnavailable, format, args...), registry.ExitAuthentication)
}
