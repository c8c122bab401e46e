//go:build linux

package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// The cluster has one node that runs pods. Its addresses are in a network of its own, so they are the usual ones.
const (
	nodeName       = "node-a"
	apiServer      = "https://kubernetes.default.svc.cluster.local" // also the issuer of service accounts' tokens
	serviceIPs     = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1" // the API server, for pods
	podIPs         = "10.244.0.0/24"
	etcdURL        = "http://127.0.0.1:2379"
)

// world is a running cluster. All tests of the process share it.
type world struct {
	folder   string // of everything that the cluster writes
	programs string // folder of its programs
	servers  map[string]*program
	token    string // of an administrator
	client   *http.Client
}

// started is the cluster of this process, which is started once.
var started = sync.OnceValues(startWorld)

func startWorld() (*world, error) {
	w := &world{folder: os.Getenv(folderVariable), programs: os.Getenv(programsVariable), token: rand.Text(), servers: make(map[string]*program)}
	if err := w.writeFiles(); err != nil {
		return nil, err
	}
	// The API server waits for etcd, and the node for no one until it has containerd.
	var first, second errgroup.Group
	for _, name := range []string{"etcd", "containerd", "kube-apiserver"} {
		first.Go(w.add(name).start)
	}
	if err := first.Wait(); err != nil {
		return w, err
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"} {
		second.Go(w.add(name).start)
	}
	second.Go(w.importBase)
	return w, second.Wait()
}

// add describes a server by its name.
func (w *world) add(name string) *program {
	p := &program{name: name, log: w.path("logs", name), argv: append([]string{w.program("components"), name}, w.flags(name)...), ready: w.ready(name)}
	if name == "containerd" {
		p.argv = []string{w.program(name), "--config", w.path("containerd.toml")}
	}
	w.servers[name] = p
	return p
}

func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.folder}, elements...)...)
}

func (w *world) program(name string) string { return filepath.Join(w.programs, name) }

// flags are those of a server of Kubernetes.
func (w *world) flags(name string) []string {
	admin := "--kubeconfig=" + w.path("kubeconfig")
	return map[string][]string{
		"etcd": {"--data-dir=" + w.path("etcd"), "--client=" + etcdURL, "--peer=http://127.0.0.1:2380"},
		"kube-apiserver": {
			"--etcd-servers=" + etcdURL, "--secure-port=443", "--advertise-address=" + nodeAddress,
			"--tls-cert-file=" + w.path("certificates", "tls.crt"), "--tls-private-key-file=" + w.path("certificates", "tls.key"),
			"--service-cluster-ip-range=" + serviceIPs, "--service-account-issuer=" + apiServer,
			"--service-account-signing-key-file=" + w.path("accounts.key"), "--service-account-key-file=" + w.path("accounts.pub"),
			"--api-audiences=" + apiServer + ",mlpromote", "--token-auth-file=" + w.path("tokens.csv"), "--authorization-mode=Node,RBAC",
			"--allow-privileged=true",
		},
		"kube-controller-manager": {
			admin, "--service-account-private-key-file=" + w.path("accounts.key"), "--root-ca-file=" + w.authority(),
			"--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir=" + w.path("controllers"),
		},
		"kube-scheduler": {admin, "--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir=" + w.path("scheduler")},
		"kube-proxy":     {"--config=" + w.path("proxy.yaml")},
		"kubelet": {
			"--kubeconfig=" + w.path("kubelet.kubeconfig"), "--config=" + w.path("kubelet.yaml"),
			"--hostname-override=" + nodeName, "--node-ip=" + nodeAddress,
		},
	}[name]
}

// authority is the file of the CA of the API server.
func (w *world) authority() string { return w.path("certificates", "ca.pem") }

