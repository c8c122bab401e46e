package export

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// policyController writes two ClusterImagePolicies: an image must satisfy all that match it, so the second one denies
// digests whatever the first one accepts. Source of its fields: docs/api-types/index.md of policy-controller 0.15.1. Its
// authorities with keys read attestations of cosign's older form alone, and refuse signatureFormat: bundle.
func (a Admission) policyController(at time.Time) string {
	var b strings.Builder
	b.WriteString("# Admits images of these repositories that mlpromote promoted. Written by mlpromote export policy:\n" +
		"# write it again after each promotion key or quarantine that changes, and check it with --check.\n")
	head := func(name string) {
		b.WriteString("apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\n" + a.metadata(name, at) + "spec:\n  mode: enforce\n  images:\n")
	}
	head(a.name())
	for _, glob := range a.globs() {
		fmt.Fprintf(&b, "    - glob: %s\n", strconv.Quote(glob))
	}
	b.WriteString("  authorities:\n")
	for _, k := range a.Keys {
		fmt.Fprintf(&b, "    - name: promoter-%s\n      key:\n        hashAlgorithm: sha256\n        data: %s", k.ID[:16], block(k.pem, 10))
		if a.Summaries != "" {
			fmt.Fprintf(&b, "      source:\n        - oci: %s\n", strconv.Quote(a.Summaries))
		}
		fmt.Fprintf(&b, "      attestations:\n        - name: summary\n          predicateType: https://slsa.dev/verification_summary/v1\n"+
			"          policy:\n            type: cue\n            data: %s", block(a.cue(), 14))
	}
	b.WriteString("---\n# Digests that must not run any more.\n")
	head(a.name() + "-denied")
	for _, glob := range a.deniedGlobs() {
		fmt.Fprintf(&b, "    - glob: %s\n", strconv.Quote(glob))
	}
	b.WriteString("  authorities:\n    - name: denied\n      static:\n        action: fail\n" +
		"        message: in quarantine, restricted or otherwise not to be used any more; mlpromote inspect has the reason\n")
	return b.String()
}

// globs match the references of the repositories. Only ** matches a slash, and references always have a tag or a digest.
func (a Admission) globs() (globs []string) {
	for _, repository := range a.Repositories {
		if a.Model == "" {
			globs = append(globs, a.Host+"/"+repository+"/**")
			continue
		}
		globs = append(globs, a.Host+"/"+repository+":**", a.Host+"/"+repository+"@**")
	}
	return globs
}

// noDigest is the digest of nothing, so that the second policy exists also while it denies nothing: whoever applies a
// newer file replaces the older one.
const noDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func (a Admission) deniedGlobs() (globs []string) {
	for _, d := range a.Denied {
		globs = append(globs, a.Host+"/**@"+string(d.Digest))
	}
	if len(globs) == 0 {
		return []string{a.Host + "/**@" + noDigest}
	}
	return globs
}

// cue is what a summary must say.
func (a Admission) cue() string {
	resource := "=~" + strconv.Quote("^"+escapeRE(a.ResourceURI))
	if a.Model != "" {
		resource = strconv.Quote(a.ResourceURI)
	}
	return "import \"list\"\n\npredicateType: \"https://slsa.dev/verification_summary/v1\"\npredicate: {\n" +
		"  verificationResult: \"PASSED\"\n  verifier: id: " + strconv.Quote(a.VerifierID) + "\n  resourceUri: " + resource +
		"\n  verifiedLevels: [..." + quoted(a.Levels, " | ") + "] & list.MinItems(1)\n}\n"
}

// escapeRE escapes what names can have that regular expressions read otherwise.
func escapeRE(text string) string { return strings.ReplaceAll(text, ".", "[.]") }
