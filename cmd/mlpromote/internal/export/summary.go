// Package export writes evidence in the forms of other tools.
package export

import (
	"context"
	"encoding/json"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// Summary is the verification summary by which a release is in an environment.
type Summary struct {
	Bundle      registry.Digest             `json:"bundle"` // evidence that holds it
	Signer      string                      `json:"signer"`
	Keys        []string                    `json:"keys,omitempty"` // files of the signer's key, as trust entries name them
	VerifierID  string                      `json:"verifierId"`
	ResourceURI string                      `json:"resourceUri"`
	Levels      []string                    `json:"verifiedLevels"`
	Subjects    []evidence.StatementSubject `json:"subjects"`

	data []byte // the sigstore bundle
}

// SummaryOf finds the summary of a release in the environment of ref, which must be protected. Errors: CodePolicy if
// there is none, and if the release may not be used there now: a file that others verify could not say so later.
func SummaryOf(ctx context.Context, in *connect.Registry, ref registry.Ref) (Summary, error) {
	e, err := in.Envs.Find(ref.Environment)
	if err != nil {
		return Summary{}, err
	}
	if !e.Protected() {
		return Summary{}, registry.Errorf(registry.CodeInvalid, "nothing is promoted to %s: want an environment with from:", e.Name)
	}
	r, err := in.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
	if err != nil {
		return Summary{}, err
	}
	claims, _, err := in.Claims(ctx, ref.Environment, r)
	if err != nil {
		return Summary{}, err
	}
	restrictions, _, err := restrictionsIn(ctx, in, e.Name)
	if err != nil {
		return Summary{}, err
	}
	resource := in.Envs.ResourceURI(e.Name, ref.Model)
	if decision := policy.CheckStanding(resource, r, claims, restrictions); !decision.Allowed() {
		why := ""
		for _, req := range decision.Unmet() {
			why += "; " + req.Subject + ": " + req.Detail
		}
		return Summary{}, registry.Errorf(registry.CodePolicy, "%s %s may not be used in %s%s", r.Model, r.Tag(), e.Name, registry.PlainText(why))
	}
	claim, vsa, ok := policy.FindVSA(claims, r, resource)
	if !ok {
		return Summary{}, registry.Errorf(registry.CodePolicy, "%s %s in %s has no verification summary of a trusted promoter", r.Model, r.Tag(), e.Name)
	}
	data, err := bundle(ctx, in, registry.Repository(e.Name, ref.Model), claim)
	return Summary{
		Bundle: claim.Bundle, Signer: claim.Signer, Keys: claim.Keys, VerifierID: vsa.Verifier.ID, ResourceURI: vsa.ResourceURI,
		Levels: vsa.VerifiedLevels, Subjects: claim.Statement.Subject, data: data,
	}, err
}

// restrictionsIn are those in force in an environment, by the list that the registry gives, and the counter of that
// list; 0: there is none. Errors: CodeTrust if the list does not verify.
func restrictionsIn(ctx context.Context, in *connect.Registry, environment string) (restriction.Restrictions, int64, error) {
	signed, err := in.Restrictions(ctx, environment)
	if err != nil {
		return restriction.Restrictions{}, 0, err
	}
	if len(signed.Bundle) == 0 && len(signed.InForce) == 0 {
		return restriction.NoRestrictions(), 0, nil
	}
	resource := in.Envs.ResourceURI(environment, "")
	claim, err := in.Verify(ctx, signed.Bundle, resource)
	if err != nil {
		return restriction.Restrictions{}, 0, registry.Errorf(registry.CodeOf(err), "the restriction list of %s: %w", environment, err)
	}
	claim.Bundle = signed.Digest
	list, err := claim.RestrictionList(resource)
	if err != nil {
		return restriction.Restrictions{}, 0, err
	}
	restrictions, err := restriction.RestrictionsInForce(resource, claim)
	return restrictions, list.Counter, err
}

// bundle reads the sigstore bundle that a claim is of.
func bundle(ctx context.Context, in *connect.Registry, repository string, claim evidence.Claim) ([]byte, error) {
	for b, err := range in.Store.Evidence(ctx, repository, claim.Subject) {
		if err != nil {
			return nil, err
		}
		if b.Digest == claim.Bundle {
			return b.Data, nil
		}
	}
	return nil, registry.Errorf(registry.CodeNotFound, "evidence %s is no longer in %s", claim.Bundle, repository)
}

// SigstoreBundle returns the summary as it is stored, which cosign reads.
func (s Summary) SigstoreBundle() []byte { return s.data }

// envelope is a DSSE envelope in JSON. Source: https://github.com/secure-systems-lab/dsse/blob/v1.0.0/envelope.md.
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// DSSE returns the summary as a bare DSSE envelope, without the bundle around it, which slsa-verifier reads. Payload
// and signature are the same bytes. keyID is written into it, and not signed; slsa-verifier takes the name of a key
// from there. Errors: CodeInvalid for a bundle without one signature.
func (s Summary) DSSE(keyID string) ([]byte, error) {
	var b struct {
		Envelope envelope `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(s.data, &b); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "evidence %s: %w", s.Bundle, err)
	}
	if len(b.Envelope.Signatures) != 1 {
		return nil, registry.Errorf(registry.CodeInvalid, "evidence %s has %d signatures, want one", s.Bundle, len(b.Envelope.Signatures))
	}
	b.Envelope.Signatures[0].KeyID = keyID
	text, err := json.Marshal(b.Envelope)
	return append(text, '\n'), err
}
