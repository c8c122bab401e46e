// Package kubernetes_test reads the manifest as a cluster would, without one.
package kubernetes_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// manifest is what mlpromote.yaml makes in a cluster.
type manifest struct {
	text       string
	account    corev1.ServiceAccount
	deployment appsv1.Deployment
	service    corev1.Service
	budget     policyv1.PodDisruptionBudget
	network    networkingv1.NetworkPolicy
}

// read decodes every document into the type of its kind, and refuses fields that this
// does not have.
func read(t *testing.T) *manifest {
	t.Helper()
	text, err := os.ReadFile("mlpromote.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := &manifest{text: string(text)}
	kinds := map[string]any{
		"v1 ServiceAccount": &m.account, "apps/v1 Deployment": &m.deployment, "v1 Service": &m.service,
		"policy/v1 PodDisruptionBudget": &m.budget, "networking.k8s.io/v1 NetworkPolicy": &m.network,
	}
	for document := range strings.SplitSeq(m.text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		name := kind.APIVersion + " " + kind.Kind
		into, ok := kinds[name]
		if !ok {
			t.Fatalf("%s: not looked for, or there twice", name)
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		delete(kinds, name)
	}
	for name := range kinds {
		t.Errorf("no %s", name)
	}
	return m
}

func TestPodIsLockedDown(t *testing.T) {
	t.Parallel()
	m := read(t)
	pod := m.deployment.Spec.Template.Spec
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod may be root, or call what it likes: %+v", s)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != m.account.Name {
		t.Error("the pod has a token of the cluster that it does not need")
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("container %s is not locked down: %+v", c.Name, s)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s asks for no resources: %+v", c.Name, c.Resources)
		}
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?m)^USER ([0-9]+):([0-9]+)$`).FindSubmatch(dockerfile)
	if s := pod.SecurityContext; user == nil || s.RunAsUser == nil || s.RunAsGroup == nil ||
		string(user[1]) != "65532" || *s.RunAsUser != 65532 || *s.RunAsGroup != 65532 {
		t.Errorf("the image runs as %s, the pod as %v:%v", user, s.RunAsUser, s.RunAsGroup)
	}
}

// Everything refers to something that is there.
func TestReferences(t *testing.T) {
	t.Parallel()
	m := read(t)
	template := m.deployment.Spec.Template
	pod := labels.Set(template.Labels)
	for what, selector := range map[string]*metav1.LabelSelector{
		"deployment": m.deployment.Spec.Selector, "budget": m.budget.Spec.Selector, "network policy": &m.network.Spec.PodSelector,
		"service": {MatchLabels: m.service.Spec.Selector}, "spread": template.Spec.TopologySpreadConstraints[0].LabelSelector,
	} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(pod) {
			t.Errorf("the %s does not select the pod: %v, %v", what, s, err)
		}
	}
	c := template.Spec.Containers[0]
	ports := make(map[string]bool)
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	wanted := []string{m.service.Spec.Ports[0].TargetPort.StrVal,
		m.network.Spec.Ingress[0].Ports[0].Port.StrVal, m.network.Spec.Ingress[1].Ports[0].Port.StrVal}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		wanted = append(wanted, probe.HTTPGet.Port.StrVal)
	}
	for _, name := range wanted {
		if !ports[name] {
			t.Errorf("port %q is none of the container's", name)
		}
	}
	volumes := make(map[string]bool)
	for _, v := range template.Spec.Volumes {
		volumes[v.Name] = true
		if v.Secret != nil {
			m.wantSecret(t, v.Secret.SecretName, "")
		}
	}
	for _, mount := range c.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("no volume %s", mount.Name)
		}
		if mount.SubPath != "" || mount.SubPathExpr != "" {
			t.Errorf("%s is mounted with a sub-path, and would never change while the pod runs", mount.MountPath)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			m.wantSecret(t, e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
		}
	}
	for _, meta := range []metav1.ObjectMeta{m.account.ObjectMeta, m.deployment.ObjectMeta,
		m.service.ObjectMeta, m.budget.ObjectMeta, m.network.ObjectMeta} {
		if meta.Namespace != "mlpromote" {
			t.Errorf("%s is in namespace %q", meta.Name, meta.Namespace)
		}
	}
}

// wantSecret wants the comment at the top to make a secret, with a key.
func (m *manifest) wantSecret(t *testing.T, name, key string) {
	t.Helper()
	command := regexp.MustCompile(`create secret (?:generic|tls) ` + regexp.QuoteMeta(name) + ` (?:.*\\\n)*.*\n`).FindString(m.text)
	if command == "" {
		t.Errorf("nothing says how to make the secret %s", name)
	}
	if !regexp.MustCompile(`=` + regexp.QuoteMeta(key) + `\b`).MatchString(command) {
		t.Errorf("secret %s is made without %s: %s", name, key, command)
	}
}

// The policy is a folder of its own, with all that the service reads again.
func TestPolicyIsAFolder(t *testing.T) {
	t.Parallel()
	m := read(t)
	c := m.deployment.Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(c.VolumeMounts, func(v corev1.VolumeMount) bool { return v.Name == "files" })
	if i < 0 || !slices.Contains(c.Args, "--policy-dir="+c.VolumeMounts[i].MountPath) {
		t.Fatalf("args %v, mounts %v: want --policy-dir where the files are", c.Args, c.VolumeMounts)
	}
	for _, file := range []string{"environments.yaml", "access.yaml", "promoter.pub"} {
		m.wantSecret(t, "mlpromote-files", file)
	}
}

// While one replica is replaced another serves, and the one that goes is given the time
// that it asks for.
func TestReplicas(t *testing.T) {
	t.Parallel()
	m := read(t)
	d := m.deployment.Spec
	if d.Replicas == nil || *d.Replicas < 2 || d.Strategy.RollingUpdate == nil || d.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Errorf("replicas %v, strategy %+v", d.Replicas, d.Strategy)
	}
	if m.budget.Spec.MinAvailable.IntValue() < 1 || m.budget.Spec.MinAvailable.IntValue() >= int(*d.Replicas) {
		t.Errorf("%v of %d replicas must stay: none can be moved, or none stays", m.budget.Spec.MinAvailable, *d.Replicas)
	}
	c := d.Template.Spec.Containers[0]
	for probe, path := range map[*corev1.Probe]string{c.StartupProbe: "/healthz", c.LivenessProbe: "/healthz", c.ReadinessProbe: "/readyz"} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks %s %s, want %s by HTTPS", probe.HTTPGet.Scheme, probe.HTTPGet.Path, path)
		}
	}
	for _, v := range d.Template.Spec.Volumes {
		if v.HostPath != nil || v.PersistentVolumeClaim != nil {
			t.Errorf("volume %s belongs to one replica", v.Name)
		}
	}
}
