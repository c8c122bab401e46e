//go:build linux

package kubernetes

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// registryName is the name of services of tests. The node knows their address.
const registryName = "registry.example.com"

// hostsOfPage is the file by which containerd knows the CA of a service, as the page on deployments shows it.
var hostsOfPage = regexp.MustCompile("(?s)\n```toml /etc/containerd/certs.d/registry.example.com/hosts.toml\n(.*?)\n```")

const caOfPage = "/etc/containerd/certs.d/registry.example.com/ca.pem"

// service is a service of mlpromote beside the cluster, as on a machine of its own: with a certificate that containerd knows,
// and for nobody without a token.
type service struct {
	*programtest.Service
	cluster *cluster
	token   string // of an administrator
}

// serve starts a service until the end of the test.
func (c *cluster) serve() *service {
	c.Helper()
	s := &service{Service: programtest.NewService(c.T, programtest.Program(c.T), c.TempDir()), cluster: c}
	if err := registrytest.Certificate(s.path("tls"), registryName, registryName); err != nil {
		c.Fatal(err)
	}
	s.Flags = []string{"--tls-cert=" + s.path("tls", "tls.crt"), "--tls-key=" + s.path("tls", "tls.key"), "--hosts=" + registryName, "--listen=" + nodeAddress + ":0"}
	c.Cleanup(s.Kill)
	s.startNamed()
	if err := s.ShareKeys(); err != nil {
		c.Fatal(err)
	}
	s.token = (&programtest.Job{T: c.T, Program: s.Program, Env: append(os.Environ(), s.Env...)}).Must("token", "create", "admin", "--allow", "administer", "--data", s.Dir)
	c.trusts(s.Host(), s.path("tls", "ca.pem"))
	return s
}

// trusts lets containerd trust the CA of a registry, by the file of the page.
func (c *cluster) trusts(host, authority string) {
	c.Helper()
	hosts := c.path("hosts", host, "hosts.toml")
	text := strings.NewReplacer(caOfPage, authority, "https://"+registryName, "https://"+host).Replace(block(c.T, "deploy.md", hostsOfPage))
	if err := errors.Join(os.MkdirAll(filepath.Dir(hosts), 0o755), os.WriteFile(hosts, []byte(text), 0o600)); err != nil {
		c.Fatal(err)
	}
}

// startNamed starts the service and takes its URL by its name, as containerd asks for it. It keeps its port.
func (s *service) startNamed() {
	s.cluster.Helper()
	if err := s.Start(); err != nil {
		s.cluster.Fatal(err)
	}
	address, err := url.Parse(s.URL)
	if err != nil {
		s.cluster.Fatal(err)
	}
	s.Flags[len(s.Flags)-1] = "--listen=" + nodeAddress + ":" + address.Port()
	s.URL = "https://" + registryName + ":" + address.Port()
}

// path is a path beside the folder of the service.
func (s *service) path(elements ...string) string {
	return filepath.Join(append([]string{filepath.Dir(s.Dir)}, elements...)...)
}

// env is what makes the program a client of the service with a token.
func (s *service) env(token string) []string {
	return append(s.ClientEnv(), "MLPROMOTE_TOKEN="+token, "MLPROMOTE_CA="+s.path("tls", "ca.pem"))
}

// job is a copy of the digits example, for an administrator of the service.
func (s *service) job(t *testing.T) *programtest.Job {
	t.Helper()
	return programtest.NewJob(t, s.Program, filepath.Join(t.TempDir(), "digits"), s.env(s.token)...)
}

// pullSecret makes a secret of pods that pull from the service with a token, and returns its name.
func (s *service) pullSecret(token string) string {
	s.cluster.Helper()
	const name = "mlpromote"
	s.cluster.kubectl("create", "secret", "docker-registry", name, "--docker-server="+s.Host(), "--docker-username=token", "--docker-password="+token)
	return name
}

// blob reads a blob from the files of the service.
func (s *service) blob(t *testing.T, d digest.Digest) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, "blobs", d.Algorithm().String(), d.Encoded()[:2], d.Encoded()))
	if err != nil || digest.FromBytes(data) != d {
		t.Fatalf("blob %s: %d bytes, %v", d, len(data), err)
	}
	return data
}

// recorded is the first shard of the outputs that the release was verified against.
func (s *service) recorded(t *testing.T, j *programtest.Job) []byte {
	t.Helper()
	var inspected struct {
		Release struct{ Sources digest.Digest }
	}
	if err := json.Unmarshal([]byte(j.Must("inspect", "prod/"+programtest.Model, "--output", "json")), &inspected); err != nil {
		t.Fatal(err)
	}
	var sources ocispec.Index
	if err := json.Unmarshal(s.blob(t, inspected.Release.Sources), &sources); err != nil {
		t.Fatal(err)
	}
	for _, entry := range sources.Manifests {
		if entry.Annotations["dev.mlpromote.role"] != "golden" {
			continue
		}
		var golden ocispec.Manifest
		if err := json.Unmarshal(s.blob(t, entry.Digest), &golden); err != nil {
			t.Fatal(err)
		}
		return s.blob(t, golden.Layers[0].Digest)
	}
	t.Fatalf("sources %s have no golden outputs", inspected.Release.Sources)
	return nil
}
