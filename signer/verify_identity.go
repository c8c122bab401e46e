package signer

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// verifyIdentity verifies a bundle with a certificate. The claim's signer is the matching entry that
// asks for least, so that a signer is one identity whatever its certificates, and however many
// subjects an entry matches. All matching entries give roles; the worst state of any counts, and only
// what is in all their windows.
func (t *Trust) verifyIdentity(e envelope, believed authorities, resource string) (evidence.Claim, error) {
	who, err := believed.identify(e)
	if err != nil {
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "bundle: %w", err)
	}
	var k trustedKey
	var broadest trust.TrustEntry
	for _, entry := range t.identities {
		if !who.matches(*entry.Identity) {
			continue
		}
		k.add(entry, resource)
		if broadest.Identity == nil || conditions(entry) < conditions(broadest) {
			broadest = entry
		}
	}
	switch {
	case broadest.Identity == nil:
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "bundle: signed by %s, and no trust entry has that identity", who)
	case len(k.against) == 0:
		return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "bundle: signed by %s, which is trusted for %s and not for %s",
			who, strings.Join(k.resources, ", "), resource)
	}
	k.id = broadest.String()
	return claim(e, k, who.stamped)
}

// conditions counts what an entry asks of an identity.
func conditions(e trust.TrustEntry) int {
	n := len(e.Identity.Claims)
	if e.Identity.Subject != "" {
		n++
	}
	return n
}
