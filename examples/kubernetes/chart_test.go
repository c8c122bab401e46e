// Package kubernetes_test renders the chart with Helm and reads the result as a cluster would, without one.
package kubernetes_test

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	chart = "chart"
	page  = "../../docs/how-to/deploy.md"
)

// helm runs Helm in a folder and returns its output.
func helm(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("MLPROMOTE_HELM")
	if program == "" {
		found, err := exec.LookPath("helm")
		if err != nil {
			t.Skip("no helm in PATH, and MLPROMOTE_HELM names none; make test builds it")
		}
		program = found
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + t.TempDir()}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return string(out) + stderr.String(), err
}

// rendered is the content of the cluster after an installation.
type rendered struct {
	account     corev1.ServiceAccount
	config      corev1.ConfigMap
	service     corev1.Service
	network     *networkingv1.NetworkPolicy
	ingress     *networkingv1.Ingress
	budget      *policyv1.PodDisruptionBudget
	claim       *corev1.PersistentVolumeClaim
	deployment  *appsv1.Deployment
	statefulSet *appsv1.StatefulSet
	monitor     *serviceMonitor
}

// serviceMonitor has the fields of the Prometheus operator that the chart uses.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// pod returns the template of the workload, which must be one of two kinds, and its selector.
func (r *rendered) pod(t *testing.T) (corev1.PodTemplateSpec, *metav1.LabelSelector) {
	t.Helper()
	if (r.deployment == nil) == (r.statefulSet == nil) {
		t.Fatal("want a Deployment or a StatefulSet")
	}
	if r.deployment != nil {
		return r.deployment.Spec.Template, r.deployment.Spec.Selector
	}
	return r.statefulSet.Spec.Template, r.statefulSet.Spec.Selector
}

// decode reads each document into the type of its kind. Unknown fields, unknown kinds and a second document of a kind are errors.
func decode(t *testing.T, text string) *rendered {
	t.Helper()
	r := new(rendered)
	seen := make(map[string]bool)
	for _, document := range strings.Split("\n"+text, "\n---\n")[1:] {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		var into any
		switch name := kind.APIVersion + " " + kind.Kind; name {
		case "v1 ServiceAccount":
			into = &r.account
		case "v1 ConfigMap":
			into = &r.config
		case "v1 Service":
			into = &r.service
		case "networking.k8s.io/v1 NetworkPolicy":
			into = &r.network
		case "networking.k8s.io/v1 Ingress":
			into = &r.ingress
		case "policy/v1 PodDisruptionBudget":
			into = &r.budget
		case "v1 PersistentVolumeClaim":
			into = &r.claim
		case "apps/v1 Deployment":
			into = &r.deployment
		case "apps/v1 StatefulSet":
			into = &r.statefulSet
		case "monitoring.coreos.com/v1 ServiceMonitor":
			into = &r.monitor
		default:
			t.Fatalf("%q: not expected", name)
		}
		if seen[kind.Kind] {
			t.Errorf("two documents of the kind %s", kind.Kind)
		}
		seen[kind.Kind] = true
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
	}
	return r
}

// values are the files of values on the page, by name.
func values(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n# (\\S+\\.yaml)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		files[m[1]] = m[2]
	}
	if len(files) != 2 {
		t.Fatalf("the page has %d files of values, want 2", len(files))
	}
	return files
}

const environments = "registry: local\nenvironments:\n  staging:\n  prod: {from: staging}\ntrust:\n" +
	"  - {key: promoter.pub, roles: [promoter], resources: [\"oci://local/\"]}\n"

const accessRules = "issuers:\n  - issuer: https://issuer.example.com\n    audience: mlpromote\n    principal: \"ci:{sub}\"\n" +
	"    rules:\n      - match: {sub: \"builds\"}\n        grants: [{allow: [read], environment: staging, model: \"**\"}]\n"

// folder has the files that the page passes to Helm.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := values(t)
	files["environments.yaml"], files["access.yaml"], files["promoter.pub"] = environments, accessRules, "-----BEGIN PUBLIC KEY-----\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// installation returns the arguments of `helm install` on the page, with other values than the page has.
func installation(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^helm (install (?:.*\\\n)*.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the page has no helm install")
	}
	var args []string
	for word := range strings.FieldsSeq(strings.ReplaceAll(string(line[1]), "\\\n", " ")) {
		args = append(args, strings.Trim(word, "'"))
	}
	path, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"examples/kubernetes/chart": path, "volume.yaml": file} {
		i := slices.Index(args, from)
		if i < 0 {
			t.Fatalf("helm %q does not name %s", args, from)
		}
		args[i] = to
	}
	return args
}

