// Package rendering writes what an environment resolves to into deployment files: refs and digests at the places that
// comments mark.
package rendering

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// markerKey is the first key of a marker, and what tells it from other comments.
const markerKey = "$mlpromote"

// maxMarker is how many bytes a marker may have.
const maxMarker = 4 << 10

// Marker says what belongs at its place. It is a comment in JSON behind a value:
//
//	reference: ""  # {"$mlpromote": "vision/digits", "node-type": "g6.xlarge"}
//
// With neither Engine nor NodeType, it is the release that is meant.
type Marker struct {
	Model       string `json:"$mlpromote"`
	Environment string `json:"env"`       // empty: the one that the caller asked for
	Engine      string `json:"engine"`    // label of an engine of the release: "cpu-x64/int8"
	NodeType    string `json:"node-type"` // the engine that nodes of this type resolve to
	Write       Form   `json:"write"`     // empty: FormRef
}

// Form is what is written of a release or an engine.
type Form string

// The forms.
const (
	FormRef        Form = "ref"        // HOST/ENV/MODEL@DIGEST
	FormImage      Form = "image"      // HOST/ENV/MODEL@DIGEST of the image form of an engine, for image volumes
	FormURI        Form = "uri"        // FormRef with oci:// in front, as KServe takes it
	FormDigest     Form = "digest"     // sha256:...
	FormRepository Form = "repository" // HOST/ENV/MODEL
	FormVersion    Form = "version"    // the tag of the release
)

func forms() []Form {
	return []Form{FormRef, FormImage, FormURI, FormDigest, FormRepository, FormVersion}
}

// parseMarker reads a comment, without its '#'. ok is false for comments of other kinds.
func parseMarker(comment string) (m Marker, ok bool, err error) {
	text := strings.TrimSpace(comment)
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"`+markerKey+`"`) {
		return Marker{}, false, nil
	}
	if len(text) > maxMarker {
		return Marker{}, true, registry.Errorf(registry.CodeInvalid, "the marker has %d bytes: want at most %d", len(text), maxMarker)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Marker{}, true, registry.WithHint(registry.Errorf(registry.CodeInvalid, "marker %.200q: %w", text, err),
			`want {"`+markerKey+`": MODEL} with env, engine or node-type, and write, if needed`)
	}
	if d.More() {
		return Marker{}, true, registry.Errorf(registry.CodeInvalid, "marker %.200q: there is something behind it", text)
	}
	return m, true, m.check()
}

// check refuses what cannot be looked up.
func (m *Marker) check() error {
	if err := registry.ValidateModel(m.Model); err != nil {
		return err
	}
	if m.Write == "" {
		m.Write = FormRef
	}
	switch {
	case m.Engine != "" && m.NodeType != "":
		return registry.Errorf(registry.CodeInvalid, "marker of %s: want engine or node-type, not both", m.Model)
	case !slices.Contains(forms(), m.Write):
		return registry.Errorf(registry.CodeInvalid, "marker of %s: write %.100q: want ref, image, uri, digest, repository or version", m.Model, m.Write)
	case m.Write == FormImage && m.Engine == "" && m.NodeType == "":
		return registry.Errorf(registry.CodeInvalid, "marker of %s: an engine has an image form, and a release has none: want engine or node-type", m.Model)
	}
	return nil
}

// subject is what the marker asks about, without the form: markers with one subject need one answer.
func (m Marker) subject() Marker {
	m.Write = ""
	return m
}

// Target is the release or engine that a marker means.
type Target struct {
	Host        string // of the registry that has it; empty: a data directory
	Environment string
	Model       string
	Version     string // tag of the release
	Digest      registry.Digest
	Image       registry.Digest // of the image form of an engine; empty: it has none
}

// text is the target in a form. Errors: CodeInvalid if nothing outside of this machine could fetch it.
func (t Target) text(f Form) (string, error) {
	repository := registry.Ref{Host: t.Host, Environment: t.Environment, Model: t.Model}
	whole := repository
	whole.Digest = t.Digest
	if f == FormImage {
		if whole.Digest = t.Image; t.Image == "" {
			return "", registry.WithHint(registry.Errorf(registry.CodeNotFound, "%s %s in %s has no image forms: the version of mlpromote that built it made none",
				t.Model, t.Version, t.Environment), "build it again under a new version, verify and promote that")
		}
	}
	switch f {
	case FormDigest:
		return string(t.Digest), nil
	case FormVersion:
		return t.Version, nil
	}
	if t.Host == "" {
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s is in a data directory, and no cluster can fetch it there", whole),
			"--registry URL names the service that has it; or let the marker write the digest or the version")
	}
	switch f {
	case FormRepository:
		return repository.String(), nil
	case FormURI:
		return "oci://" + whole.String(), nil
	default:
		return whole.String(), nil
	}
}
