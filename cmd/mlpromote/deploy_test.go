package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/operating"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry/oci/remote"
)

// deployed is a service as a file for its deployment starts it.
type deployed struct {
	file string
	args []string // of the program
	env  map[string]string
}

// config gives the settings that hold, and fails the test where one does not exist.
func (d deployed) config(t *testing.T) (serving.Config, *program.App) {
	t.Helper()
	a := &program.App{UI: ui.New("mlpromote", os.Stdout, os.Stderr, func(string) string { return "" }), Getenv: func(name string) string { return d.env[name] }}
	var config serving.Config
	known := append(program.SecretVariables(), "PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
	for _, name := range program.SecretVariables() {
		known = append(known, name+"_FILE")
	}
	settings := operating.Settings(a, &config)
	for _, s := range settings {
		known = append(known, s.Env())
	}
	for name := range d.env {
		if !slices.Contains(known, name) {
			t.Errorf("%s sets %s, which nothing reads", d.file, name)
		}
	}
	found, args, err := root(a).Find(d.args)
	if err != nil || found.Name() != "serve" {
		t.Fatalf("%s starts %v: %v", d.file, d.args, err)
	}
	if err := found.ParseFlags(args); err != nil {
		t.Fatalf("%s starts %v: %v", d.file, d.args, err)
	}
	a.Data = t.TempDir() // without a file of settings
	flags := found.Flags()
	for _, s := range settings {
		if flag := flags.Lookup(s.Name); flag != nil && flag.Changed {
			_ = s.Set(flag.Value.String()) // which just was one
		} else if value := d.env[s.Env()]; value != "" {
			if err := s.Set(value); err != nil {
				t.Errorf("%s: %s=%s: %v", d.file, s.Env(), value, err)
			}
		} else if !s.Shared {
			_ = s.Set(s.Fallback)
		}
	}
	if err := config.Check(); err != nil {
		t.Errorf("%s: %v", d.file, err)
	}
	return config, a
}

// endsWithin wants the service to be given the time to stop that it asks for.
func (d deployed) endsWithin(t *testing.T, c serving.Config, given time.Duration) {
	t.Helper()
	if asks := c.ShutdownDelay + c.ShutdownGrace + serving.FlushTimeout; given < asks {
		t.Errorf("%s gives the service %v to stop, and it may take %v", d.file, given, asks)
	}
}

// chart finds the container of the workload that Helm makes of the chart with some values. Tests beside the chart check its shape.
func chart(t *testing.T, values ...string) (d deployed, grace time.Duration) {
	t.Helper()
	helm := os.Getenv("MLPROMOTE_HELM")
	if helm == "" {
		found, err := exec.LookPath("helm")
		if err != nil {
			t.Skip("no helm in PATH, and MLPROMOTE_HELM names none; make test builds it")
		}
		helm = found
	}
	values = append(values, "image=registry.example.com/mlpromote:1", "url=https://registry.example.com", "policy.environments=x")
	d = deployed{file: "../../examples/kubernetes/chart", env: make(map[string]string)}
	text, err := exec.CommandContext(t.Context(), helm, "template", "registry", d.file, "--set", strings.Join(values, ",")).Output()
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Grace      int `yaml:"terminationGracePeriodSeconds"`
						Containers []struct {
							Args []string
							Env  []struct {
								Name  string
								Value string
							}
						}
					}
				}
			}
		}
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			t.Fatal("no workload")
		} else if err != nil {
			t.Fatal(err)
		}
		if document.Kind != "Deployment" && document.Kind != "StatefulSet" {
			continue
		}
		pod := document.Spec.Template.Spec
		for _, e := range pod.Containers[0].Env {
			d.env[e.Name] = e.Value
		}
		d.args = pod.Containers[0].Args
		return d, time.Duration(pod.Grace) * time.Second
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"volume": {"tls=x"}, "volume behind a proxy": {"ingress.enabled=true"}, "stores": {"tls=x", "stores=x", "keys=x", "replicas=2"},
		"settings": {"tls=x", "settings.gc_keep_for=1h", "settings.disk_reserve=10737418240", "settings.rate_limit=7", "settings.hosts=a.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, grace := chart(t, values...)
			c, _ := d.config(t)
			d.endsWithin(t, c, grace)
			if c.ShutdownDelay < 5*time.Second {
				t.Errorf("%v are too short for endpoints to be taken out", c.ShutdownDelay)
			}
			if remote.IsLoopback(c.Listen) || remote.IsLoopback(c.MetricsListen) || !c.Auth || c.LogFormat != "json" {
				t.Errorf("listens on %s and %s, auth %v, logs %s: want addresses for the cluster, with tokens", c.Listen, c.MetricsListen, c.Auth, c.LogFormat)
			}
			if (c.TLSCert == "") != c.InsecureHTTP || c.URL != "https://registry.example.com" {
				t.Errorf("certificate %q, insecure %v, url %s", c.TLSCert, c.InsecureHTTP, c.URL)
			}
			if name == "settings" && c.Rate != 7 {
				t.Errorf("the rate limit is %v, want 7", c.Rate)
			}
			for _, name := range []string{"MLPROMOTE_DATABASE", "MLPROMOTE_STORAGE"} {
				if value, ok := d.env[name]; ok != slices.Contains(values, "stores=x") || value != "" {
					t.Errorf("%s is %q, want it from a secret", name, value)
				}
			}
		})
	}
}

