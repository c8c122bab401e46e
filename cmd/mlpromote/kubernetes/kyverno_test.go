//go:build linux

package kubernetes

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// kyvernoNamespace is where Kyverno has its objects.
const kyvernoNamespace = "kyverno"

// kyverno starts the admission controller of Kyverno beside the API server, with the objects and the rights that its release has, and lets
// it decide about the namespace of the test alone. It trusts the CA in a file, and reads a registry with a token.
func (c *cluster) kyverno(authority, registry, token string) {
	c.Helper()
	kubectl := func(args ...string) string {
		c.Helper()
		return c.within(kyvernoNamespace, "", args...)
	}
	// It admits for one namespace at a time, so the tests that need it take turns.
	oneKyverno.Lock()
	c.Cleanup(oneKyverno.Unlock)
	kubectl("apply", "--server-side", "--force-conflicts", "--filename="+c.program("kyverno.yaml"))
	kubectl("patch", "configmap", "kyverno", "--type=merge",
		`--patch={"data": {"webhooks": "{\"namespaceSelector\": {\"matchLabels\": {\"kubernetes.io/metadata.name\": \"`+c.namespace+`\"}}}"}}`)
	kubectl("delete", "secret", "mlpromote", "--ignore-not-found")
	kubectl("create", "secret", "docker-registry", "mlpromote", "--docker-server="+registry, "--docker-username=token", "--docker-password="+token)
	account := kubectl("create", "token", "kyverno-admission-controller")
	err := errors.Join(os.MkdirAll(c.path("kyverno"), 0o755), os.WriteFile(c.path("kyverno", "kubeconfig"), []byte(c.kubeconfig(account)), 0o600))
	if err != nil {
		c.Fatal(err)
	}
	const address = nodeAddress + ":9443" // the API server asks it there, without a Service
	p := &program{
		name: "kyverno",
		argv: []string{
			c.program("kyverno"), "--kubeconfig=" + c.path("kyverno", "kubeconfig"), "--serverIP=" + address,
			"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca", "--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
			"--imagePullSecrets=mlpromote", "--disableMetrics", "--controllerRuntimeMetricsAddress=0",
		},
		env: []string{
			"INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics", "KYVERNO_NAMESPACE=" + kyvernoNamespace, "KYVERNO_POD_NAME=kyverno",
			"KYVERNO_SERVICEACCOUNT_NAME=kyverno-admission-controller", "KYVERNO_ROLE_NAME=kyverno:admission-controller",
			"KYVERNO_SVC=kyverno-svc", "KYVERNO_DEPLOYMENT=kyverno-admission-controller", "HOME=" + c.path("kyverno"), "SSL_CERT_FILE=" + authority,
		},
		ready: func() error { _, err := c.get("https://" + address + "/health/readiness"); return err },
	}
	c.beside(p)
}

// oneKyverno is held by the test that runs Kyverno.
var oneKyverno sync.Mutex

// Kyverno admits a pod that mounts a promoted engine, until the engine is in quarantine. The pod computes a recorded case.
func TestAdmissionOfVolumes(t *testing.T) {
	t.Parallel()
	c := start(t)
	m := c.mounted()
	j := m.job
	a := c.admission(j, "--for", "kyverno")
	c.kyverno(m.path("tls", "ca.pem"), m.Host(), j.Must("token", "create", "kyverno", "--allow", "read"))
	engine, image := j.Must("resolve", programtest.Model, "--env", "prod"), j.Must("resolve", programtest.Model, "--env", "prod", "--as", "image")
	staged := strings.Replace(image, "/prod/", "/staging/", 1)
	const unsigned = "no promoter of prod signed a summary for it"
	a.renew(volumePod, staged, unsigned)
	a.cluster.apply(m.pod("promoted", m.secret))
	c.answers("promoted")
	for kind, pod := range map[string]string{"volume": volumePod, "container": containerPod} {
		a.admits(kind+", promoted image form", pod, image, image)
		a.admits(kind+", promoted engine", pod, engine, engine)
		a.refuses(kind+", only in staging", pod, staged, unsigned)
	}
	tag := m.Host() + "/prod/vision/digits:1.0.1"
	a.refuses("tag of a volume", volumePod, tag, "does not have a digest")
	a.admits("tag of a container", containerPod, tag, ":1.0.1@"+j.Head("prod"))
	elsewhere := m.Host() + "/other/" + image[strings.LastIndex(image, "/")+1:]
	a.admits("another repository of this host", volumePod, elsewhere, elsewhere)

	rendered := m.pod("rendered-before", m.secret)
	j.Must("quarantine", "prod/"+programtest.Model, "--reason", "a test")
	a.admits("in quarantine, before the export", volumePod, image, image)
	a.renew(volumePod, image, inQuarantine)
	a.refuses("engine in quarantine", volumePod, engine, inQuarantine)
	a.refuses("container in quarantine", containerPod, image, inQuarantine)
	a.refuses("volume in quarantine, with its tag", volumePod, strings.Replace(image, "@", ":1.0.1@", 1), inQuarantine)
	out, err := a.try(rendered, "apply", "--filename=-")
	if err == nil || !strings.Contains(out, inQuarantine) {
		t.Errorf("a pod with a release in quarantine: %v, %s", err, out)
	}
}
