package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// TestCompose reads docker-compose.yml as compose does, and checks that what it starts
// is what the program and the Dockerfile offer. No container engine is needed, and none
// is started.
func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithName("mlpromote"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	registry, err := project.GetService("registry")
	if err != nil {
		t.Fatal(err)
	}
	if registry.User == "" || strings.HasPrefix(registry.User, "0") || !registry.ReadOnly || !slices.Contains(registry.CapDrop, "ALL") {
		t.Errorf("the service is not locked down: user %q, read-only %v, cap_drop %v", registry.User, registry.ReadOnly, registry.CapDrop)
	}
	a := &app{ui: newUI(os.Stdout, os.Stderr), getenv: func(string) string { return "" }}
	found, args, err := a.root().Find(registry.Command)
	if err != nil || found.Name() != "serve" {
		t.Fatalf("command %v: %v", registry.Command, err)
	}
	if err := found.ParseFlags(args); err != nil {
		t.Errorf("command %v: %v", registry.Command, err)
	}
	if listen := found.Flag("listen").Value.String(); !isLoopback(listen) && registry.NetworkMode == "host" {
		t.Errorf("the service would refuse to listen on %s", listen)
	}
	volume := registry.Volumes[0]
	if data := found.Flag("data").Value.String(); data != volume.Target {
		t.Errorf("data is in %s, the volume at %s", data, volume.Target)
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^USER ` + regexp.QuoteMeta(registry.User) + `$`).Match(dockerfile) {
		t.Errorf("the image runs as another user than %s", registry.User)
	}
}
