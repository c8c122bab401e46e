package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/container"
)

// The program that runs containers gets no secret from our environment. A script takes its
// place.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script := "#!/bin/sh\nenv > " + seen + "\nexit 1\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o700),
		os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, value := range map[string]string{"COSIGN_PASSWORD": "open sesame", "MLPROMOTE_TOKEN": "token",
		"AWS_SECRET_ACCESS_KEY": "key", "DOCKER_AUTH_CONFIG": "{}", "DOCKER_HOST": "unix:///nowhere"} {
		t.Setenv(name, value)
	}
	if _, err := container.Find(t.Context(), "image"); err == nil {
		t.Error("found an image that does not exist")
	}
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"COSIGN_PASSWORD", "MLPROMOTE_TOKEN", "AWS_SECRET_ACCESS_KEY", "DOCKER_AUTH_CONFIG"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the environment has %s", secret)
		}
	}
	if !strings.Contains(string(text), "DOCKER_HOST=unix:///nowhere") {
		t.Errorf("environment %q, want DOCKER_HOST in it", text)
	}
}