// unit is a section of a unit file: values by key, in order.
func unit(t *testing.T, file, section string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, in := make(map[string][]string), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.Trim(line, "[]")
		} else if key, value, ok := strings.Cut(line, "="); ok && in == section && !strings.HasPrefix(line, "#") {
			all[key] = append(all[key], value)
		}
	}
	return all
}

const unitFile = "../../examples/systemd/mlpromote.service"

func TestUnit(t *testing.T) {
	t.Parallel()
	service := unit(t, unitFile, "Service")
	d := deployed{file: unitFile, env: make(map[string]string)}
	for _, line := range service["Environment"] {
		for _, assignment := range strings.Fields(line) {
			name, value, _ := strings.Cut(assignment, "=")
			d.env[name] = value
		}
	}
	d.args = strings.Fields(service["ExecStart"][0])[1:]
	c, _ := d.config(t)
	stop, err := time.ParseDuration(service["TimeoutStopSec"][0] + "s")
	if err != nil {
		t.Fatal(err)
	}
	d.endsWithin(t, c, stop)
	if remote.IsLoopback(c.Listen) || c.TLSCert == "" || !c.Auth {
		t.Errorf("listens on %s with certificate %q, auth %v", c.Listen, c.TLSCert, c.Auth)
	}
	given := make(map[string]bool)
	for _, line := range service["LoadCredential"] {
		name, _, _ := strings.Cut(line, ":")
		given[name] = true
	}
	used := c.TLSCert + " " + c.TLSKey + " " + d.env["COSIGN_PASSWORD_FILE"]
	for name := range given {
		if !strings.Contains(used, "/"+name) {
			t.Errorf("credential %s is used by nothing", name)
		}
	}
	for path := range strings.FieldsSeq(used) {
		if !given[filepath.Base(path)] {
			t.Errorf("%s is no credential of the unit", path)
		}
	}
}

// TestUnitOfSystemd asks systemd itself: whether it understands every line, and how much
// the service could do to the machine.
func TestUnitOfSystemd(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not here")
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mlpromote.service")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("/usr/local/bin/mlpromote"), []byte(program), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no",
		"--recursive-errors=no", file).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security",
		"--offline=true", "--threshold="+fmt.Sprint(maxExposure), file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// maxExposure is ten times what systemd calls the exposure of the unit, rounded up.
const maxExposure = 15
