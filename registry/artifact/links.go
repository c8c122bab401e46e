package artifact

import (
	_ "crypto/sha256" // digests may name it
	_ "crypto/sha512" // as above
	"encoding/json"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Links lists the digests that a manifest or index refers to.
type Links struct {
	Subject  registry.Digest   // the manifest that it refers to; usually empty
	Mentions []registry.Digest // all other digests in it, unique, in byte order
}

// ManifestLinks reads the links of a manifest of any media type. Every string that is a digest
// counts as a mention, also in annotations and unknown fields. If the collector missed a
// reference, it would delete content that is in use. Errors: CodeInvalid if raw is not a JSON
// object.
func ManifestLinks(raw []byte) (Links, error) {
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil || document == nil {
		return Links{}, registry.Errorf(registry.CodeInvalid, "not a manifest: want a JSON object")
	}
	var links Links
	if subject, ok := document["subject"].(map[string]any); ok {
		if text, ok := subject["digest"].(string); ok && registry.Digest(text).Validate() == nil {
			links.Subject = registry.Digest(text)
			delete(subject, "digest")
		}
	}
	mentioned := make(map[registry.Digest]bool)
	mentions(document, mentioned)
	for d := range mentioned {
		links.Mentions = append(links.Mentions, d)
	}
	slices.Sort(links.Mentions)
	return links, nil
}

// mentions collects every digest in a JSON value.
func mentions(value any, noted map[registry.Digest]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			mentions(inner, noted)
		}
	case []any:
		for _, inner := range v {
			mentions(inner, noted)
		}
	case string:
		if d := registry.Digest(v); d.Validate() == nil {
			noted[d] = true
		}
	}
}
