package registry

import (
	_ "crypto/sha256" // registers the digest algorithm
	_ "crypto/sha512"
	"encoding/json"
	"slices"
)

// Links lists the digests that a manifest or index refers to.
type Links struct {
	Subject  Digest   // the manifest that it refers to; usually empty
	Mentions []Digest // all other digests in it, unique, in byte order
}

// ManifestLinks reads the links of a manifest of any media type. Every string that is a digest
// counts as a mention, also in annotations and unknown fields. If the collector missed a
// reference, it would delete content that is in use. Errors: CodeInvalid if raw is not a JSON
// object.
func ManifestLinks(raw []byte) (Links, error) {
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil || document == nil {
		return Links{}, Errorf(CodeInvalid, "not a manifest: want a JSON object")
	}
	var links Links
	if subject, ok := document["subject"].(map[string]any); ok {
		if text, ok := subject["digest"].(string); ok && Digest(text).Validate() == nil {
			links.Subject = Digest(text)
			delete(subject, "digest")
		}
	}
	mentioned := make(map[Digest]bool)
	mentions(document, mentioned)
	for d := range mentioned {
		links.Mentions = append(links.Mentions, d)
	}
	slices.Sort(links.Mentions)
	return links, nil
}

// mentions collects every digest in a JSON value.
func mentions(value any, noted map[Digest]bool) {
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
		if d := Digest(v); d.Validate() == nil {
			noted[d] = true
		}
	}
}
