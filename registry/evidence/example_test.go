package evidence_test

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// A ref names a release by tag or by digest, on this machine or on a service.
func ExampleParseRef() {
	for _, s := range []string{"prod/vision/digits:1.4.0", "models.example.com/prod/vision/digits", "Prod/vision/digits"} {
		ref, err := registry.ParseRef(s)
		if err != nil {
			fmt.Println(registry.CodeOf(err), err)
			continue
		}
		fmt.Printf("host %q, environment %q, model %q, tag %q\n", ref.Host, ref.Environment, ref.Model, ref.Tag)
	}
	// Output:
	// host "", environment "prod", model "vision/digits", tag "1.4.0"
	// host "models.example.com", environment "prod", model "vision/digits", tag ""
	// invalid ref "Prod/vision/digits": environment "Prod" is not a lower-case name
}

// A policy allows a release when there is verified evidence for each requirement, and says what is
// missing when there is not.
func ExamplePolicy_Check() {
	release := artifact.Release{
		Digest: digest.FromString("release"), Model: "vision/digits", Version: "1.4.0",
		Engines: []artifact.Engine{{Digest: digest.FromString("engine"), Target: artifact.Target{Name: "linux-amd64-v3"}, Precision: "int8", Variant: "int8"}},
	}
	policy := policy.Policy{Require: []string{policy.RequireSignature}}
	signed := func(subject registry.Digest) evidence.Claim {
		// Trust.Verify of package signer makes claims. Only claims reach a policy.
		return evidence.Claim{
			Subject: subject, Signer: "3f0c", Roles: []evidence.Role{evidence.RoleBuilder}, Key: evidence.KeyTrusted,
			Statement: evidence.Statement{
				Type: evidence.StatementType, PredicateType: evidence.PredicateSign, Predicate: []byte("{}"),
				Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(subject)}},
			},
		}
	}
	claims := []evidence.Claim{signed(release.Digest)}
	for _, r := range policy.Check(release, claims).Unmet() {
		fmt.Println(r.Name, "of", r.Subject+":", r.Detail)
	}
	claims = append(claims, signed(release.Engines[0].Digest))
	fmt.Println("allowed:", policy.Check(release, claims).Allowed())
	// Output:
	// signature of linux-amd64-v3/int8: no signature of a trusted builder: run mlpromote build
	// allowed: true
}

// A node can run an engine if it meets the engine's target. Each requirement that it does not meet is listed.
func ExampleTarget_Match() {
	target := artifact.Target{
		V: artifact.TargetVersion, Name: "linux-amd64-v3", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: "v3"},
		Runtimes: map[string]artifact.Constraint{"onnxruntime": {Min: "1.30"}},
	}
	node := artifact.Node{
		V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v2"}, Runtimes: map[string]string{"onnxruntime": "1.29.2"},
	}
	for _, mismatch := range target.Match(node, node.Runtime()) {
		fmt.Println(mismatch)
	}
	// Output:
	// cpu.level: needs v3, has v2
	// runtimes.onnxruntime: needs >= 1.30, has 1.29.2
}
