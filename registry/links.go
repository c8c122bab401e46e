package registry

import (
	_ "crypto/sha256" // without them go-digest knows no digests
	_ "crypto/sha512"
	"encoding/json"
	"slices"
)

// Links is what the bytes of a manifest or index say about other content.
type Links struct {
	Subject  Digest   // what it refers to; empty for most
	Mentions []Digest // all other digests in it, each once, in byte order
}

// ManifestLinks reads the links of a manifest of any media type. Every text in it that is a
// digest counts as a mention, also in annotations and in fields that nobody here knows: a
// collector that overlooked a reference would destroy what it names. Errors: CodeInvalid
// for what is no JSON object.
func ManifestLinks(raw []byte) (Links, error) {
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil || document == nil {
		return Links{}, Errorf(CodeInvalid, "it is no manifest: want a JSON object")
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

// mentions notes every digest in a JSON value.
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
