//go:build linux

package kubernetes

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// effective is how soon the page on exports says that a policy counts that was applied.
const effective = 10 * time.Second

// Pods that an admission controller is asked about. They are not made: the API server asks, and forgets them.
const (
	containerPod = `apiVersion: v1
kind: Pod
metadata: {name: asked}
spec:
  imagePullSecrets: [{name: mlpromote}]
  containers: [{name: server, image: "IMAGE"}]
`
	volumePod = `apiVersion: v1
kind: Pod
metadata: {name: asked}
spec:
  imagePullSecrets: [{name: mlpromote}]
  containers: [{name: server, image: "` + boxImage + `"}]
  volumes: [{name: model, image: {reference: "IMAGE"}}]
`
)

// admission is an environment with an exported policy, which the controller of a cluster has.
type admission struct {
	*cluster
	job    *programtest.Job
	export []string // command
	file   string   // of the policy
}

func (c *cluster) admission(j *programtest.Job, flags ...string) *admission {
	file := filepath.Join(j.Dir, "policy.yaml")
	return &admission{cluster: c, job: j, file: file, export: append([]string{"export", "policy", "--env", "prod", "-o", file}, flags...)}
}

// asks returns the image with which a pod is admitted, or why the pod is refused.
func (a *admission) asks(pod, image string) (admitted, refused string) {
	out, err := a.try(strings.Replace(pod, "IMAGE", image, 1), "create", "--dry-run=server", "--filename=-",
		"--output=jsonpath={.spec.containers[0].image}{.spec.volumes[?(@.name==\"model\")].image.reference}")
	if err != nil {
		return "", out
	}
	return strings.TrimPrefix(out, boxImage), ""
}

// admits wants a pod to be admitted with an image that ends so.
func (a *admission) admits(what, pod, image, end string) {
	a.Helper()
	if admitted, refused := a.asks(pod, image); !strings.HasSuffix(admitted, end) || refused != "" {
		a.Errorf("%s: admitted with %q, want %s; refused: %s", what, admitted, end, refused)
	}
}

// refuses wants a pod to be refused for a reason.
func (a *admission) refuses(what, pod, image, why string) {
	a.Helper()
	if admitted, refused := a.asks(pod, image); !strings.Contains(refused, why) {
		a.Errorf("%s: admitted with %q, refused: %q; want %q", what, admitted, refused, why)
	}
}

// renew exports the policy, applies it, and waits until it refuses an image for a reason.
func (a *admission) renew(pod, image, why string) {
	a.Helper()
	a.job.Must(a.export...)
	began := time.Now()
	a.kubectl("apply", "--filename="+a.file)
	err := a.soon(pod, image, why)
	took := time.Since(began)
	if err != nil || took > effective {
		admitted, refused := a.asks(pod, image)
		a.Fatalf("%s is refused for %q after %v (%v), want within %v of kubectl apply; now admitted with %q, or refused: %s", image, why, took, err, effective, admitted, refused)
	}
	a.Logf("%s: %v after kubectl apply began", why, took.Round(10*time.Millisecond))
}

// soon waits until a pod is refused for a reason, or with none, admitted.
func (a *admission) soon(pod, image, why string) error {
	return eventually(func() (bool, error) {
		_, refused := a.asks(pod, image)
		return strings.Contains(refused, why) && (refused == "") == (why == ""), nil
	})
}

const (
	noSummary    = "no matching attestations"
	inQuarantine = "in quarantine, restricted or otherwise not to be used any more"
)

var attachOfPage = regexp.MustCompile("(?s)```sh elsewhere\n(mlpromote trust export [^`]*cosign attach.*?)\n```")