// render installs as the page does, without a cluster.
func render(t *testing.T, file string, more ...string) *rendered {
	t.Helper()
	args := append(installation(t, file), more...)
	args[0] = "template"
	out, err := helm(t, folder(t), args...)
	if err != nil {
		t.Fatalf("helm %q: %v\n%s", args, err, out)
	}
	return decode(t, out)
}

// everywhere runs a test with each combination of the page, and with what they leave out.
func everywhere(t *testing.T, test func(t *testing.T, r *rendered)) {
	t.Helper()
	for name, more := range map[string][]string{
		"volume.yaml": nil, "replicas.yaml": nil,
		"volume.yaml, everything set": {"--set", "volume.class=fast,pullSecrets={pull,second},serviceAccountAnnotations.a/b=c,serviceMonitor=true,ingress.enabled=true," +
			"ingress.annotations.a/b=c,networkPolicy.monitoring=prometheus,networkPolicy.egress={443}"},
		"volume.yaml, node port":        {"--set", "service.type=NodePort,service.nodePort=30443,service.annotations.a/b=c,url=https://registry.example.com:30443"},
		"replicas.yaml, everything off": {"--set", "replicas=1,keys=,serviceMonitor=false,ingress.enabled=false,ingress.class=,ingress.tls=,settings.insecure_http=true,networkPolicy.enabled=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _, _ := strings.Cut(name, ",")
			test(t, render(t, file, more...))
		})
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	for file := range values(t) {
		args := installation(t, file)
		if out, err := helm(t, folder(t), append([]string{"lint", "--strict"}, args[2:]...)...); err != nil || strings.Contains(out, "Fail:") {
			t.Errorf("helm lint with %s: %v\n%s", file, err, out)
		}
	}
}

// Each combination that cannot work is refused with a sentence, and so is a value that does not exist.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, set, want string }{
		{"volume.yaml", "replicas=2", "replicas is 2 without stores: replicas share a PostgreSQL database and a bucket"},
		{"volume.yaml", "tls=", "nothing terminates TLS"},
		{"replicas.yaml", "ingress.enabled=false", "nothing terminates TLS"},
		{"replicas.yaml", "ingress.enabled=false,tls=mlpromote-tls", "ingress has settings without ingress.enabled"},
		{"volume.yaml", "ingress.class=traefik", "ingress has settings without ingress.enabled"},
		{"replicas.yaml", "volume.size=1Gi", "volume is set beside stores"},
		{"replicas.yaml", "service.type=LoadBalancer,serviceMonitor=false", "service.type is LoadBalancer without tls"},
		{"volume.yaml", "service.nodePort=30443", "it needs service.type NodePort"},
		{"volume.yaml", "service.type=LoadBalancer,serviceMonitor=true", "which need no token"},
		{"volume.yaml", "service.type=ExternalName", "value must be one of"},
		{"volume.yaml", "image=", `image is "": want REPOSITORY:VERSION`},
		{"volume.yaml", "image=registry.example.com:5000/mlpromote", "want REPOSITORY:VERSION"},
		{"volume.yaml", "image=registry.example.com/mlpromote:latest", "name a version"},
		{"volume.yaml", "image=registry.example.com/mlpromote:Latest", "name a version"},
		{"volume.yaml", "image=registry.example.com/mlpromote@sha256:ab", "want REPOSITORY:VERSION"},
		{"volume.yaml", "url=", "url is"},
		{"volume.yaml", "url=http://registry.example.com", "want the https:// URL"},
		{"volume.yaml", "url=https://registry.example.com/path", "without a user or a path"},
		{"volume.yaml", "url=https://user:password@registry.example.com", "without a user or a path"},
		{"volume.yaml", "url=https://registry.example.com?a=b", "without a user or a path"},
		{"volume.yaml", "url=https://:443", "want the https:// URL"},
		{"volume.yaml", "url=https://registry.example.com:65536", "ports end at 65535"},
		{"volume.yaml", "policy.environments=", "policy.environments is missing"},
		{"volume.yaml", "replicas=0", "minimum: got 0, want 1"},
		{"volume.yaml", "replica=2", "additional properties 'replica' not allowed"},
		{"volume.yaml", "volume.sise=1Gi", "additional properties 'sise' not allowed"},
		{"volume.yaml", "volume.size=much", "does not match pattern"},
		{"volume.yaml", "volume.size=10GB", "does not match pattern"},
		{"volume.yaml", "resources.limits.memory=1GB", "does not match pattern"},
		{"volume.yaml", "ingress.host=x", "additional properties 'host' not allowed"},
		{"volume.yaml", "networkPolicy.egress={70000}", "/networkPolicy/egress/0"},
		{"volume.yaml", "tls=../secret", "does not match pattern"},
		{"volume.yaml", "settings.gc_keep=1h", "additional properties 'gc_keep' not allowed"},
		{"volume.yaml", "settings.database=postgres://user:password@db/x", "additional properties 'database' not allowed"},
		{"volume.yaml", "settings.gc_keep_for=90d", "does not match pattern"},
		{"volume.yaml", "settings.gc_interval=-1h", "does not match pattern"},
		{"volume.yaml", "settings.body_timeout=0s", "/settings/body_timeout"},
		{"volume.yaml", "settings.gc_keep_heads=many", "got string, want integer"},
		{"volume.yaml", "settings.rate_limit=0.5", "want integer"},
		{"volume.yaml", "settings.max_uploads=-1", "minimum: got -1, want 0"},
		{"volume.yaml", "settings.max_header_bytes=10", "minimum: got 10, want 1,024"},
		{"volume.yaml", "settings.log_level=loud", "value must be one of"},
		{"volume.yaml", "settings.hosts=https://second.example.com", "does not match pattern"},
		{"volume.yaml", "settings.insecure_http=yes", "got string, want boolean"},
		{"volume.yaml", "policy.files.x=-----BEGIN ENCRYPTED PRIVATE KEY-----", "policy.files has a private key, x"},
		{"volume.yaml", "policy.files.a/b=x", "invalid propertyName 'a/b'"},
		{"volume.yaml", `policy.files.access\.yaml=x`, "pass it as policy.environments or policy.access"},
		{"replicas.yaml", "stores=postgres://user:password@db/x", "does not match pattern"},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			args := append(installation(t, c.file), "--set", c.set)
			args[0] = "template"
			if c.set == "policy.environments=" {
				args = slices.DeleteFunc(args, func(arg string) bool { return arg == "policy.environments=environments.yaml" })
				args = slices.Delete(args, slices.Index(args, "--set-file"), slices.Index(args, "--set-file")+1)
			}
			out, err := helm(t, folder(t), args...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("helm %q: error %v, want %q:\n%s", args, err, c.want, out)
			}
		})
	}
}

