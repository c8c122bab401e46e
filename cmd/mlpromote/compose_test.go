package main

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestComposePostgres reads the two files as compose merges them: two replicas, one
// database, one directory.
func TestComposePostgres(t *testing.T) {
	t.Parallel()
	files := []string{"../../docker-compose.yml", "../../docker-compose.postgres.yml"}
	options, err := cli.NewProjectOptions(files, cli.WithName("mlpromote"), cli.WithEnv([]string{"POSTGRES_PASSWORD=hunter2"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	database, err := project.GetService("database")
	if err != nil {
		t.Fatal(err)
	}
	listens := make(map[string]bool)
	for _, name := range []string{"registry", "registry-2"} {
		replica, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		d := deployed{file: files[1], args: replica.Command, env: make(map[string]string)}
		for name, value := range replica.Environment {
			d.env[name] = *value
		}
		c, a := d.config(t)
		listens[c.listen] = true
		if replica.StopGracePeriod == nil {
			t.Fatalf("%s has no time to stop", name)
		}
		d.endsWithin(t, c, time.Duration(*replica.StopGracePeriod))
		u, err := url.Parse(a.database)
		if err != nil || u.Host != "127.0.0.1:"+database.Ports[0].Published || u.User.Username() != *database.Environment["POSTGRES_USER"] || u.Path != "/"+*database.Environment["POSTGRES_DB"] {
			t.Errorf("%s takes %s, and the database is %+v", name, a.database, database.Environment)
		}
		if d.env["PGPASSWORD"] != *database.Environment["POSTGRES_PASSWORD"] || strings.Contains(a.database, "hunter2") {
			t.Errorf("%s does not know the password, or shows it", name)
		}
		if !replica.ReadOnly || replica.Volumes[0].Source != "data" || replica.DependsOn["database"].Condition != "service_healthy" {
			t.Errorf("%s: read-only %v, volume %s, after %+v", name, replica.ReadOnly, replica.Volumes[0].Source, replica.DependsOn)
		}
	}
	if len(listens) != 2 || database.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("replicas listen on %v, the database on %s", listens, database.Ports[0].HostIP)
	}
	options, err = cli.NewProjectOptions(files, cli.WithName("mlpromote"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "password of your own") {
		t.Errorf("without a password: %v", err)
	}
}
