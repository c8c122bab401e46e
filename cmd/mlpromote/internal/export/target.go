package export

import (
	"fmt"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/node/cluster"
)

// The forms in which Kubernetes reads a target.
const (
	ForNodeAffinity          = "node-affinity"
	ForResourceClaimTemplate = "resource-claim-template"
)

// ExportedTarget is a target in a form of Kubernetes.
type ExportedTarget struct {
	Target artifact.Target `json:"target"`
	For    string          `json:"for"`
	YAML   string          `json:"yaml"`
	// Unexpressed are the requirements that the form leaves out. A pod still has to ask resolve.
	Unexpressed []artifact.Mismatch `json:"unexpressed,omitempty"`
	File        string              `json:"file,omitempty"`
}

// Target writes a target in a form of Kubernetes. Without devices, an affinity leaves the accelerator to a claim. The
// same target gives the same bytes. Errors: CodeInvalid for another form, and for a target that the form has nothing
// for.
func Target(t artifact.Target, form string, withDevices bool) (ExportedTarget, error) {
	out := ExportedTarget{Target: t, For: form}
	switch form {
	case ForNodeAffinity:
		a, err := node.AffinityOf(t, withDevices)
		if err != nil {
			return out, err
		}
		out.Unexpressed = a.Unexpressed
		out.YAML = remarks(t, out.Unexpressed)
		if withDevices && t.Accelerator != nil && t.Accelerator.Vendor == "nvidia" {
			out.YAML += pluginRemarks(*t.Accelerator)
		}
		out.YAML += affinityYAML(a.Terms)
	case ForResourceClaimTemplate:
		c, err := cluster.ClaimOf(t)
		if err != nil {
			return out, err
		}
		a, err := node.AffinityOf(t, false)
		if err != nil {
			return out, err
		}
		out.Unexpressed = append(c.Unexpressed, a.Unexpressed...)
		name := cluster.ObjectName(t.Name)
		out.YAML = remarks(t, out.Unexpressed) + podRemarks(name) + claimYAML(name, c)
	default:
		return out, registry.Errorf(registry.CodeInvalid, "--for %.40q: want %s or %s", form, ForNodeAffinity, ForResourceClaimTemplate)
	}
	return out, nil
}

// remarks are comments with what a form leaves out.
func remarks(t artifact.Target, unexpressed []artifact.Mismatch) string {
	text := "# Target " + registry.PlainText(t.Name) + ", by mlpromote export target.\n"
	for _, u := range unexpressed {
		text += "# Not expressed: " + u.Requirement + " " + registry.PlainText(u.Need) + "\n"
	}
	return text
}

// pluginRemarks are comments on how a container asks a device plugin for the devices that an affinity only finds.
func pluginRemarks(a artifact.TargetAccelerator) string {
	text := fmt.Sprintf("# In the container: resources: {limits: {nvidia.com/gpu: %d}}\n", max(a.Count, 1))
	if a.MIG != "" {
		text += fmt.Sprintf("# Under the MIG strategy mixed: {nvidia.com/mig-%s: %d}\n", registry.PlainText(a.MIG), max(a.Count, 1))
	}
	return text
}

// podRemarks are comments on how a pod names a template.
func podRemarks(name string) string {
	return `# In the pod: resourceClaims: [{name: accelerator, resourceClaimTemplateName: ` + name + `}]
# In its container: resources: {claims: [{name: accelerator}]}
# Processor and system: mlpromote export target --for node-affinity --no-accelerator
`
}

// affinityYAML is a patch of a workload, which kubectl patch --patch-file takes.
func affinityYAML(terms [][]node.Expression) string {
	var b strings.Builder
	b.WriteString(`spec:
  template:
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
`)
	for _, term := range terms {
		b.WriteString("            - matchExpressions:\n")
		for _, e := range term {
			fmt.Fprintf(&b, "              - {key: %s, operator: %s", e.Key, e.Operator)
			if e.Values != nil {
				fmt.Fprintf(&b, ", values: [%s]", quoted(e.Values, ", "))
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// claimYAML is a ResourceClaimTemplate, which kubectl apply takes.
func claimYAML(name string, c cluster.Claim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: %s\n", name)
	b.WriteString("spec:\n") // of the template, which has the one of a claim
	b.WriteString("  spec:\n    devices:\n      requests:\n      - name: accelerator\n        exactly:\n")
	fmt.Fprintf(&b, "          deviceClassName: %s\n          allocationMode: ExactCount\n          count: %d\n          selectors:\n", c.DeviceClass, c.Count)
	for _, selector := range c.Selectors {
		fmt.Fprintf(&b, "          - cel:\n              expression: %s\n", singleQuoted(selector))
	}
	if len(c.Selectors) == 0 {
		return strings.TrimSuffix(b.String(), "          selectors:\n")
	}
	return b.String()
}

// singleQuoted is a text of YAML in which double quotes stand as they are. A text with characters that are not visible
// is double-quoted.
func singleQuoted(text string) string {
	if registry.PlainText(text) != text {
		return strconv.Quote(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
