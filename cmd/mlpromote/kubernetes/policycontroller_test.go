//go:build linux

package kubernetes

import (
	"errors"
	"net/http"
	"os"
)

// controllerNamespace is where policy-controller has its objects.
const controllerNamespace = "cosign-system"

// policyController starts policy-controller beside the API server, with the objects and the rights that its release has, and lets it decide
// about the namespace of the test. It trusts the CA in a file.
func (c *cluster) policyController(authority string) {
	c.Helper()
	c.controlled("", "apply", "--filename="+c.program("policy-controller.yaml"))
	c.controlled(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: webhook, labels: {kubernetes.io/service-name: webhook}}
addressType: IPv4
endpoints: [{addresses: [`+nodeAddress+`]}]
ports: [{port: 8443}]
`, "apply", "--filename=-")
	token := c.controlled("", "create", "token", "webhook")
	err := errors.Join(os.MkdirAll(c.path("policy-controller"), 0o755),
		os.WriteFile(c.path("policy-controller", "kubeconfig"), []byte(c.kubeconfig(token)), 0o600))
	if err != nil {
		c.Fatal(err)
	}
	p := &program{
		name: "policy-controller",
		argv: []string{c.program("policy-controller"), "--disable-tuf"},
		env: []string{
			"SYSTEM_NAMESPACE=" + controllerNamespace, "CONFIG_LOGGING_NAME=config-logging", "METRICS_DOMAIN=sigstore.dev/policy", "WEBHOOK_NAME=webhook",
			"KUBECONFIG=" + c.path("policy-controller", "kubeconfig"), "HOME=" + c.path("policy-controller"), "SSL_CERT_FILE=" + authority,
		},
		ready: c.controllerReady,
	}
	c.beside(p)
	// It registers itself for what it decides about. Before that, nothing asks it.
	for _, registered := range []string{
		"validatingwebhookconfiguration/policy.sigstore.dev", "mutatingwebhookconfiguration/policy.sigstore.dev",
		"validatingwebhookconfiguration/validating.clusterimagepolicy.sigstore.dev", "mutatingwebhookconfiguration/defaulting.clusterimagepolicy.sigstore.dev",
	} {
		c.kubectl("wait", registered, "--for=jsonpath={.webhooks[0].rules[0].operations[0]}", "--timeout="+patience.String())
	}
	c.kubectl("wait", "customresourcedefinition/clusterimagepolicies.policy.sigstore.dev", "--for=jsonpath={.spec.conversion.webhook.clientConfig.caBundle}", "--timeout="+patience.String())
	c.kubectl("label", "namespace", c.namespace, "policy.sigstore.dev/include=true")
}

// controlled runs kubectl in the namespace of policy-controller.
func (c *cluster) controlled(stdin string, args ...string) string {
	c.Helper()
	return c.within(controllerNamespace, stdin, args...)
}

// controllerReady asks policy-controller as a probe of the kubelet does.
func (c *cluster) controllerReady() error {
	request, err := http.NewRequest(http.MethodGet, "https://"+nodeAddress+":8443/", nil)
	if err != nil {
		return err
	}
	request.Header.Set("k-kubelet-probe", "webhook")
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
