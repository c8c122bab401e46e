package remote

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

// Login is a credential for a registry, and its origin.
type Login struct {
	authn.AuthConfig
	helper string // the credential helper that returned it; empty for the docker config itself
}

// String describes the credential without its secret, for example "alice by
// docker-credential-ecr-login", or "none".
func (l Login) String() string {
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

// Credential asks the docker config and the credential helpers that it names, and then the
// helper of the cloud to which the registry belongs. It returns the zero Login if there is no
// credential. Errors: CodeUnavailable.
func (c *Repositories) Credential(ctx context.Context, host string) (Login, error) {
	target, err := name.NewRegistry(host)
	if err != nil {
		return Login{}, registry.Errorf(registry.CodeInvalid, "registry %s: %w", host, err)
	}
	found, err := configured(ctx, c.keychain(), target)
	if err != nil {
		return Login{}, noCredential("credential for registry %s from the docker config: %w", host, err)
	}
	if found.AuthConfig != (authn.AuthConfig{}) {
		return found, nil
	}
	if helper := cloudHelper(host); helper != "" {
		return ask(ctx, helper, host)
	}
	return Login{}, nil
}

// configured asks the docker config. It runs the helper that the config names itself, because the keychain
// would pass our own secrets on in the helper's environment.
func configured(ctx context.Context, keychain authn.Keychain, target name.Registry) (Login, error) {
	if helper, host := configuredHelper(target.RegistryStr()); helper != "" {
		return ask(ctx, helper, host)
	}
	found, err := authn.Resolve(ctx, keychain, target)
	if err != nil {
		return Login{}, err
	}
	config, err := authn.Authorization(ctx, found)
	if err != nil || *config == (authn.AuthConfig{}) {
		return Login{}, err
	}
	return Login{AuthConfig: *config}, nil
}

// configuredHelper returns the credential helper that the docker config names for a host, or "", and the
// name of the host in that file. The file is the one that authn.DefaultKeychain reads.
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
		host = authn.DefaultAuthKey // Docker Hub has a key of its own
	}
	return cmp.Or(config.Helpers[host], config.Store), host
}

// configPath returns the file in which docker, or else podman, keeps credentials.
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

// clouds maps credential helpers to the registry hosts of their cloud. The helper knows the identity of the
// machine or of the user who is logged in there.
var clouds = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"ecr-login": regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.(aws|amazonwebservices\.com\.cn))$|^public\.ecr\.aws$`),
		"gcloud":    regexp.MustCompile(`^([a-z]+\.)?gcr\.io$|^[a-z0-9-]+-docker\.pkg\.dev$`),
		"acr-env":   regexp.MustCompile(`^[a-z0-9-]+\.azurecr\.(io|cn|us)$`),
	}
})

// cloudHelper returns the helper of the cloud that a registry belongs to, or "" if it is not installed.
func cloudHelper(host string) string {
	for helper, hosts := range clouds() {
		if _, err := exec.LookPath(helperPrefix + helper); err == nil && hosts.MatchString(host) {
			return helper
		}
	}
	return ""
}

// ask runs a credential helper by docker's protocol: the host on stdin, JSON on stdout. The helper gets the
// environment, where many find the credentials of a cloud, without our own variables. Its stderr may hold a
// secret and is not shown. Errors: CodeUnavailable.
func ask(ctx context.Context, helper, host string) (Login, error) {
	cmd := exec.CommandContext(ctx, helperPrefix+helper, "get")
	cmd.Env = withoutOurs(os.Environ())
	cmd.Stdin = strings.NewReader(host + "\n")
	out, err := cmd.Output()
	if err != nil {
		if bytes.Contains(out, []byte("credentials not found")) {
			return Login{}, nil
		}
		return Login{}, noCredential("credential for registry %s from %s%s: %w", host, helperPrefix, helper, err)
	}
	var found struct{ Username, Secret string }
	if err := json.Unmarshal(out, &found); err != nil || found.Secret == "" {
		return Login{}, noCredential("credential for registry %s from %s%s: %w", host, helperPrefix, helper,
			errors.New("it returned no JSON with Username and Secret"))
	}
	if found.Username == "<token>" {
		return Login{authn.AuthConfig{Username: found.Username, IdentityToken: found.Secret}, helper}, nil
	}
	return Login{authn.AuthConfig{Username: found.Username, Password: found.Secret}, helper}, nil
}

// withoutOurs removes this program's own environment variables, which hold passwords, tokens and paths to them, and those
// by which a job of GitHub asks for tokens in its name.
func withoutOurs(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "COSIGN_") || strings.HasPrefix(entry, "MLPROMOTE_") || strings.HasPrefix(entry, "ACTIONS_ID_TOKEN_REQUEST_")
	})
}

// noCredential is the error for a credential that cannot be read. Its code is not CodeUnauthenticated: in a
// service, the service lacks the credential and not its caller.
func noCredential(format string, args ...any) error {
	return registry.WithExit(registry.Errorf(registry.CodeUnavailable, format, args...), registry.ExitAuthentication)
}

// keychain returns the configured keychain, by default that of the docker config.
func (c *Repositories) keychain() authn.Keychain {
	if c.Keychain == nil {
		return authn.DefaultKeychain
	}
	return c.Keychain
}