// The schema has the settings of the service, less those that the chart sets itself, and takes the default of each.
func TestSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Fields("data keys listen database storage policy_dir url auth tls_cert tls_key metrics_listen shutdown_delay shutdown_grace")
	var want, defaults []string
	for _, m := range regexp.MustCompile("(?m)^\\| `--[^|]*\\| `MLPROMOTE_[^|]*\\| `([a-z_]+)` \\| (\\S+) \\|").FindAllStringSubmatch(string(text), -1) {
		if slices.Contains(own, m[1]) {
			continue
		}
		want = append(want, m[1])
		if m[2] != "-" {
			defaults = append(defaults, "settings."+m[1]+"="+m[2])
		}
	}
	render(t, "volume.yaml", "--set", strings.Join(defaults, ","))
	var schema struct {
		Properties struct {
			Settings struct{ Properties map[string]any }
		}
	}
	data, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err == nil {
		err = yaml.Unmarshal(data, &schema)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(schema.Properties.Settings.Properties)); err != nil || !slices.Equal(got, want) || len(defaults) < 20 {
		t.Errorf("the schema has the settings %q, error %v; docs/reference/serve.md has %q", got, err, want)
	}
	pod, _ := render(t, "volume.yaml", "--set", "settings.disk_reserve=10737418240,settings.rate_limit=50,settings.log_format=text,settings.hosts=second.example.com,settings.private_webhooks_unsafe=true").pod(t)
	env := make(map[string]string)
	for _, e := range pod.Spec.Containers[0].Env {
		env[e.Name] = cmp.Or(env[e.Name], e.Value)
	}
	for name, value := range map[string]string{"MLPROMOTE_DISK_RESERVE": "10737418240", "MLPROMOTE_RATE_LIMIT": "50", "MLPROMOTE_LOG_FORMAT": "text",
		"MLPROMOTE_PRIVATE_WEBHOOKS_UNSAFE": "true", "MLPROMOTE_HOSTS": ""} {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
	const hosts = "--hosts=registry,registry.mlpromote,registry.mlpromote.svc,registry.mlpromote.svc.cluster.local,second.example.com"
	if args := pod.Spec.Containers[0].Args; !slices.Contains(args, hosts) {
		t.Errorf("args %q, want %s", args, hosts)
	}
}
