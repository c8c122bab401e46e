package pull

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Proof has the reasons to trust a pulled folder. It holds proven facts alone: without a promoter's summary the
// record has no release and no version.
type Proof struct {
	Record   Record    `json:"record"`
	Builder  string    `json:"builder"`            // key that signed the engine
	Promoter string    `json:"promoter,omitempty"` // key that signed its summary
	Promoted time.Time `json:"promoted,omitzero"`  // when the promoter verified it
	// PromotedBy is the proof of that time: a timestamp that this machine trusts, or only the promoter's claim.
	PromotedBy evidence.TimeSource `json:"promotedBy,omitempty"`
	Claims     []evidence.Claim    `json:"-"`
	// Files are the engine's files, with their digests.
	Files []artifact.File `json:"-"`
}

// trustHint says where a machine stores its trusted keys.
const trustHint = "this machine trusts the keys in the file that --trust names, or else in environments.yaml of its data directory: " +
	"docs/how-to/nodes.md shows such a file"

// Check checks a folder that Pull made. The folder has exactly the files that the manifest lists, with their
// digests; the manifest is the resolved engine's; and the evidence in the folder allows the engine by
// [policy.CheckEngineStanding]. Errors: CodeInvalid if Pull did not make the folder; CodeDigest and CodeTrust if it was
// changed, cannot be trusted or was not expected; CodePolicy if the engine is in quarantine, is
// restricted or failed a verification.
func (c Checker) Check(ctx context.Context, dir string, want Expectation) (Proof, error) {
	folder, err := openPulled(dir)
	if err != nil {
		return Proof{}, err
	}
	defer folder.root.Close()
	record, err := folder.record()
	if err != nil {
		return Proof{}, err
	}
	ref, err := registry.ParseRef(record.Ref)
	if err != nil {
		return Proof{}, registry.Errorf(registry.CodeTrust, "%s: its record: %w", dir, err)
	}
	ref.Host = "" // the place from which it was pulled proves nothing
	record.Ref = ref.String()
	if err := want.checkPlace(dir, record, ref); err != nil {
		return Proof{}, err
	}
	part, err := folder.check(ref.Digest, c.ReadPart)
	if err != nil {
		return Proof{}, err
	}
	r := pulledRelease(record, ref, part)
	claims, lists, err := c.claims(ctx, folder, record.Resource, r)
	if err != nil {
		return Proof{}, err
	}
	restrictions, err := c.restrictions(ctx, folder.dir, environmentOf(record, ref), lists, want)
	if err != nil {
		return Proof{}, err
	}
	proof, err := want.decide(dir, record, r, claims, restrictions, c.now())
	if err == nil {
		proof.Files = part.Files
	}
	return proof, err
}

// checkPlace refuses a record that contradicts itself or names another place than expected.
func (want Expectation) checkPlace(dir string, record Record, ref registry.Ref) error {
	name, ok := strings.CutPrefix(record.Resource, "oci://")
	name, fits := strings.CutSuffix(name, "/"+ref.Repository())
	if !ok || !fits || want.Registry != "" && name != want.Registry {
		return registry.Errorf(registry.CodeTrust, "%s: its record names %s as the resource of %s: pull again", dir, record.Resource, record.Ref)
	}
	for _, pin := range []struct{ what, want, found string }{{"environment", want.Environment, ref.Environment}, {"model", want.Model, ref.Model}} {
		if pin.want != "" && pin.want != pin.found {
			return registry.Errorf(registry.CodeTrust, "%s: the %s is %s, want %s", dir, pin.what, pin.found, pin.want)
		}
	}
	return nil
}

// pulledRelease returns the part of a release that a folder can show: one engine, which its
// manifest describes. A summary about both proves that the release has the engine.
func pulledRelease(record Record, ref registry.Ref, part storage.FetchedPart) artifact.Release {
	e := part.Engine
	e.Digest = ref.Digest
	return artifact.Release{
		Digest: record.Release, Model: ref.Model, Limits: e.Limits, Interface: e.Interface, Sources: e.Sources, Engines: []artifact.Engine{e},
	}
}

// claims verifies the bundles of the folder that are about the engine or its release, and returns
// beside them the bundles with restriction lists. It skips bundles of signers who are not trusted. A bundle that
// cannot be checked is an error, because it could be a quarantine or a failing report.
func (c Checker) claims(ctx context.Context, folder *pulledFolder, resource string,
	r artifact.Release) (claims []evidence.Claim, lists [][]byte, err error) {
	bundles, err := folder.bundles()
	if err != nil {
		return nil, nil, err
	}
	for _, d := range slices.Sorted(maps.Keys(bundles)) {
		claim, err := c.Verify(ctx, bundles[d], resource)
		if registry.HasCode(err, registry.CodeTrust) {
			continue
		}
		if err != nil {
			return nil, nil, registry.Errorf(registry.CodeOf(err), "%s: verify evidence %s: %w", folder.dir, d, err)
		}
		if claim.Statement.PredicateType == evidence.PredicateRestrictions {
			lists = append(lists, bundles[d])
			continue
		}
		// A folder has no history. It is only known that the evidence exists by now.
		claim.Bundle, claim.RecordedAt, claim.WithoutHistory = d, c.now(), true
		for _, subject := range r.Subjects() {
			if claim.Statement.About(subject.Digest) {
				claim.Subject = subject.Digest
				claims = append(claims, claim)
			}
		}
	}
	return claims, lists, nil
}

