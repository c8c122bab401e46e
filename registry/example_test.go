package registry_test

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
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
	release := registry.Release{
		Digest: digest.FromString("release"), Model: "vision/digits", Version: "1.4.0",
		Engines: []registry.Engine{{Digest: digest.FromString("engine"), Target: registry.Target{Name: "linux-amd64-v3"}, Precision: "int8", Variant: "int8"}},
	}
	policy := registry.Policy{Require: []string{registry.RequireSignature}}
	signed := func(subject registry.Digest) registry.Claim {
		// Trust.Verify of package signer makes claims. Only claims reach a policy.
		return registry.Claim{
			Subject: subject, Signer: "3f0c", Roles: []registry.Role{registry.RoleBuilder}, Key: registry.KeyTrusted,
			Statement: registry.Statement{
				Type: registry.StatementType, PredicateType: registry.PredicateSign, Predicate: []byte("{}"),
				Subject: []registry.StatementSubject{{Digest: registry.NewDigestSet(subject)}},
			},
		}
	}
	claims := []registry.Claim{signed(release.Digest)}
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
	target := registry.Target{
		V: registry.TargetVersion, Name: "linux-amd64-v3", OS: "linux", CPU: registry.TargetCPU{Arch: "amd64", Level: "v3"},
		Runtimes: map[string]registry.Constraint{"onnxruntime": {Min: "1.30"}},
	}
	node := registry.Node{
		V: 1, OS: "linux", CPU: registry.NodeCPU{Arch: "amd64", Level: "v2"}, Runtimes: map[string]string{"onnxruntime": "1.29.2"},
	}
	for _, mismatch := range target.Match(node, node.Runtime()) {
		fmt.Println(mismatch)
	}
	// Output:
	// cpu.level: needs v3, has v2
	// runtimes.onnxruntime: needs >= 1.30, has 1.29.2
}
