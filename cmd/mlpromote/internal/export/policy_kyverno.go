package export

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// volumesOf is the expression of Kyverno that finds the images that are mounted as volumes, which it does not look
// for by itself.
const volumesOf = "(object != null ? object : oldObject).spec.?volumes.orValue([]).filter(v, has(v.image)).map(v, v.image.reference)"

// kyverno writes an ImageValidatingPolicy. Source of its fields: the CRD of policies.kyverno.io/v1beta1 in Kyverno 1.19.1.
// Kyverno finds our bundles by the referrers of an image. It is told of no log: promoters sign with keys.
func (a Admission) kyverno(at time.Time) string {
	var b strings.Builder
	b.WriteString("# Admits images and image volumes of these repositories that mlpromote promoted. Written by mlpromote export policy:\n" +
		"# write it again after each promotion key or quarantine that changes, and check it with --check.\n" +
		"apiVersion: policies.kyverno.io/v1beta1\nkind: ImageValidatingPolicy\n")
	b.WriteString(a.metadata(a.name(), at))
	b.WriteString(`spec:
  failurePolicy: Fail
  validationActions: [Deny]
  validationConfigurations:
    mutateDigest: true
    verifyDigest: true # a tag could move between the check and the pull
    required: true
  webhookConfiguration:
    timeoutSeconds: 30
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [pods, pods/ephemeralcontainers]
  autogen:
    podControllers:
      controllers: [] # pods alone: the pods of a Deployment are checked there
  matchConditions:
    - name: images-change # a pod that runs may still change its labels, and end
      expression: "request.operation != 'UPDATE' || object.spec != oldObject.spec"
  matchImageReferences:
`)
	for _, repository := range a.Repositories {
		for _, suffix := range a.suffixes() {
			fmt.Fprintf(&b, "    - glob: %s\n", strconv.Quote(a.Host+"/"+repository+suffix))
		}
	}
	fmt.Fprintf(&b, "  images:\n    - name: volumes\n      expression: >-\n        %s\n  attestors:\n", volumesOf)
	var names []string
	for _, k := range a.Keys {
		name := "promoter" + k.ID[:16]
		names = append(names, "attestors."+name)
		fmt.Fprintf(&b, "    - name: %s\n      cosign:\n        key:\n          data: %s        ctlog:\n          insecureIgnoreTlog: true\n",
			name, block(k.pem, 12))
	}
	b.WriteString("  attestations:\n    - name: summary\n      intoto:\n        type: https://slsa.dev/verification_summary/v1\n")
	a.kyvernoRules(&b, strings.Join(names, ", "))
	return b.String()
}

// suffixes of a repository's name: of a whole environment, or of one model alone. In globs of Kyverno * is any text.
func (a Admission) suffixes() []string {
	if a.Model == "" {
		return []string{"/*"}
	}
	return []string{"", ":*", "@*"}
}

// kyvernoRules writes what must hold for every image. A summary must be about the repository that the image is pulled
// from, so that none of another model or environment counts.
func (a Admission) kyvernoRules(b *strings.Builder, attestors string) {
	var denied []string
	for _, d := range a.Denied {
		denied = append(denied, string(d.Digest))
	}
	fmt.Fprintf(b, "  variables:\n    - name: all\n      expression: >-\n        images.containers + images.initContainers + images.ephemeralContainers + images.volumes\n"+
		"    - name: denied\n      expression: >-\n        [%s]\n  validations:\n", quoted(denied, ",\n        "))
	payload := "extractPayload(i, attestations.summary).predicate"
	for _, rule := range [][2]string{
		{"variables.all.all(i, i.matches('@sha256:[0-9a-f]{64}$'))", "name images of " + a.Host + " by digest"},
		{"variables.all.all(i, !variables.denied.exists(d, i.endsWith('@' + d)))",
			"in quarantine, restricted or otherwise not to be used any more: mlpromote inspect has the reason"},
		{"variables.all.all(i, verifyAttestationSignatures(i, attestations.summary, [" + attestors + "]) > 0)",
			"no promoter of " + a.Environment + " signed a summary for it"},
		{"variables.all.all(i, " + payload + ".verificationResult == 'PASSED')", "its summary has no pass"},
		{"variables.all.all(i, " + payload + ".verifier.id == " + strconv.Quote(a.VerifierID) + ")", "its summary is of another verifier"},
		{"variables.all.all(i, " + a.sameResource(payload) + ")", "it was not promoted to " + a.Environment + " in this repository"},
		{"variables.all.all(i, " + payload + ".verifiedLevels.exists(l, l in [" + quoted(a.Levels, ", ") + "]))", "its summary has none of the levels"},
	} {
		fmt.Fprintf(b, "    - expression: >-\n        %s\n      message: %s\n", rule[0], strconv.Quote(rule[1]))
	}
}

// sameResource demands that the summary is of this environment and of the repository that the image is in.
func (a Admission) sameResource(payload string) string {
	repository := "parseImageReference(i).repository()"
	of := payload + ".resourceUri == " + strconv.Quote("oci://"+a.registry+"/") + " + " + repository
	if a.Model != "" {
		return of + " && " + payload + ".resourceUri == " + strconv.Quote(a.ResourceURI)
	}
	return of + " && " + payload + ".resourceUri.startsWith(" + strconv.Quote(a.ResourceURI) + ")"
}
