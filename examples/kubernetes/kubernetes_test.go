package kubernetes_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestPodIsLockedDown(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?m)^USER ([0-9]+):([0-9]+)$`).FindSubmatch(dockerfile)
	everywhere(t, func(t *testing.T, r *rendered) {
		template, _ := r.pod(t)
		pod := template.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("the pod may be root, or call what it likes: %+v", s)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != r.account.Name {
			t.Error("the pod has a token of the cluster that it does not need")
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
			t.Error("the pod has namespaces of the node, or variables of services")
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 || s.Privileged != nil {
				t.Errorf("container %s is not locked down: %+v", c.Name, s)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("container %s asks for no resources: %+v", c.Name, c.Resources)
			}
		}
		if s := pod.SecurityContext; user == nil || s.RunAsUser == nil || s.RunAsGroup == nil ||
			string(user[1]) != "65532" || *s.RunAsUser != 65532 || *s.RunAsGroup != 65532 {
			t.Errorf("the image runs as %s, the pod as %v:%v", user, s.RunAsUser, s.RunAsGroup)
		}
	})
}

// Selectors, ports, mounts and names refer to things that exist.
func TestReferences(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, r *rendered) {
		template, selector := r.pod(t)
		selectors := map[string]*metav1.LabelSelector{"workload": selector, "service": {MatchLabels: r.service.Spec.Selector},
			"spread": template.Spec.TopologySpreadConstraints[0].LabelSelector}
		c := template.Spec.Containers[0]
		ports, served := make(map[string]bool), make(map[string]bool)
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		var wanted []string
		for _, p := range r.service.Spec.Ports {
			served[p.Name] = true
			wanted = append(wanted, p.TargetPort.StrVal)
		}
		if r.budget != nil {
			selectors["budget"] = r.budget.Spec.Selector
		}
		if r.network != nil {
			selectors["network policy"] = &r.network.Spec.PodSelector
			wanted = append(wanted, r.network.Spec.Ingress[0].Ports[0].Port.StrVal, r.network.Spec.Ingress[1].Ports[0].Port.StrVal)
		}
		if r.monitor != nil {
			s, err := metav1.LabelSelectorAsSelector(&r.monitor.Spec.Selector)
			if err != nil || s.Empty() || !s.Matches(labels.Set(r.service.Labels)) || !served[r.monitor.Spec.Endpoints[0].Port] {
				t.Errorf("the monitor does not find the service: %+v, %v", r.monitor.Spec, err)
			}
		}
		if r.ingress != nil {
			rule := r.ingress.Spec.Rules[0]
			to := rule.HTTP.Paths[0].Backend.Service
			if rule.Host != "registry.example.com" || to.Name != r.service.Name || !served[to.Port.Name] {
				t.Errorf("the ingress sends %s to %+v", rule.Host, to)
			}
		}
		for what, selector := range selectors {
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || s.Empty() || !s.Matches(labels.Set(template.Labels)) {
				t.Errorf("the %s does not select the pod: %v, %v", what, s, err)
			}
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			wanted = append(wanted, probe.HTTPGet.Port.StrVal)
		}
		for _, name := range wanted {
			if !ports[name] {
				t.Errorf("port %q is none of the container's", name)
			}
		}
		r.wantVolumes(t, template.Spec)
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				wantSecret(t, e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
			}
		}
		for _, meta := range []metav1.ObjectMeta{r.account.ObjectMeta, r.config.ObjectMeta, r.service.ObjectMeta} {
			if meta.Namespace != "mlpromote" || meta.Name != "registry" {
				t.Errorf("%s is in namespace %q", meta.Name, meta.Namespace)
			}
		}
	})
}

// wantVolumes wants every mount to have a volume, and every volume to be a mount.
func (r *rendered) wantVolumes(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	volumes := make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		switch {
		case v.Secret != nil:
			wantSecret(t, v.Secret.SecretName, "")
		case v.ConfigMap != nil && v.ConfigMap.Name != r.config.Name:
			t.Errorf("volume %s has the ConfigMap %s", v.Name, v.ConfigMap.Name)
		case v.PersistentVolumeClaim != nil && (r.claim == nil || v.PersistentVolumeClaim.ClaimName != r.claim.Name):
			t.Errorf("volume %s has the claim %s", v.Name, v.PersistentVolumeClaim.ClaimName)
		case v.HostPath != nil:
			t.Errorf("volume %s is a folder of the node", v.Name)
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("no volume %s", mount.Name)
		}
		delete(volumes, mount.Name)
		if mount.SubPath != "" || mount.SubPathExpr != "" {
			t.Errorf("%s is mounted with a sub-path, and would never change while the pod runs", mount.MountPath)
		}
	}
	if len(volumes) > 0 {
		t.Errorf("volumes %v are not mounted", volumes)
	}
}

// wantSecret wants the page to create a secret with a key.
func wantSecret(t *testing.T, name, key string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`create secret (?:generic|tls) ` + regexp.QuoteMeta(name) + ` (?:.*\\\n)*.*\n`).FindString(string(text))
	if command == "" {
		t.Errorf("no command creates the secret %s", name)
	}
	if !regexp.MustCompile(`=` + regexp.QuoteMeta(key) + `\b`).MatchString(command) {
		t.Errorf("secret %s is made without %s: %s", name, key, command)
	}
}

// variable is the value of a variable of a container.
func variable(c corev1.Container, name string) string {
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return ""
	}
	return c.Env[i].Value
}

// Commands in the pod use the folders of the service, also the folder of keys if there is none: else they would make a key.
func TestCommandsInThePod(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, r *rendered) {
		template, _ := r.pod(t)
		c := template.Spec.Containers[0]
		for name, want := range map[string]string{"MLPROMOTE_DATA": "/data", "MLPROMOTE_POLICY_DIR": "/policy", "MLPROMOTE_KEYS": "/keys"} {
			if got := variable(c, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	})
}

// The files of the policy are mounted as a folder, byte for byte.
func TestPolicyIsAFolder(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, r *rendered) {
		template, _ := r.pod(t)
		c := template.Spec.Containers[0]
		i := slices.IndexFunc(c.VolumeMounts, func(v corev1.VolumeMount) bool { return v.Name == "policy" })
		if i < 0 || variable(c, "MLPROMOTE_POLICY_DIR") != c.VolumeMounts[i].MountPath {
			t.Fatalf("env %v, mounts %v: want MLPROMOTE_POLICY_DIR at the mount of policy", c.Env, c.VolumeMounts)
		}
		if got := r.config.Data; len(got) != 3 || got["environments.yaml"] != environments || got["access.yaml"] != accessRules ||
			got["promoter.pub"] != "-----BEGIN PUBLIC KEY-----\n" {
			t.Errorf("the folder has %q", got)
		}
	})
}

// One pod at a time has the volume. Pods without a volume are replaced one after the other, while others serve.
func TestReplicas(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, r *rendered) {
		template, _ := r.pod(t)
		c := template.Spec.Containers[0]
		var local, stores []string
		for _, v := range template.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				local = append(local, v.Name)
			}
		}
		for _, e := range c.Env {
			if e.Name == "MLPROMOTE_DATABASE" || e.Name == "MLPROMOTE_STORAGE" {
				stores = append(stores, e.Name)
				if e.Value != "" || e.ValueFrom == nil {
					t.Errorf("%s is %q, want it from a secret", e.Name, e.Value)
				}
			}
		}
		if s := r.statefulSet; s != nil {
			if *s.Spec.Replicas != 1 || len(local) != 1 || len(stores) != 0 || r.claim.Annotations["helm.sh/resource-policy"] != "keep" || r.budget != nil {
				t.Errorf("%d replicas, volumes %v, stores %v, claim %v", *s.Spec.Replicas, local, stores, r.claim.Annotations)
			}
		} else if d := r.deployment.Spec; d.Strategy.RollingUpdate == nil || d.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 ||
			len(local) != 0 || len(stores) != 2 || r.claim != nil || (*d.Replicas > 1) != (r.budget != nil) {
			t.Errorf("replicas %v, strategy %+v, volumes %v, stores %v, budget %v", d.Replicas, d.Strategy, local, stores, r.budget)
		}
		if r.budget != nil && r.budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%v pods may be moved at a time", r.budget.Spec.MaxUnavailable)
		}
		scheme := corev1.URISchemeHTTP
		if slices.Contains(c.Args, "--tls-cert=/tls/tls.crt") {
			scheme = corev1.URISchemeHTTPS
		}
		for probe, path := range map[*corev1.Probe]string{c.StartupProbe: "/healthz", c.LivenessProbe: "/healthz", c.ReadinessProbe: "/readyz"} {
			if probe.HTTPGet.Path != path || probe.HTTPGet.Scheme != scheme {
				t.Errorf("a probe asks %s %s, want %s by %s", probe.HTTPGet.Scheme, probe.HTTPGet.Path, path, scheme)
			}
		}
		if (scheme == corev1.URISchemeHTTP) != slices.Contains(c.Args, "--insecure-http") || !slices.Contains(c.Args, "--auth") {
			t.Errorf("args %v", c.Args)
		}
	})
}

// Without a value for it, something is not there.
func TestOptional(t *testing.T) {
	t.Parallel()
	volume, off := render(t, "volume.yaml"), render(t, "replicas.yaml", "--set", "keys=,networkPolicy.enabled=false,serviceMonitor=false")
	if volume.ingress != nil || volume.monitor != nil || volume.network == nil {
		t.Error("volume.yaml asks for neither an ingress nor a monitor, and the network policy is the default")
	}
	template, _ := off.pod(t)
	hasKeys := slices.ContainsFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "keys" })
	if off.network != nil || off.monitor != nil || hasKeys {
		t.Errorf("keys, policy or monitor are there: %v", template.Spec.Volumes)
	}
	if volume.service.Spec.Type != corev1.ServiceTypeClusterIP || volume.service.Spec.Ports[0].NodePort != 0 || volume.service.Annotations != nil {
		t.Errorf("the service is %+v, want one for the cluster alone", volume.service.Spec)
	}
	ports := render(t, "volume.yaml", "--set", "service.type=NodePort,service.nodePort=30443,service.annotations.a/b=c").service
	if ports.Spec.Type != corev1.ServiceTypeNodePort || ports.Spec.Ports[0].NodePort != 30443 || ports.Annotations["a/b"] != "c" {
		t.Errorf("the service is %+v, annotations %v", ports.Spec, ports.Annotations)
	}
	if claim := volume.claim.Spec.Resources.Requests.Storage().String(); claim != "100Gi" {
		t.Errorf("the claim is of %s", claim)
	}
	if claim := render(t, "volume.yaml", "--set", "volume.size=").claim.Spec.Resources.Requests.Storage().String(); claim != "20Gi" {
		t.Errorf("without volume.size the claim is of %s, want 20Gi", claim)
	}
	for _, e := range template.Spec.Containers[0].Env {
		if e.Name == "COSIGN_PASSWORD" {
			t.Error("there is a password without keys")
		}
	}
}
