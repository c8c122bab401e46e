//go:build linux

package kubernetes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// imagePod is a service as its image has it, with what the image asks for and no more. The init container makes the first token.
const imagePod = `apiVersion: v1
kind: Pod
metadata: {name: registry, labels: {app: registry}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  initContainers:
    - &registry
      name: token
      image: %[1]s
      imagePullPolicy: Never
      args: [token, create, admin, --allow, administer]
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
  containers:
    - <<: *registry
      name: registry
      args: [serve]
      readinessProbe: {exec: {command: [/mlpromote, health]}, periodSeconds: 1, timeoutSeconds: 5}
      livenessProbe: {httpGet: {path: /healthz, port: 5080}}
  volumes:
    - {name: data, emptyDir: {}}
    - {name: tmp, emptyDir: {}}
---
apiVersion: v1
kind: Service
metadata: {name: registry}
spec:
  selector: {app: registry}
  ports: [{port: 80, targetPort: 5080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  restartPolicy: Never
  containers:
    - {name: client, image: %[2]s, imagePullPolicy: Never, command: [sh, -c, 'wget -q -O - http://$REGISTRY_SERVICE_HOST/healthz']}
`

// The image of `make image` runs in containerd: its health check passes, it lets nobody in without a token, and pods reach it through a
// Service.
func TestImage(t *testing.T) {
	t.Parallel()
	c := start(t)
	pods := strings.Split(fmt.Sprintf(imagePod, c.ours(), boxImage), "---\n")
	c.apply(pods[0] + "---\n" + pods[1])
	c.kubectl("wait", "pod/registry", "--for=condition=Ready", "--timeout="+patience.String())
	said := strings.Fields(c.kubectl("logs", "registry", "--container=token"))
	token := said[slices.IndexFunc(said, func(word string) bool { return strings.HasPrefix(word, "mlp_") })]
	address := "http://" + c.kubectl("get", "pod/registry", "--output=jsonpath={.status.podIP}") + ":5080/v2/"
	for _, asked := range []struct {
		authorization string
		want          int
	}{{"", http.StatusUnauthorized}, {"Bearer " + token, http.StatusOK}} {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", asked.authorization)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != asked.want {
			t.Errorf("%s answers %s, want %d", address, response.Status, asked.want)
		}
	}
	c.kubectl("wait", "service/registry", "--for=create", "--timeout=1m")
	c.apply(pods[2])
	if code, log := c.finished("client"); code != "0" {
		t.Errorf("a pod asks the Service, and ends with %s: %s", code, log)
	}
}