// decide applies the registry's rules, and compares the record with the statements on which
// they rely.
func (want Expectation) decide(dir string, record Record, r artifact.Release,
	claims []evidence.Claim, in restriction.Restrictions, now time.Time) (Proof, error) {
	engine := r.Engines[0]
	result := Proof{Record: record, Claims: claims}
	if record.Label != engine.Label() {
		return result, registry.Errorf(registry.CodeTrust,
			"%s: its record names the engine %s, and it is %s: pull again", dir, record.Label, engine.Label())
	}
	found, summary, promoted := policy.FindVSA(claims, r, record.Resource)
	decision := policy.CheckEngineStanding(record.Resource, r, engine, claims, in)
	if !promoted && want.Unpromoted {
		decision = policy.CheckUnpromoted(r, engine, claims, in)
	}
	if err := untrusted(record, decision.UnmetOn(want.Node)); err != nil {
		return result, err
	}
	result.Builder = signerOf(decision, claims)
	if promoted {
		result.Promoter, result.Promoted = found.Signer, summary.TimeVerified
		_, result.PromotedBy = found.Time()
		return result, want.checkSummary(dir, record, summary, now)
	}
	result.Record.Release, result.Record.Version = "", ""
	return result, want.checkUnpromoted(dir, r, claims)
}

// untrusted returns what is missing for trust, and what speaks against the engine. A node cannot build or promote, so
// it gets no advice to.
func untrusted(record Record, unmet []policy.Requirement) error {
	var reasons, missing []error
	for _, req := range unmet {
		if req.Objects() {
			reason := registry.Errorf(registry.CodePolicy, "%s: %s: %s", record.Ref, req.Subject, req.Detail)
			if req.Failed() {
				reason = registry.WithHint(reason, "mlpromote resolve --explain lists the other engines for this node; pull takes another variant with --variant NAME")
			}
			reasons = append(reasons, reason)
			continue
		}
		missing = append(missing, registry.Errorf(registry.CodeTrust, "%s: %s", record.Ref, req.Missing()))
	}
	return errors.Join(append(reasons, registry.WithHint(errors.Join(missing...), "%s", trustHint))...)
}

// signerOf returns the key of the signature on which a decision relies.
func signerOf(d policy.Decision, claims []evidence.Claim) string {
	for _, req := range d.Requirements {
		for _, c := range claims {
			if req.Name == policy.RequireSignature && slices.Contains(req.Evidence, c.Bundle) {
				return c.Signer
			}
		}
	}
	return ""
}

// checkSummary compares the record and the expectation with the summary, which is signed.
func (want Expectation) checkSummary(dir string, record Record, summary evidence.VSA, now time.Time) error {
	tag := summary.Promotion.Tag
	age := now.Sub(summary.TimeVerified)
	switch {
	case record.Version != tag:
		return registry.Errorf(registry.CodeTrust,
			"%s: its record has version %q, and the promoter's summary has %q: pull again", dir, record.Version, tag)
	case want.Version != "" && want.Version != tag:
		return registry.Errorf(registry.CodeTrust, "%s: the version is %s, want %s", dir, tag, want.Version)
	case want.MaxAge > 0 && age > want.MaxAge:
		return registry.Errorf(registry.CodeTrust, "%s: a promoter verified it on %s, %s ago, want at most %s: promote and pull again",
			dir, summary.TimeVerified.UTC().Format(time.RFC3339), age.Round(time.Second), want.MaxAge)
	case want.MaxAge > 0 && registry.ClaimsFuture(summary.TimeVerified, now):
		return registry.Errorf(registry.CodeTrust, "%s: a promoter claims to have verified it on %s, and now it is %s: look at the clocks",
			dir, summary.TimeVerified.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkUnpromoted refuses expectations that only a summary could prove. The model is proven by
// a signed statement that names it.
func (want Expectation) checkUnpromoted(dir string, r artifact.Release, claims []evidence.Claim) error {
	if want.Version != "" || want.MaxAge > 0 {
		return registry.Errorf(registry.CodeTrust, "%s: no promoter let it into its environment, so nothing proves its version or its age", dir)
	}
	counted, _ := evidence.Accept(r, claims)
	engine := r.Engines[0].Digest
	for _, c := range counted {
		for _, s := range c.Statement.Subject {
			if s.Name == r.Model && s.Digest.Names(engine) {
				return nil
			}
		}
	}
	return registry.Errorf(registry.CodeTrust, "%s: no signed statement names it as an engine of %s", dir, r.Model)
}
