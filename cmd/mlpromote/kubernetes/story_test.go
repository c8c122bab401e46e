//go:build linux

package kubernetes

import (
	"os"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

const storyPort = "30444" // of the service, on the node

// A platform team installs the chart, a job promotes a release to it, and a pod that mounts the engine answers a recorded case, although
// the service and the API server are killed in between. Kyverno denies what was never promoted, and the release once it is in quarantine.
// This test kills what others need, so it runs before them, alone.
func TestStory(t *testing.T) {
	c := start(t)
	h := c.chart("volume.class="+c.namespace, "service.type=NodePort", "service.nodePort="+storyPort)
	folder := c.volume()
	s := &service{Service: &programtest.Service{Program: programtest.Program(t), Dir: folder, Client: t.TempDir(), URL: "https://" + registryName + ":" + storyPort}, cluster: c}
	job := programtest.NewJob(t, s.Program, t.TempDir()+"/digits", append(s.ClientEnv(), "MLPROMOTE_CA="+h.path("ca.pem"), "COSIGN_PASSWORD=secret")...)
	job.Must("key", "generate")
	public, err := os.ReadFile(s.Client + "/keys/local.pub")
	if err == nil {
		err = os.WriteFile(h.path("local.pub"), public, 0o600)
	}
	if err == nil {
		policy := chartEnvironments + "  - {key: local.pub, roles: [builder, verifier, approver], resources: [\"oci://local/\"]}\n"
		err = os.WriteFile(h.path("environments.yaml"), []byte(policy), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.files, h.values = []string{"local.pub"}, append(h.values, "url="+s.URL) // where clients get tokens
	s.token = h.install("volume.yaml")
	job.Env = append(job.Env, "MLPROMOTE_TOKEN="+s.token)
	c.kubectl("label", "namespace", c.namespace, "pod-security.kubernetes.io/enforce-") // the pods of this test are plain
	c.trusts(s.Host(), h.path("ca.pem"))
	m := s.mounted(job)

	a := c.admission(job, "--for", "kyverno", "--policy-dir", h.dir)
	c.kyverno(h.path("ca.pem"), m.Host(), job.Must("token", "create", "kyverno", "--allow", "read"))
	image := job.Must("resolve", programtest.Model, "--env", "prod", "--as", "image")
	staged := strings.Replace(image, "/prod/", "/staging/", 1)
	const unsigned = "no promoter of prod signed a summary for it"
	a.renew(volumePod, staged, unsigned)
	c.apply(m.pod("golden", m.secret))
	c.servers["kube-apiserver"].kill()
	if err := c.servers["kube-apiserver"].start(); err != nil {
		t.Fatal(err)
	}
	c.kubectl("delete", "pod", "registry-0", "--now")
	c.answers("golden")
	h.answers("GET", "/v2/_catalog", s.token, 200)
	a.refuses("only in staging, after that", volumePod, staged, unsigned)

	job.Must("quarantine", "prod/"+programtest.Model, "--reason", "a test")
	a.renew(volumePod, image, inQuarantine)
}
