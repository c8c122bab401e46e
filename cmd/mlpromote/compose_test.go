package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"mlpromote.dev/mlpromote/registry/oci/remote"
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
	config, a := composed(t, "../../docker-compose.yml", registry).config(t)
	if remote.IsLoopback(config.Listen) || !config.InsecureHTTP {
		t.Errorf("the service listens on %s, which nobody reaches from outside the container", config.Listen)
	}
	port := registry.Ports[0]
	if want := "http://localhost:" + port.Published; config.URL != want ||
		port.HostIP != "127.0.0.1" || !strings.HasSuffix(config.Listen, ":"+fmt.Sprint(port.Target)) {
		t.Errorf("the service calls itself %s and listens on %s; compose publishes port %d at %s:%s",
			config.URL, config.Listen, port.Target, port.HostIP, port.Published)
	}
	if volume := registry.Volumes[0]; a.Data != volume.Target {
		t.Errorf("data is in %s, the volume at %s", a.Data, volume.Target)
	}
	if image := fromDockerfile(t); image.user != registry.User || registry.NetworkMode == "host" {
		t.Errorf("compose runs user %s with network %q, the image %s with its own", registry.User, registry.NetworkMode, image.user)
	}
}

// containerImage is what the Dockerfile says how the program is run.
type containerImage struct {
	user string
	args []string
	env  map[string]string
}

func fromDockerfile(t *testing.T) containerImage {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	image := containerImage{env: make(map[string]string)}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "USER":
			image.user = value
		case "CMD":
			if err := json.Unmarshal([]byte(value), &image.args); err != nil {
				t.Fatalf("CMD %s: %v", value, err)
			}
		case "ENV":
			for pair := range strings.FieldsSeq(value) {
				name, text, _ := strings.Cut(pair, "=")
				image.env[name] = text
			}
		}
	}
	return image
}

// composed is a service as compose starts it from our image.
func composed(t *testing.T, file string, s types.ServiceConfig) deployed {
	t.Helper()
	image := fromDockerfile(t)
	d := deployed{file: file, args: image.args, env: image.env}
	delete(d.env, "HOME")
	if len(s.Command) > 0 {
		d.args = s.Command
	}
	for name, value := range s.Environment {
		d.env[name] = *value
	}
	return d
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
	urls := make(map[string]bool)
	for _, name := range []string{"registry", "registry-2"} {
		replica, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		d := composed(t, files[1], replica)
		c, a := d.config(t)
		urls[c.URL] = true
		if len(replica.Ports) != 1 || c.URL != "http://localhost:"+replica.Ports[0].Published {
			t.Errorf("%s calls itself %s and is published as %+v", name, c.URL, replica.Ports)
		}
		if replica.StopGracePeriod == nil {
			t.Fatalf("%s has no time to stop", name)
		}
		d.endsWithin(t, c, time.Duration(*replica.StopGracePeriod))
		u, err := url.Parse(a.Database)
		if err != nil || u.Host != "database:5432" || u.User.Username() != *database.Environment["POSTGRES_USER"] ||
			u.Path != "/"+*database.Environment["POSTGRES_DB"] {
			t.Errorf("%s takes %s, and the database is %+v", name, a.Database, database.Environment)
		}
		if d.env["PGPASSWORD"] != *database.Environment["POSTGRES_PASSWORD"] || strings.Contains(a.Database, "hunter2") {
			t.Errorf("%s does not know the password, or shows it", name)
		}
		if !replica.ReadOnly || replica.Volumes[0].Source != "data" || replica.DependsOn["database"].Condition != "service_healthy" {
			t.Errorf("%s: read-only %v, volume %s, after %+v", name, replica.ReadOnly, replica.Volumes[0].Source, replica.DependsOn)
		}
	}
	if len(urls) != 2 || len(database.Ports) != 0 {
		t.Errorf("replicas are at %v, and the database is published at %v", urls, database.Ports)
	}
	options, err = cli.NewProjectOptions(files, cli.WithName("mlpromote"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(t.Context()); err == nil || !strings.Contains(err.Error(), "password of your own") {
		t.Errorf("without a password: %v", err)
	}
}
