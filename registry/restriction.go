package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// RestrictionKind says what a restriction is about.
type RestrictionKind string

// The kinds of restrictions.
const (
	RestrictSource      RestrictionKind = "source"      // a file of the model, its reference or its sources
	RestrictCalibration RestrictionKind = "calibration" // data that a quantizer read
	RestrictToolchain   RestrictionKind = "toolchain"   // versions of what imported, quantized or compiled it
	RestrictOperator    RestrictionKind = "operator"    // a library of operators that the engine carries
)

// RestrictionKinds lists all kinds.
func RestrictionKinds() []RestrictionKind {
	return []RestrictionKind{RestrictSource, RestrictCalibration, RestrictToolchain, RestrictOperator}
}

// Restriction says that engines which were made from or with something must not be promoted or used.
type Restriction struct {
	Kind RestrictionKind `json:"kind"`
	// Digest identifies a source, calibration data or an operator library. Empty for a toolchain.
	Digest Digest `json:"digest,omitempty"`
	// Toolchain is the name of a toolchain, and Versions the versions of it, as [ParseVersionRange]
	// reads them. Empty for the other kinds.
	Toolchain string    `json:"toolchain,omitempty"`
	Versions  string    `json:"versions,omitempty"`
	Reason    string    `json:"reason"`
	IssuedOn  time.Time `json:"issuedOn"`
	By        string    `json:"by"` // key identifier of the approver who restricted it first
}

// ParseRestriction reads what a restriction is about: a digest, or NAME@RANGE for a toolchain. The
// result has no reason, time or approver yet. Errors: CodeInvalid.
func ParseRestriction(kind RestrictionKind, text string) (Restriction, error) {
	r := Restriction{Kind: kind, Digest: Digest(text)}
	if kind == RestrictToolchain {
		name, versions, found := strings.Cut(text, "@")
		if !found {
			return Restriction{}, Errorf(CodeInvalid, "restriction: toolchain %.200q: want NAME@RANGE, such as onnxruntime@<1.24.0", text)
		}
		r = Restriction{Kind: kind, Toolchain: name, Versions: strings.ReplaceAll(versions, " ", "")}
	}
	return r, r.validateThing()
}

// String names what is restricted: "source sha256:...", "toolchain onnxruntime@<1.24.0". Two
// restrictions are about the same thing if their names are equal.
func (r Restriction) String() string {
	if r.Kind == RestrictToolchain {
		return fmt.Sprintf("%s %s@%s", r.Kind, r.Toolchain, r.Versions)
	}
	return fmt.Sprintf("%s %s", r.Kind, r.Digest)
}

// Validate checks the form of a restriction. Errors: CodeInvalid.
func (r Restriction) Validate() error {
	if err := r.validateThing(); err != nil {
		return err
	}
	switch {
	case r.Reason == "":
		return Errorf(CodeInvalid, "%s: want a reason, which stays in the list", r)
	case r.IssuedOn.IsZero():
		return Errorf(CodeInvalid, "%s: the time is missing", r)
	case r.By == "":
		return Errorf(CodeInvalid, "%s: want the key of the approver who restricted it", r)
	}
	if err := ValidateText("restriction: the approver", r.By); err != nil {
		return err
	}
	return ValidateText("restriction: the reason", r.Reason)
}

// validateThing checks what the restriction is about.
func (r Restriction) validateThing() error {
	if !slices.Contains(RestrictionKinds(), r.Kind) {
		return Errorf(CodeInvalid, "restriction: kind %.40q: want one of %v", r.Kind, RestrictionKinds())
	}
	if r.Kind != RestrictToolchain {
		if r.Toolchain != "" || r.Versions != "" {
			return Errorf(CodeInvalid, "restriction: a %s has a digest, and no toolchain", r.Kind)
		}
		if err := r.Digest.Validate(); err != nil {
			return Errorf(CodeInvalid, "restriction: %s: digest %.200q: %w; want sha256: and 64 hex digits",
				r.Kind, r.Digest, err)
		}
		return nil
	}
	if r.Digest != "" || !validToolchain(r.Toolchain) {
		return Errorf(CodeInvalid, "restriction: toolchain %.200q: want NAME@RANGE, such as onnxruntime@<1.24.0", r.Toolchain)
	}
	_, err := ParseVersionRange(r.Versions)
	return err
}

// validToolchain reports whether a text can be the name of a toolchain.
func validToolchain(name string) bool {
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
	}
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, odd)
}
