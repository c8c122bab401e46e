package registry_test

import (
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// The keys of the fixture, by the role that each plays.
const (
	builder  = "builder-key"
	verifier = "verifier-key"
	approver = "approver-key"
)

// sample is a release of two engines with a node that is the target of both.
func sample() registry.Release {
	r := registry.Release{
		Digest: digest.FromString("release"), Model: "vision/digits", Version: "1.0.0", Revision: 1,
		Limits: digest.FromString("limits"), Sources: digest.FromString("sources"),
		Engines: []registry.Engine{engine("x86", "fp32", "1.30.0"), engine("x86", "int8", "1.30.0")},
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		e.Target.CPU.Level = "v3"
		e.Target.Runtimes = map[string]registry.Constraint{"onnxruntime": {Min: "1.30"}}
		e.Reference, e.Limits, e.Sources = digest.FromString("reference"), r.Limits, r.Sources
	}
	return r
}

func sampleNode() registry.Node {
	return registry.Node{
		V: 1, Source: registry.SourceMachine, OS: "linux", CPU: registry.NodeCPU{Arch: "amd64", Level: "v3", Vendor: "v", Model: "first", Features: []string{"avx2"}},
		Runtimes: map[string]string{"onnxruntime": "1.30.0"},
	}
}

// claim is a claim by a key in a role. Its bundle's digest is that of its content.
func claim(predicateType string, subject registry.Digest, signer string, role registry.Role, predicate any) registry.Claim {
	body, err := registry.CanonicalJSON(predicate)
	if err != nil {
		panic(err)
	}
	return registry.Claim{
		Bundle:  digest.FromString(fmt.Sprint(predicateType, subject, signer, role, string(body))),
		Subject: subject, Signer: signer, Roles: []registry.Role{role}, Key: registry.KeyTrusted,
		Statement: registry.Statement{
			Type: registry.StatementType, PredicateType: predicateType, Predicate: body,
			Subject: []registry.StatementSubject{{Digest: registry.NewDigestSet(subject)}},
		},
	}
}

func signature(subject registry.Digest) registry.Claim {
	return claim(registry.PredicateSign, subject, builder, registry.RoleBuilder, struct{}{})
}

func provenance(subject registry.Digest) registry.Claim {
	return claim(registry.PredicateProvenance, subject, builder, registry.RoleBuilder, struct{}{})
}

func quarantine(subject registry.Digest) registry.Claim {
	return claim(registry.PredicateQuarantine, subject, approver, registry.RoleApprover, struct{}{})
}

// head is the head of a report that counts, of an hour.
func head(r registry.Release, e registry.Engine, hour int, v registry.Verdict) registry.ReportHead {
	at := time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)
	return registry.ReportHead{
		Verdict: v, StartedOn: at.Add(-time.Hour), FinishedOn: at, Node: sampleNode(),
		Limits: registry.NewDigestSet(r.Limits), Sources: registry.NewDigestSet(r.Sources), Reference: registry.NewDigestSet(e.Reference),
		Runtime: registry.RuntimeUsed{Name: "onnxruntime", Version: "1.30.0", Library: registry.NewDigestSet(digest.FromString("library"))},
	}
}

// parity is a parity report of an hour, changed by edit.
func parity(r registry.Release, e registry.Engine, hour int, v registry.Verdict, edit func(*registry.ParityReport)) registry.Claim {
	report := registry.ParityReport{
		ReportHead: head(r, e, hour, v),
		Cases:      registry.CasesRun{Count: 10, Ran: 10, Origin: registry.OriginRecorded},
	}
	if edit != nil {
		edit(&report)
	}
	return claim(registry.PredicateParity, e.Digest, verifier, registry.RoleVerifier, report)
}

func performance(r registry.Release, e registry.Engine, hour int, v registry.Verdict) registry.Claim {
	report := registry.PerformanceReport{ReportHead: head(r, e, hour, v)}
	return claim(registry.PredicatePerformance, e.Digest, verifier, registry.RoleVerifier, report)
}

// enough are the claims that the strictest policy asks for, and no other.
func enough(r registry.Release) []registry.Claim {
	claims := []registry.Claim{signature(r.Digest)}
	for _, e := range r.Engines {
		claims = append(claims, signature(e.Digest), provenance(e.Digest), parity(r, e, 1, registry.VerdictPass, nil))
	}
	return claims
}

// strictest asks for everything that there is.
func strictest() registry.Policy {
	return registry.Policy{Require: append(registry.DefaultRequire(), registry.RequireRecordedCases, registry.RequireSeparateRoles)}
}