// ready asks a server whether it serves.
func (w *world) ready(name string) func() error {
	address := map[string]string{
		"etcd": etcdURL + "/health", "kube-apiserver": apiServer + "/readyz", "kube-proxy": "http://127.0.0.1:10256/livez",
		"kube-controller-manager": "https://127.0.0.1:10257/healthz", "kube-scheduler": "https://127.0.0.1:10259/healthz",
	}[name]
	switch name {
	case "containerd":
		return func() error {
			c, err := net.DialTimeout("unix", w.socket(), time.Second)
			if err != nil {
				return err
			}
			return c.Close()
		}
	case "kubelet":
		return func() error {
			node, err := w.get(apiServer + "/api/v1/nodes/" + nodeName)
			if err == nil && !strings.Contains(node, `"reason":"KubeletReady"`) {
				err = errors.New("the node is not ready: " + node)
			}
			return err
		}
	default:
		return func() error { _, err := w.get(address); return err }
	}
}

// get asks a server as an administrator.
func (w *world) get(address string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := w.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.1000s", address, response.Status, body)
	}
	return string(body), err
}

func (w *world) socket() string { return "/run/containerd/containerd.sock" }

// writeFiles writes the keys and the configuration of all servers.
func (w *world) writeFiles() error {
	// Some servers make certificates for themselves, which nobody else knows.
	w.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	private, public, err := signingKey()
	err = errors.Join(err, registrytest.Certificate(w.path("certificates"), "kubernetes",
		"kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes", firstServiceIP, nodeAddress))
	node := rand.Text()
	for name, text := range map[string]string{
		"accounts.key":       private,
		"accounts.pub":       public,
		"tokens.csv":         w.token + ",admin,admin,system:masters\n" + node + ",system:node:" + nodeName + ",node,system:nodes\n",
		"kubeconfig":         w.kubeconfig(w.token),
		"kubelet.kubeconfig": w.kubeconfig(node),
		"kubelet.yaml":       w.kubelet(),
		"proxy.yaml":         w.proxy(),
		"containerd.toml":    w.containerd(),
		"cni/10-pods.conflist": `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp",
			"ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podIPs + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		"logs/empty": "",
	} {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(w.path(name)), 0o755), os.WriteFile(w.path(name), []byte(text), 0o600))
	}
	return err
}

// signingKey makes a key for tokens of service accounts.
func signingKey() (private, public string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(key)
	publicDER, other := x509.MarshalPKIXPublicKey(key.Public())
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("PRIVATE KEY", privateDER), encode("PUBLIC KEY", publicDER), errors.Join(err, other)
}

func (w *world) kubeconfig(token string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: tests, cluster: {server: "` + apiServer + `", certificate-authority: "` + w.authority() + `"}}]
users: [{name: tests, user: {token: "` + token + `"}}]
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
current-context: tests
`
}

// kubelet is the configuration of the kubelet. The machine of a test may have cgroups of version 1, and needs no limits by
// class of pod.
func (w *world) kubelet() string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: ` + cgroup(w.folder) + `
cgroupsPerQOS: false
containerRuntimeEndpoint: unix://` + w.socket() + `
enforceNodeAllocatable: []
evictionHard: {imagefs.available: 0%, memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
resolvConf: ""
syncFrequency: 5s
volumeStatsAggPeriod: 0s
`
}

func (w *world) proxy() string {
	return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: "` + w.path("kubeconfig") + `"}
clusterCIDR: ` + podIPs + `
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
hostnameOverride: ` + nodeName + `
metricsBindAddress: 127.0.0.1:10249
mode: nftables
oomScoreAdj: 0
`
}

// containerd is the configuration of containerd. It asks folders of hosts how to reach a registry.
func (w *world) containerd() string {
	return `version = 3
root = "` + w.path("containerd") + `"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "` + pauseImage + `"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "` + w.path("hosts") + `"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["` + w.programs + `"]
  conf_dir = "` + w.path("cni") + `"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "` + w.program("runc") + `"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.internal.v1.opt']
  path = "` + w.path("opt") + `"
`
}
