package policy_test

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// The keys of the fixture, by the role that each plays.
const (
	builder  = "builder-key"
	verifier = "verifier-key"
	approver = "approver-key"
)

// sample is a release of two engines with a node that is the target of both.
func sample() artifact.Release {
	r := artifact.Release{
		Digest: digest.FromString("release"), Model: "vision/digits", Version: "1.0.0", Revision: 1,
		Limits: digest.FromString("limits"), Sources: digest.FromString("sources"),
		Engines: []artifact.Engine{engine("x86", "fp32", "1.30.0"), engine("x86", "int8", "1.30.0")},
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		e.Target.CPU.Level = "v3"
		e.Target.Runtimes = map[string]artifact.Constraint{"onnxruntime": {Min: "1.30"}}
		e.Reference, e.Limits, e.Sources = digest.FromString("reference"), r.Limits, r.Sources
	}
	return r
}

func sampleNode() artifact.Node {
	return artifact.Node{
		V: 1, Source: artifact.SourceMachine, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v3", Vendor: "v", Model: "first", Features: []string{"avx2"}},
		Runtimes: map[string]string{"onnxruntime": "1.30.0"},
	}
}

// claim is a claim by a key in a role. Its bundle's digest is that of its content.
func claim(predicateType string, subject registry.Digest, signer string, role evidence.Role, predicate any) evidence.Claim {
	body, err := registry.CanonicalJSON(predicate)
	if err != nil {
		panic(err)
	}
	return evidence.Claim{
		Bundle:  digest.FromString(fmt.Sprint(predicateType, subject, signer, role, string(body))),
		Subject: subject, Signer: signer, Roles: []evidence.Role{role}, Key: evidence.KeyTrusted,
		Statement: evidence.Statement{
			Type: evidence.StatementType, PredicateType: predicateType, Predicate: body,
			Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(subject)}},
		},
	}
}

func signature(subject registry.Digest) evidence.Claim {
	return claim(evidence.PredicateSign, subject, builder, evidence.RoleBuilder, struct{}{})
}

func provenance(subject registry.Digest) evidence.Claim {
	return claim(evidence.PredicateProvenance, subject, builder, evidence.RoleBuilder, struct{}{})
}

func quarantine(subject registry.Digest) evidence.Claim {
	return claim(evidence.PredicateQuarantine, subject, approver, evidence.RoleApprover, struct{}{})
}

// head is the head of a report that counts, of an hour.
func head(r artifact.Release, e artifact.Engine, hour int, v evidence.Verdict) evidence.ReportHead {
	at := time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)
	return evidence.ReportHead{
		Verdict: v, StartedOn: at.Add(-time.Hour), FinishedOn: at, Node: sampleNode(),
		Limits: evidence.NewDigestSet(r.Limits), Sources: evidence.NewDigestSet(r.Sources), Reference: evidence.NewDigestSet(e.Reference),
		Runtime: evidence.RuntimeUsed{Name: "onnxruntime", Version: "1.30.0", Library: evidence.NewDigestSet(digest.FromString("library"))},
	}
}

// parity is a parity report of an hour, changed by edit.
func parity(r artifact.Release, e artifact.Engine, hour int, v evidence.Verdict, edit func(*evidence.ParityReport)) evidence.Claim {
	report := evidence.ParityReport{
		ReportHead: head(r, e, hour, v),
		Cases:      evidence.CasesRun{Count: 10, Ran: 10, Origin: artifact.OriginRecorded},
		Rules:      evidence.ReportRules,
	}
	if edit != nil {
		edit(&report)
	}
	return claim(evidence.PredicateParity, e.Digest, verifier, evidence.RoleVerifier, report)
}

func performance(r artifact.Release, e artifact.Engine, hour int, v evidence.Verdict) evidence.Claim {
	report := evidence.PerformanceReport{ReportHead: head(r, e, hour, v)}
	return claim(evidence.PredicatePerformance, e.Digest, verifier, evidence.RoleVerifier, report)
}

// enough are the claims that the strictest policy asks for, and no other.
func enough(r artifact.Release) []evidence.Claim {
	claims := []evidence.Claim{signature(r.Digest)}
	for _, e := range r.Engines {
		claims = append(claims, signature(e.Digest), provenance(e.Digest), parity(r, e, 1, evidence.VerdictPass, nil))
	}
	return claims
}

// strictest asks for everything that there is.
func strictest() policy.Policy {
	return policy.Policy{Require: append(policy.DefaultRequire(), policy.RequireRecordedCases, policy.RequireSeparateRoles)}
}
