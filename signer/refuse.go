package signer

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// refuse returns the reason why a bundle that no trusted key signed for the resource does not
// count: who seems to have signed it, and which keys are trusted.
func refuse(e envelope, resource string, keys []trustedKey) error {
	for _, k := range keys {
		if k.signed(e) {
			return registry.Errorf(registry.CodeTrust, "bundle: signed by %s, which is trusted for %s and not for %s",
				k, strings.Join(k.resources, ", "), resource)
		}
	}
	trusted := slices.DeleteFunc(slices.Clone(keys), func(k trustedKey) bool { return len(k.against) == 0 })
	if len(trusted) == 0 {
		return registry.Errorf(registry.CodeTrust, "bundle: no key is trusted for %s; the bundle names key %s as its signer",
			resource, e.claimedKey())
	}
	var names []string
	for _, k := range trusted {
		names = append(names, k.String())
	}
	return registry.Errorf(registry.CodeTrust,
		"bundle: its signature was not made by a key that is trusted for %s; it names key %s; trusted are %s",
		resource, e.claimedKey(), strings.Join(names, ", "))
}

// String describes the key for messages: its path and its identifier.
func (k trustedKey) String() string {
	where := strings.Join(k.paths, " = ")
	if k.missing {
		return where + " (there is no such file)"
	}
	return fmt.Sprintf("%s (key %s)", where, k.id)
}
