package signer

import (
	"encoding/hex"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// payloadType is the DSSE payload type of in-toto statements.
// Source: https://github.com/in-toto/attestation/blob/main/spec/v1/envelope.md.
const payloadType = "application/vnd.in-toto+json"

// statementType01 is the older _type, which cosign attest still writes. This package reads only
// the fields that it has in common with v1.
const statementType01 = "https://in-toto.io/Statement/v0.1"

// Limits of sigstore-go on statements.
const (
	maxSubjects       = 1024
	maxSubjectDigests = 32
)

// decodeStatement parses an in-toto Statement. Keys must have their exact spelling and must not
// be repeated, so that all readers see the same statement in the same bytes.
func decodeStatement(data []byte) (evidence.Statement, error) {
	var s evidence.Statement
	if err := registry.DecodeSigned(data, &s); err != nil {
		return evidence.Statement{}, fmt.Errorf("statement: %w", err)
	}
	if err := checkStatement(s); err != nil {
		return evidence.Statement{}, err
	}
	for i, subject := range s.Subject {
		if err := checkSubject(subject); err != nil {
			return evidence.Statement{}, fmt.Errorf("statement: subject %d: %w", i, err)
		}
	}
	return s, nil
}

func checkStatement(s evidence.Statement) error {
	switch {
	case s.Type != evidence.StatementType && s.Type != statementType01:
		return fmt.Errorf("statement: _type %.80q, want %q", s.Type, evidence.StatementType)
	case s.PredicateType == "":
		return fmt.Errorf("statement: predicateType is missing")
	case len(s.Subject) == 0:
		return fmt.Errorf("statement: it has no subject, want at least one")
	case len(s.Subject) > maxSubjects:
		return fmt.Errorf("statement: %d subjects, want at most %d", len(s.Subject), maxSubjects)
	}
	return nil
}

func checkSubject(s evidence.StatementSubject) error {
	if len(s.Digest) == 0 || len(s.Digest) > maxSubjectDigests {
		return fmt.Errorf("%d digests, want 1 to %d", len(s.Digest), maxSubjectDigests)
	}
	for algorithm, value := range s.Digest {
		if !validDigest(algorithm, value) {
			return fmt.Errorf("digest %.20q: want lower-case hex of its full length, found %.140q", algorithm, value)
		}
	}
	return nil
}

// validDigest checks the algorithms that OCI defines; other algorithms may have other formats.
func validDigest(algorithm, value string) bool {
	size, known := map[string]int{"sha256": 32, "sha384": 48, "sha512": 64}[algorithm]
	if !known {
		return value != ""
	}
	raw, err := hex.DecodeString(value)
	return err == nil && len(raw) == size && hex.EncodeToString(raw) == value
}
