package main

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
)

// cmdVerifyVSA checks FILE KEY VERIFIER RESOURCE LEVEL DIGEST... as slsa-verifier verify-vsa does: with the libraries that
// it verifies envelopes with, and the fields that it decodes and compares. It prints why a file is refused.
// Source: https://github.com/slsa-framework/slsa-verifier, verifiers/internal/vsa.
func cmdVerifyVSA(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 6 {
		ts.Fatalf("want FILE KEY VERIFIER RESOURCE LEVEL DIGEST...")
	}
	err := verifyVSA([]byte(ts.ReadFile(args[0])), []byte(ts.ReadFile(args[1])), args[2], args[3], args[4], args[5:])
	switch {
	case neg && err == nil:
		ts.Fatalf("%s is accepted, want it refused", args[0])
	case neg:
		fmt.Fprintf(ts.Stdout(), "%v\n", err)
	default:
		ts.Check(err)
	}
}

func verifyVSA(file, key []byte, verifier, resource, level string, digests []string) error {
	public, err := cryptoutils.UnmarshalPEMToPublicKey(key)
	if err != nil {
		return err
	}
	loaded, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return err
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal(file, &envelope); err != nil {
		return err
	}
	if len(envelope.Signatures) == 0 {
		return fmt.Errorf("no signature: is it no envelope?")
	}
	by, err := dsse.NewEnvelopeVerifier(&sigdsse.VerifierAdapter{SignatureVerifier: loaded, Pub: public, PubKeyID: envelope.Signatures[0].KeyID})
	if err != nil {
		return err
	}
	if _, err := by.Verify(context.Background(), &envelope); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return err
	}
	return matchVSA(payload, verifier, resource, level, digests)
}

// described is an input or a policy as slsa-verifier decodes it.
type described struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

func matchVSA(payload []byte, verifier, resource, level string, digests []string) error {
	var vsa struct {
		Type          string      `json:"_type"`
		PredicateType string      `json:"predicateType"`
		Subject       []described `json:"subject"`
		Predicate     struct {
			Verifier struct {
				ID      string            `json:"id"`
				Version map[string]string `json:"version"`
			} `json:"verifier"`
			TimeVerified       time.Time      `json:"timeVerified"`
			ResourceURI        string         `json:"resourceUri"`
			Policy             described      `json:"policy"`
			InputAttestations  []described    `json:"inputAttestations"`
			VerificationResult string         `json:"verificationResult"`
			VerifiedLevels     []string       `json:"verifiedLevels"`
			DependencyLevels   map[string]int `json:"dependencyLevels"`
			SLSAVersion        string         `json:"slsaVersion"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(payload, &vsa); err != nil {
		return err
	}
	p := vsa.Predicate
	for _, d := range digests {
		algorithm, hex, _ := strings.Cut(d, ":")
		if !slices.ContainsFunc(vsa.Subject, func(s described) bool { return s.Digest[algorithm] == hex }) {
			return fmt.Errorf("subject %s is not in the summary", d)
		}
	}
	for _, input := range append(p.InputAttestations, p.Policy) {
		if input.URI == "" || len(input.Digest) == 0 {
			return fmt.Errorf("an input or the policy has no URI or no digest: %+v", input)
		}
	}
	switch {
	case vsa.Type != "https://in-toto.io/Statement/v1" || vsa.PredicateType != "https://slsa.dev/verification_summary/v1":
		return fmt.Errorf("statement %s with predicate %s", vsa.Type, vsa.PredicateType)
	case p.Verifier.ID != verifier:
		return fmt.Errorf("verifier %s, want %s", p.Verifier.ID, verifier)
	case p.ResourceURI != resource:
		return fmt.Errorf("resource %s, want %s", p.ResourceURI, resource)
	case p.VerificationResult != "PASSED":
		return fmt.Errorf("result %s", p.VerificationResult)
	case !slices.Contains(p.VerifiedLevels, level):
		return fmt.Errorf("levels %v, want %s", p.VerifiedLevels, level)
	case p.TimeVerified.IsZero() || p.SLSAVersion != "1.0" || len(p.InputAttestations) == 0 || len(p.Verifier.Version) == 0:
		return fmt.Errorf("incomplete: %+v", p)
	}
	return nil
}
