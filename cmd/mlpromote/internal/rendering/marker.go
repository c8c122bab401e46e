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

// The forms. KServe mounts an image volume for oci+native, and downloads for oci+fetch; for oci it does what ociModelMode of the cluster names.
const (
	FormRef         Form = "ref"          // HOST/ENV/MODEL@DIGEST
	FormDigest      Form = "digest"       // sha256:...
	FormImage       Form = "image"        // FormRef of the image form of an engine, for image volumes
	FormImageDigest Form = "image-digest" // FormDigest of the image form
	FormNative      Form = "oci+native"   // FormImage with oci+native:// in front
	FormFetch       Form = "oci+fetch"    // FormImage with oci+fetch:// in front
	FormOCI         Form = "oci"          // FormImage with oci:// in front
	FormRepository  Form = "repository"   // HOST/ENV/MODEL
	FormVersion     Form = "version"      // the tag of the release
)

func forms() []Form {
	return []Form{FormRef, FormDigest, FormImage, FormImageDigest, FormNative, FormFetch, FormOCI, FormRepository, FormVersion}
}

// schemes are what the forms of KServe have in front.
var schemes = map[Form]string{FormNative: "oci+native://", FormFetch: "oci+fetch://", FormOCI: "oci://"}

// ofImage reports whether the form names the image form of an engine.
func (f Form) ofImage() bool { return f == FormImage || f == FormImageDigest || schemes[f] != "" }

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
		return registry.Errorf(registry.CodeInvalid, "marker of %s: write %.100q: want one of %v", m.Model, m.Write, forms())
	case m.Write.ofImage() && m.Engine == "" && m.NodeType == "":
		return registry.Errorf(registry.CodeInvalid, "marker of %s: an engine has an image form, and a release has none: want engine or node-type", m.Model)
	}
	return nil
}

// checkPlace refuses forms that the place of a value cannot use: container runtimes mount an empty folder from an engine, and no release, and
// KServe takes URIs.
func (m Marker) checkPlace(path []string) error {
	if len(path) > 0 && path[len(path)-1] == "storageUri" && schemes[m.Write] == "" {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "marker of %s: storageUri would get %q, and KServe wants a scheme", m.Model, m.Write),
			"write: oci+native mounts the image form of an engine, and oci+fetch downloads it")
	}
	volume := []string{"volumes", "image", "reference"}
	if len(path) < len(volume) || !slices.Equal(path[len(path)-len(volume):], volume) || m.Write == FormImage {
		return nil
	}
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "marker of %s: the volume would get %q, and container runtimes mount images alone", m.Model, m.Write),
		`write: image, with engine or node-type, names the image form of an engine`)
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
	if f.ofImage() {
		if whole.Digest = t.Image; t.Image == "" {
			return "", registry.WithHint(registry.Errorf(registry.CodeNotFound, "%s %s in %s has no image forms: the version of mlpromote that built it made none",
				t.Model, t.Version, t.Environment), "build it again under a new version, verify and promote that")
		}
	}
	switch f {
	case FormDigest, FormImageDigest:
		return string(whole.Digest), nil
	case FormVersion:
		return t.Version, nil
	}
	if t.Host == "" {
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s is in a data directory, and no cluster can fetch it there", whole),
			"--registry URL names the service that has it; or let the marker write the digest or the version")
	}
	if f == FormRepository {
		return repository.String(), nil
	}
	return schemes[f] + whole.String(), nil
}