// attach gives cosign what the page says, in the folder of the job.
func (s *service) attach(t *testing.T, j *programtest.Job) {
	t.Helper()
	login := `{"auths": {"` + s.Host() + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("token:"+s.token)) + `"}}}`
	if err := os.WriteFile(s.path("config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	program := os.Getenv("MLPROMOTE_COSIGN")
	if program == "" {
		t.Fatal("MLPROMOTE_COSIGN names no cosign: make interop-kubernetes builds one")
	}
	command := strings.ReplaceAll(block(t, "hand-over.md", attachOfPage), "registry.example.com", s.Host())
	cmd := exec.Command("sh", "-euc", command)
	cmd.Dir = j.Dir
	cmd.Env = append(j.Env, "PATH="+filepath.Dir(program)+":"+filepath.Dir(j.Program)+":"+os.Getenv("PATH"),
		"DOCKER_CONFIG="+s.path(), "SSL_CERT_FILE="+s.path("tls", "ca.pem"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// policy-controller admits an engine once it is promoted and its summary is attached in the form that it reads, until it is in quarantine.
func TestAdmission(t *testing.T) {
	t.Parallel()
	c := start(t)
	s := c.serve()
	c.policyController(s.path("tls", "ca.pem"))
	j := s.job(t)
	a := c.admission(j, "--for", "policy-controller", "--summaries", s.Host()+"/staging/summaries")
	s.pullSecret(j.Must("token", "create", "node", "--allow", "read"))

	j.Bump()
	j.Must("build")
	j.Must("verify")
	staged := j.Must("resolve", programtest.Model, "--env", "staging", "--as", "image")
	a.renew(containerPod, staged, noSummary)
	j.Must("promote")
	engine, image := j.Must("resolve", programtest.Model, "--env", "prod"), j.Must("resolve", programtest.Model, "--env", "prod", "--as", "image")
	// It does not read what the service has: its bundle.
	a.refuses("promoted, nothing attached", containerPod, image, noSummary)
	s.attach(t, j)
	a.admits("promoted image form", containerPod, image, image)
	a.admits("promoted engine", containerPod, engine, engine)
	a.admits("tag of a promoted release", containerPod, s.Host()+"/prod/vision/digits:1.0.1", ":1.0.1@"+j.Head("prod"))
	j.Bump()
	j.Must("build")
	unpromoted := s.Host() + "/staging/vision/digits@" + j.Head("staging")
	a.refuses("release in staging alone", containerPod, unpromoted, noSummary)
	a.refuses("tag of it", containerPod, s.Host()+"/staging/vision/digits:1.0.2", noSummary)
	a.refuses("tag that is not there", containerPod, s.Host()+"/prod/vision/digits:2.0.0", "must be an image digest")
	a.refuses("another repository of this host", containerPod, s.Host()+"/other/"+image[strings.LastIndex(image, "/")+1:], "no matching policies")
	a.admits("a volume, which it does not look at", strings.Replace(volumePod, boxImage, image, 1), unpromoted, unpromoted)

	a.readsNoBundle(s, image, unpromoted)
	j.Must("quarantine", "prod/"+programtest.Model, "--reason", "a test")
	a.admits("in quarantine, before the export", containerPod, image, image)
	a.renew(containerPod, image, inQuarantine)
	a.refuses("engine in quarantine", containerPod, engine, inQuarantine)
	a.refuses("with its tag", containerPod, strings.Replace(image, "@", ":1.0.1@", 1), inQuarantine)
}

// readsNoBundle shows why the page wants the older form: authorities with keys read no bundle. And it shows why the page wants enable-oci11
// off: with it, they take a summary that nobody signed.
func (a *admission) readsNoBundle(s *service, image, unpromoted string) {
	a.Helper()
	data, err := os.ReadFile(a.file)
	if err != nil {
		a.Fatal(err)
	}
	beside := regexp.MustCompile(`(?m)^      source:\n.*\n`).ReplaceAllString(string(data), "")
	for _, policy := range []struct{ text, why string }{
		{strings.Replace(beside, "      key:\n", "      signatureFormat: bundle\n      key:\n", 1), "the authority must be keyless"},
		{beside, noSummary},
	} {
		a.cluster.apply(policy.text)
		if err := a.soon(containerPod, image, policy.why); err != nil {
			a.Fatalf("a promoted image with a bundle beside it is not refused for %q: %v\n%s", policy.why, err, policy.text)
		}
	}
	if err := s.forge(unpromoted); err != nil {
		a.Fatal(err)
	}
	a.refuses("forged", containerPod, unpromoted, noSummary)
	setting := func(value string) {
		a.controlled("", "patch", "configmap", "config-policy-controller", "--type=merge", `--patch={"data": {"enable-oci11": "`+value+`"}}`)
	}
	setting("true")
	if err := a.soon(containerPod, unpromoted, ""); err != nil {
		a.Errorf("with enable-oci11, a forged summary is refused (%v): is docs/how-to/hand-over.md still right?", err)
	}
	a.refuses("promoted, with enable-oci11", containerPod, image, noSummary)
	setting("false")
	a.cluster.apply(string(data))
	if err := a.soon(containerPod, image, ""); err != nil {
		a.Fatal(err)
	}
}

// forge attaches a summary to an image that its promoter never signed.
func (s *service) forge(image string) error {
	ref, err := name.NewDigest(image)
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithAuth(&authn.Basic{Username: "token", Password: s.token}), remote.WithTransport(s.cluster.client.Transport)}
	subject, err := remote.Head(ref, options...)
	if err != nil {
		return err
	}
	statement := `{"_type": "https://in-toto.io/Statement/v1", "predicateType": "` + evidence.PredicateVSA + `", "subject": [],
		"predicate": {"verificationResult": "PASSED", "verifier": {"id": "` + evidence.VerifierID("local") + `"},
		"resourceUri": "oci://local/prod/vision/digits", "verifiedLevels": ["` + evidence.VSALevelParity + `"]}}`
	envelope := `{"payloadType": "application/vnd.in-toto+json", "payload": "` + base64.StdEncoding.EncodeToString([]byte(statement)) + `", "signatures": [{"sig": "AAAA"}]}`
	forged, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte(envelope), "application/vnd.in-toto+json"))
	if err != nil {
		return err
	}
	forged = mutate.Subject(mutate.ConfigMediaType(mutate.MediaType(forged, types.OCIManifestSchema1), "application/vnd.in-toto+json"), *subject).(v1.Image)
	d, err := forged.Digest()
	if err != nil {
		return err
	}
	return remote.Write(ref.Context().Digest(d.String()), forged, options...)
}
