package artifact

import (
	"cmp"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Constraint bounds a dotted numeric version. Exact excludes Min and Below. Min is inclusive,
// Below is exclusive.
type Constraint struct {
	Exact string `json:"exact,omitempty"`
	Min   string `json:"min,omitempty"`
	Below string `json:"below,omitempty"`
}

// Validate checks that the constraint has a bound and can be met. Errors: CodeInvalid.
func (c Constraint) Validate() error {
	if c == (Constraint{}) || (c.Exact != "" && (c.Min != "" || c.Below != "")) {
		return registry.Errorf(registry.CodeInvalid, "version constraint: want exact, or min and below")
	}
	for _, v := range []string{c.Exact, c.Min, c.Below} {
		if v != "" && !isVersion(v) {
			return registry.Errorf(registry.CodeInvalid, "version %q: want numbers separated by dots", v)
		}
	}
	if c.Min != "" && c.Below != "" && CompareVersions(c.Min, c.Below) >= 0 {
		return registry.Errorf(registry.CodeInvalid, "version constraint: no version is at least %s and below %s", c.Min, c.Below)
	}
	return nil
}

// Allows reports whether version meets the constraint. A version that is not a dotted number
// never does. The zero Constraint allows no version.
func (c Constraint) Allows(version string) bool {
	if !isVersion(version) || c.Validate() != nil {
		return false
	}
	if c.Exact != "" {
		return CompareVersions(version, c.Exact) == 0
	}
	return (c.Min == "" || CompareVersions(version, c.Min) >= 0) &&
		(c.Below == "" || CompareVersions(version, c.Below) < 0)
}

// Covers reports whether the constraint allows every version that other allows. A constraint that is
// invalid covers nothing, and is covered by none.
func (c Constraint) Covers(other Constraint) bool {
	switch {
	case c.Validate() != nil || other.Validate() != nil:
		return false
	case other.Exact != "":
		return c.Allows(other.Exact)
	case c.Exact != "":
		return false
	}
	low := c.Min == "" || other.Min != "" && CompareVersions(other.Min, c.Min) >= 0
	high := c.Below == "" || other.Below != "" && CompareVersions(other.Below, c.Below) <= 0
	return low && high
}

// String returns the constraint for people: "1.30.0", ">= 13.0", ">= 1.2 and < 2".
func (c Constraint) String() string {
	if c.Exact != "" {
		return c.Exact
	}
	var parts []string
	if c.Min != "" {
		parts = append(parts, ">= "+c.Min)
	}
	if c.Below != "" {
		parts = append(parts, "< "+c.Below)
	}
	return strings.Join(parts, " and ")
}

// CompareVersions compares dotted numbers; missing components count as 0.
func CompareVersions(a, b string) int {
	var ofA, ofB components
	x, _ := numbers(ofA[:0], a)
	y, _ := numbers(ofB[:0], b)
	for i := range max(len(x), len(y)) {
		var m, n uint64
		if i < len(x) {
			m = x[i]
		}
		if i < len(y) {
			n = y[i]
		}
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	return 0
}

func isVersion(text string) bool {
	var of components
	_, ok := numbers(of[:0], text)
	return ok
}

// numbers appends the components of a version to to, which saves memory where it has room. It
// returns false for a text that is not a version.
func numbers(to []uint64, version string) ([]uint64, bool) {
	for more := version != ""; more; {
		var field string
		field, version, more = strings.Cut(version, ".")
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return nil, false
		}
		to = append(to, n)
	}
	return to, len(to) > 0
}

// components has room for the components of most versions.
type components [6]uint64
