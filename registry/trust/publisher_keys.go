package trust

import (
	"encoding/pem"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// CheckPublishersAlone refuses a publisher's key that has another role too, whatever the names of its
// files are: whoever takes another key must not say who is trusted. id returns what identifies the
// key of an entry, or "" where that is not known. Errors: CodeInvalid.
func CheckPublishersAlone(entries []TrustEntry, id func(TrustEntry) string) error {
	first := make(map[string]TrustEntry)
	for _, e := range entries {
		key := id(e)
		if key == "" || e.Identity != nil {
			continue
		}
		before, again := first[key]
		if !again {
			first[key], before = e, e
		}
		if e.publishes() == before.publishes() && (!e.publishes() || len(e.Roles) == 1) {
			continue
		}
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "trust: %s and %s are one key: a %s has a key of its own, without another role", before, e, evidence.RolePublisher),
			"make a key for the publisher with mlpromote key generate --role publisher")
	}
	return nil
}

func (e TrustEntry) publishes() bool { return slices.Contains(e.Roles, evidence.RolePublisher) }

// keyBytes returns what a PEM block holds, without what may differ between files of the same key:
// headers and white space. Text that is no PEM is returned as it is.
func keyBytes(text string) string {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		return string(block.Bytes)
	}
	return text
}
