package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"mlpromote.dev/mlpromote/registry"
)

// onlyHere makes a folder all that there is of home, configs and programs. It keeps the
// test from running beside others.
func onlyHere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
		t.Setenv(key, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// aliceSecret is a docker config with a credential, and a helper for another host.
const aliceSecret = `{"auths": {"one.example.com": {"auth": "YWxpY2U6c2VjcmV0"}}, "credHelpers": {"two.example.com": "test"}}`

// Wherever docker and podman keep credentials, they are found, and said to be from there.
func TestCredentialPlaces(t *testing.T) {
	for _, place := range []struct{ path, key, value string }{
		{"docker/config.json", "DOCKER_CONFIG", "docker"},
		{"podman.json", "REGISTRY_AUTH_FILE", "podman.json"},
		{"run/containers/auth.json", "XDG_RUNTIME_DIR", "run"},
		{".config/containers/auth.json", "", ""},
		{"config/containers/auth.json", "XDG_CONFIG_HOME", "config"},
	} {
		t.Run(place.path, func(t *testing.T) {
			dir := onlyHere(t)
			if place.key != "" {
				t.Setenv(place.key, filepath.Join(dir, place.value))
			}
			write(t, filepath.Join(dir, place.path), aliceSecret, 0o600)
			write(t, filepath.Join(dir, "bin", "docker-credential-test"), "#!/bin/sh\necho '{\"Username\": \"bob\", \"Secret\": \"secret\"}'\n", 0o755)
			for host, want := range map[string]string{
				"one.example.com": "alice", "two.example.com": "bob by docker-credential-test", "three.example.com": "none",
			} {
				found, err := new(Repositories).Credential(t.Context(), host)
				if err != nil || found.String() != want || (want != "none") != (found.Password == "secret") {
					t.Errorf("%s: credential %s with password %q, error %v; want %s", host, found, found.Password, err, want)
				}
			}
		})
	}
}

// The registry of a cloud is asked about by the cloud's own helper, where it is installed
// and the docker config says nothing.
func TestCloudCredentials(t *testing.T) {
	dir := onlyHere(t)
	hosts := map[string]string{
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com":      "ecr-login",
		"123456789012.dkr.ecr-fips.us-east-1.amazonaws.com": "ecr-login",
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn":  "ecr-login",
		"public.ecr.aws":                 "ecr-login",
		"gcr.io":                         "gcloud",
		"eu.gcr.io":                      "gcloud",
		"europe-west4-docker.pkg.dev":    "gcloud",
		"team.azurecr.io":                "acr-env",
		"team.azurecr.io.example.com":    "",
		"123.dkr.ecr.x.amazonaws.com":    "",
		"notgcr.io":                      "",
		"registry.example.com":           "",
		"123456789012.dkr.ecr.eu-west-1": "",
	}
	contents := new(Repositories)
	for host := range hosts {
		if found, err := contents.Credential(t.Context(), host); err != nil || found.String() != "none" {
			t.Errorf("%s without a helper: %s, error %v", host, found, err)
		}
	}
	for _, helper := range []string{"ecr-login", "gcloud", "acr-env"} {
		write(t, filepath.Join(dir, "bin", "docker-credential-"+helper),
			"#!/bin/sh\nread host\n[ \"$1\" = get ] && echo '{\"Username\": \"<token>\", \"Secret\": \"secret for '$host'\"}'\n", 0o755)
	}
	for host, helper := range hosts {
		want := "none"
		if helper != "" {
			want = "a token by docker-credential-" + helper
		}
		found, err := contents.Credential(t.Context(), host)
		if err != nil || found.String() != want || helper != "" && found.IdentityToken != "secret for "+host {
			t.Errorf("%s: %s with %+v, error %v; want %s", host, found, found.AuthConfig, err, want)
		}
	}
	t.Setenv("DOCKER_CONFIG", filepath.Join(dir, "docker"))
	write(t, filepath.Join(dir, "docker", "config.json"), strings.ReplaceAll(aliceSecret, "one.example.com", "gcr.io"), 0o600)
	if found, err := contents.Credential(t.Context(), "gcr.io"); err != nil || found.String() != "alice" {
		t.Errorf("with a credential in the docker config: %s, error %v; want alice", found, err)
	}
}

// A helper that fails says so without a word of what it knows.
func TestCloudHelperFails(t *testing.T) {
	dir := onlyHere(t)
	const host = "team.azurecr.io"
	for script, want := range map[string]string{
		"echo 'credentials not found in native keychain'; exit 1":     "",
		"echo 'the secret is 12345'; echo 'secret 12345' >&2; exit 1": "exit status 1",
		"echo 'secret 12345'":              "no JSON",
		"echo '{\"Username\": \"12345\"}'": "no JSON",
	} {
		write(t, filepath.Join(dir, "bin", "docker-credential-acr-env"), "#!/bin/sh\n"+script+"\n", 0o755)
		found, err := new(Repositories).Credential(t.Context(), host)
		if want == "" {
			if err != nil || found.AuthConfig != (authn.AuthConfig{}) {
				t.Errorf("%s: %s, error %v; want no credential", script, found, err)
			}
			continue
		}
		if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), host) || strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: error %v, want CodeUnavailable that says %q and no secret", script, err, want)
		}
	}
}

// A helper finds the credentials of its cloud, and none of ours.
func TestHelperEnvironment(t *testing.T) {
	dir := onlyHere(t)
	for name, value := range map[string]string{"COSIGN_PASSWORD": "open sesame", "MLPROMOTE_TOKEN": "token", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job", "AWS_PROFILE": "team"} {
		t.Setenv(name, value)
	}
	t.Setenv("DOCKER_CONFIG", filepath.Join(dir, "docker"))
	write(t, filepath.Join(dir, "docker", "config.json"), aliceSecret, 0o600)
	for host, helper := range map[string]string{"two.example.com": "test", "team.azurecr.io": "acr-env"} {
		write(t, filepath.Join(dir, "bin", "docker-credential-"+helper),
			"#!/bin/sh\necho '{\"Username\": \"bob\", \"Secret\": \"'$COSIGN_PASSWORD$MLPROMOTE_TOKEN$ACTIONS_ID_TOKEN_REQUEST_TOKEN' '$AWS_PROFILE'\"}'\n", 0o755)
		found, err := new(Repositories).Credential(t.Context(), host)
		if err != nil || found.Password != " team" {
			t.Errorf("%s: it sees %q, error %v; want team alone", host, found.Password, err)
		}
	}
}
