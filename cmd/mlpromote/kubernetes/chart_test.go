//go:build linux

package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

const helmVariable = "MLPROMOTE_HELM"

// chart is a release of the chart, installed by Helm in the namespace of a test as the page on deployments shows.
type chart struct {
	*cluster
	dir    string   // has the files that the page names
	values []string // in place of those on the page, for this cluster
	files  []string // of the policy, beside those on the page
	client *http.Client
	scheme string // of the pods
	port   string // of the Service
	node   string // port of the Service on the node, in place of its own address; empty: none
}

// chartFiles are files of the page that begin with a comment of their name.
var chartFiles = regexp.MustCompile("(?ms)^```yaml\n# (\\S+\\.yaml)\n(.*?)^```$")

// chart prepares the files and the Secrets of the page. The cluster enforces restricted pods in the namespace.
func (c *cluster) chart(values ...string) *chart {
	c.Helper()
	if os.Getenv(helmVariable) == "" {
		c.Skipf("%s names no program: make interop-kubernetes builds it", helmVariable)
	}
	h := &chart{cluster: c, dir: c.TempDir(), values: append(values, "url=https://"+registryName), scheme: "https", port: "443"}
	job := &programtest.Job{T: c.T, Program: programtest.Program(c.T), Dir: h.dir, Env: append(os.Environ(), "COSIGN_PASSWORD=secret")}
	job.Must("key", "generate", "--role", "promoter", "--keys", h.dir)
	err := registrytest.Certificate(h.dir, registryName, registryName)
	for name, text := range map[string]string{"access.yaml": chartAccess, "environments.yaml": chartEnvironments} {
		err = errors.Join(err, os.WriteFile(h.path(name), []byte(text), 0o600))
	}
	for _, file := range chartFiles.FindAllStringSubmatch(h.page(), -1) {
		err = errors.Join(err, os.WriteFile(h.path(file[1]), []byte(file[2]), 0o600))
	}
	authority, read := os.ReadFile(h.path("ca.pem"))
	if err := errors.Join(err, read); err != nil {
		c.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	h.client = &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if h.node != "" {
				return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(nodeAddress, h.node))
			}
			address, err := c.try("", "get", "service/registry", "--output=jsonpath={.spec.clusterIP}")
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, address)
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, h.port))
		},
	}}
	c.Cleanup(func() {
		if c.Failed() {
			log, _ := c.try("", "logs", "--selector=app.kubernetes.io/instance=registry", "--prefix", "--tail=5")
			c.Log(log)
		}
	})
	c.kubectl("label", "namespace", c.namespace, "pod-security.kubernetes.io/enforce=restricted")
	c.kubectl("create", "secret", "generic", "mlpromote-keys", "--from-file="+h.path("promoter.key"), "--from-literal=password=secret")
	c.kubectl("create", "secret", "tls", "mlpromote-tls", "--cert="+h.path("tls.crt"), "--key="+h.path("tls.key"))
	c.ours()
	for _, version := range []string{"1", "2"} { // of the same image
		if out, err := c.run("", c.program("ctr"), "--namespace=k8s.io", "images", "tag", "--force", ourImage, chartImage+version); err != nil {
			c.Fatalf("ctr images tag: %v\n%s", err, out)
		}
	}
	return h
}

const (
	chartImage        = "docker.io/library/mlpromote:"
	chartEnvironments = `registry: local
environments:
  staging:
  prod: {from: staging}
trust:
  - {key: promoter.pub, roles: [promoter], resources: ["oci://local/"]}
`
	chartAccess = `issuers:
  - issuer: ` + apiServer + `
    audience: mlpromote
    principal: "k8s:{sub}"
    rules:
      - match: {sub: "system:serviceaccount:serving:*"}
        grants: [{allow: [read], environment: prod, model: "**"}]
`
)

func (h *chart) path(name string) string { return filepath.Join(h.dir, name) }

