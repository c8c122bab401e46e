package evidence

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// AdverseEvidence is evidence that must not be lost ([Claim.Adverse]), as the catalog keeps it. Whoever may push to a
// repository can take evidence out of its list of referrers; what the catalog keeps counts all the same.
type AdverseEvidence struct {
	Environment   string          `json:"environment"` // the one of the event that names it
	Model         string          `json:"model"`
	Subject       registry.Digest `json:"subject"`
	Bundle        registry.Digest `json:"bundle"`                  // of Manifest
	PredicateType string          `json:"predicateType,omitempty"` // as the manifest claims
	Caller        string          `json:"caller,omitempty"`        // who attached it; empty: a local user of the data directory
	Document      registry.Digest `json:"document"`                // of Data
	Manifest      []byte          `json:"manifest"`                // exact bytes of the referrer
	Data          []byte          `json:"data"`                    // the sigstore bundle
}

// Adverse reports whether the claim is a quarantine, the lift of one, or a report that did not pass. The catalog keeps such
// claims: without one, a withdrawn engine would come back, or a restored one would stay away.
func (c Claim) Adverse() bool {
	if _, ok := c.Quarantine(); ok {
		return true
	}
	read, ok := ReadReport(c)
	return ok && !read.Passes()
}

// Name is the name of the row. Rows of one model, subject, environment and caller follow one another. None of the names
// has an @.
func (a AdverseEvidence) Name() string { return a.Prefix() + string(a.Bundle) }

// Prefix is the beginning of the names of the caller's rows about the subject in the environment.
func (a AdverseEvidence) Prefix() string {
	return AdversePrefix(a.Model, a.Subject) + a.Environment + "@" + digest.FromString(a.Caller).Encoded() + "@"
}

// AdversePrefix is the beginning of the names of the rows about a subject, or of a model if the subject is empty.
func AdversePrefix(model string, subject registry.Digest) string {
	if subject == "" {
		return model + "@"
	}
	return model + "@" + string(subject) + "@"
}

// Check compares the bytes with the digest that the history names. Errors: CodeDigest if either was changed.
func (a AdverseEvidence) Check() error {
	var m struct {
		Subject struct {
			Digest registry.Digest `json:"digest"`
		} `json:"subject"`
		Layers []struct {
			Digest registry.Digest `json:"digest"`
		} `json:"layers"`
	}
	is := func(d registry.Digest, data []byte) bool {
		return d.Validate() == nil && d.Algorithm().FromBytes(data) == d
	}
	if !is(a.Bundle, a.Manifest) || json.Unmarshal(a.Manifest, &m) != nil || len(m.Layers) != 1 ||
		m.Subject.Digest != a.Subject || m.Layers[0].Digest != a.Document || !is(a.Document, a.Data) {
		return registry.WithHint(
			registry.Errorf(registry.CodeDigest, "%s: the evidence %s about %s that the catalog keeps was changed", a.Model, a.Bundle, a.Subject),
			"nothing that rests on it is decided: restore the catalog from a backup")
	}
	return nil
}

// AdverseEvidences reads what [storage.Change.Keeps] wrote. Nothing deletes it.
type AdverseEvidences interface {
	// Adverse lists the rows about a subject in any environment, by name, without Manifest and Data. An empty subject
	// means all of the model.
	Adverse(ctx context.Context, model string, subject registry.Digest) ([]AdverseEvidence, error)
	// AdverseRow returns a whole row by its name. Errors: CodeNotFound; those of Check.
	AdverseRow(ctx context.Context, name string) (AdverseEvidence, error)
	// CountAdverse counts the rows of a's caller about a's subject in a's environment.
	CountAdverse(ctx context.Context, a AdverseEvidence) (int, error)
	// KeepAdverse writes a row again whose event the history has already.
	KeepAdverse(ctx context.Context, a AdverseEvidence) error
}