func (h *chart) page() string {
	text, err := os.ReadFile(programtest.Root("docs/how-to/deploy.md"))
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// helm runs Helm in the folder of the files, in the namespace of the test.
func (h *chart) helm(args ...string) (string, error) {
	const script = `cd "$1" && shift && exec "$@"`
	return h.run("", append([]string{"sh", "-c", script, "sh", h.dir, os.Getenv(helmVariable), "--namespace", h.namespace}, args...)...)
}

// must runs Helm, which must succeed.
func (h *chart) must(args ...string) string {
	h.Helper()
	out, err := h.helm(args...)
	if err != nil {
		h.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// like returns the arguments of `helm install` on the page, for another verb of Helm, with the values of the test and a version of
// the image. Helm waits until the pods are ready.
func (h *chart) like(verb, file, version string) []string {
	h.Helper()
	line := regexp.MustCompile(`(?m)^helm install ((?:.*\\\n)*.*)$`).FindStringSubmatch(h.page())
	if line == nil {
		h.Fatal("the page has no helm install")
	}
	args := []string{verb}
	for word := range strings.FieldsSeq(strings.ReplaceAll(line[1], "\\\n", " ")) {
		args = append(args, strings.Trim(word, "'"))
	}
	at := slices.Index(args, "--namespace")
	args = slices.Delete(args, at, at+2)
	for from, to := range map[string]string{"examples/kubernetes/chart": programtest.Root("examples/kubernetes/chart"), "volume.yaml": file} {
		args[slices.Index(args, from)] = to
	}
	for _, file := range h.files {
		args = append(args, "--set-file", "policy.files."+strings.ReplaceAll(file, ".", `\.`)+"="+file)
	}
	return append(args, "--wait", "--timeout", patience.String(), "--set", strings.Join(append(h.values, "image="+chartImage+version), ","))
}

// install installs the release and returns the token that the commands in Helm's notes create.
func (h *chart) install(file string) (token string) {
	h.Helper()
	told := h.must(h.like("install", file, "1")...)
	for _, command := range regexp.MustCompile(`(?m)^  kubectl (.*)$`).FindAllStringSubmatch(told, -1) {
		token = h.kubectl(strings.Fields(command[1])...)
	}
	if !strings.HasPrefix(token, "mlp_") {
		h.Fatalf("the commands in the notes end with %q, want a token:\n%s", token, told)
	}
	return token
}

// answers wants the service to answer a request with a status, soon.
func (h *chart) answers(method, path, token string, want int) {
	h.Helper()
	var status int
	var failed error
	err := eventually(func() (bool, error) {
		status, failed = h.ask(method, path, token)
		return status == want, nil
	})
	if err != nil {
		h.Errorf("%s %s: %v: %d, %v; want %d", method, path, err, status, failed, want)
	}
}

// ask sends a request to the Service, with the name of the registry.
func (h *chart) ask(method, path, token string) (status int, err error) {
	request, err := http.NewRequest(method, h.scheme+"://"+registryName+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := h.client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// configure adds an environment to the policy.
func (h *chart) configure() {
	h.Helper()
	text := strings.Replace(chartEnvironments, "  staging:\n", "  lab:\n  staging:\n", 1)
	if err := os.WriteFile(h.path("environments.yaml"), []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// runs wants all pods to be of a version of the image, soon: those of another version may still be stopping.
func (h *chart) runs(version string) {
	h.Helper()
	var images string
	err := eventually(func() (bool, error) {
		images = h.kubectl("get", "pods", "--selector=app.kubernetes.io/instance=registry", "--output=jsonpath={.items[*].spec.containers[0].image}")
		found := slices.Compact(strings.Fields(images))
		return len(found) == 1 && found[0] == chartImage+version, nil
	})
	if err != nil {
		h.Errorf("%v: the images are %s, want %s%s", err, images, chartImage, version)
	}
}

// volume makes a volume of a class of its own, and returns its folder on the node.
func (c *cluster) volume() (folder string) {
	c.Helper()
	folder = c.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil { // a volume of this kind takes no fsGroup
		c.Fatal(err)
	}
	c.apply(fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  storageClassName: %[1]s
  accessModes: [ReadWriteOnce]
  capacity: {storage: 100Gi}
  hostPath: {path: %[2]q}
`, c.namespace, folder))
	c.Cleanup(func() { c.kubectl("delete", "persistentvolume", c.namespace, "--wait=false") })
	return folder
}

const lab = "/v2/lab/notes/blobs/uploads/" // an environment of the second version alone

// The chart is installed with a volume, upgraded, upgraded to an image that does not exist, rolled back, removed and installed again.
// The catalog in the volume outlives all of it. The policy is that of the version.
func TestChart(t *testing.T) {
	t.Parallel()
	c := start(t)
	h := c.chart("volume.class=" + c.namespace)
	folder := c.volume()

	token := h.install("volume.yaml")
	h.wantPolicyInPod()
	h.answers(http.MethodGet, "/v2/_catalog", "", http.StatusUnauthorized)
	h.answers(http.MethodGet, "/v2/_catalog", token, http.StatusOK)
	h.answers(http.MethodPost, lab, token, http.StatusForbidden)

	h.configure()
	h.must(append(h.like("upgrade", "volume.yaml", "2"), "--set", "service.type=NodePort,service.nodePort=30443")...)
	h.answers(http.MethodPost, lab, token, http.StatusAccepted)
	h.node = "30443"
	h.answers(http.MethodPost, lab, token, http.StatusAccepted)
	h.node = ""
	h.runs("2")

	broken := h.like("upgrade", "volume.yaml", "3")
	broken[slices.Index(broken, "--timeout")+1] = "5s"
	if out, err := h.helm(broken...); err == nil {
		t.Errorf("an upgrade to an image that does not exist succeeds:\n%s", out)
	}
	c.waiting("registry-0", "ErrImagePull")
	h.must("rollback", "registry", "1", "--wait", "--timeout", patience.String())
	h.answers(http.MethodPost, lab, token, http.StatusForbidden)
	h.answers(http.MethodGet, "/v2/_catalog", token, http.StatusOK)
	h.runs("1")

	h.must("uninstall", "registry", "--wait", "--timeout", patience.String())
	h.values = append(h.values, "keys=")
	h.must(h.like("install", "volume.yaml", "2")...)
	h.answers(http.MethodPost, lab, token, http.StatusAccepted)
	if log := c.kubectl("logs", "statefulset/registry"); !strings.Contains(log, "nothing can be promoted here") {
		t.Errorf("without keys the log does not tell that nothing can be promoted:\n%s", log)
	}
	h.wantPolicyInPod()
	c.kubectl("exec", "statefulset/registry", "--", "/mlpromote", "token", "create", "second", "--allow", "read")
	if made, err := filepath.Glob(filepath.Join(folder, "keys", "*")); err != nil || len(made) > 0 {
		t.Errorf("the service and the commands in the pod made the keys %q, error %v", made, err)
	}
}

// wantPolicyInPod wants a command in the pod to see the policy of the release.
func (h *chart) wantPolicyInPod() {
	h.Helper()
	// Its exit code says that prod has no key of a builder.
	seen, _ := h.try("", "exec", "statefulset/registry", "--", "/mlpromote", "environments", "check")
	if !strings.Contains(seen, "promoter.pub") {
		h.Errorf("environments check in the pod does not see the policy of the release:\n%s", seen)
	}
}

// fromPods relays connections of pods to a server on the loopback of the node, and returns the address for pods.
func (c *cluster) fromPods(server string) string {
	c.Helper()
	listener, err := new(net.ListenConfig).Listen(c.Context(), "tcp", nodeAddress+":0")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(way[0], way[1]) // until one end closes its connection
					near.Close()
					far.Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// The chart is installed with two replicas over PostgreSQL and a bucket. Clients notice neither an upgrade nor a rollback. A changed policy
// takes effect when it is adopted.
func TestChartReplicas(t *testing.T) {
	t.Parallel()
	c := start(t)
	if err := os.Chmod(c.folder, 0o711); err != nil { // PostgreSQL runs as another user, in a folder below
		t.Fatal(err)
	}
	bucket, database := registrytest.StartS3Server(t), pgtest.New(t)
	address, err := url.Parse(database.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	address.Host = c.fromPods(database.Address())
	storage := strings.Replace(bucket.URL("chart"), bucket.Endpoint, "http://"+c.fromPods(strings.TrimPrefix(bucket.Endpoint, "http://")), 1)
	h := c.chart("replicas=2", "serviceMonitor=false")
	h.scheme, h.port = "http", "80" // an Ingress would terminate TLS
	secret := []string{"create", "secret", "generic", "mlpromote-stores", "--from-literal=database=" + address.String(), "--from-literal=storage=" + storage}
	for i, key := range []string{"access-key-id", "secret-access-key"} {
		_, value, _ := strings.Cut(bucket.Env()[i], "=")
		secret = append(secret, "--from-literal="+key+"="+value)
	}
	c.kubectl(secret...)
	token := h.install("replicas.yaml")
	h.answers(http.MethodGet, "/v2/_catalog", token, http.StatusOK)

	asked, done, ended := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for ; ; asked++ {
			select {
			case <-done:
				return
			default:
			}
			if status, err := h.ask(http.MethodGet, "/v2/_catalog", token); status != http.StatusOK {
				t.Errorf("request %d: %d, %v", asked, status, err)
			}
		}
	}()
	h.must(h.like("upgrade", "replicas.yaml", "2")...)
	h.runs("2")
	h.must("rollback", "registry", "1", "--wait", "--timeout", patience.String())
	h.runs("1")
	close(done)
	<-ended
	t.Logf("%d requests during an upgrade and a rollback", asked)

	h.configure()
	h.must(h.like("upgrade", "replicas.yaml", "1")...)
	h.answers(http.MethodPost, lab, token, http.StatusForbidden)
	adopt := []string{"exec", "deployment/registry", "--", "/mlpromote", "configuration", "adopt"}
	err = eventually(func() (bool, error) { // the kubelet takes a while to bring a changed ConfigMap to its pods
		// Its exit code says that prod has no key of a builder.
		files, _ := c.try("", "exec", "deployment/registry", "--", "/mlpromote", "environments", "check")
		return strings.Contains(files, "lab"), nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Log(c.kubectl(adopt...))
	h.answers(http.MethodPost, lab, token, http.StatusAccepted)
}
