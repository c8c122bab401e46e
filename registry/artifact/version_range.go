package artifact

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// VersionRange is a set of versions: those that meet all of its bounds. The zero VersionRange
// contains every version.
type VersionRange struct{ bounds []versionBound }

// versionBound compares a version with another.
type versionBound struct {
	operator string // "<", "<=", ">", ">=" or "="
	version  string
}

// maxBounds is more than a range needs.
const maxBounds = 8

// ParseVersionRange reads bounds with commas between them: "<1.24.0", ">=1.22,<1.24", "1.23.2".
// A bound without an operator is one version. Versions are numbers separated by dots and compared
// number by number; missing numbers count as 0. Errors: CodeInvalid, also if no version can meet
// all bounds.
func ParseVersionRange(text string) (VersionRange, error) {
	var r VersionRange
	for field := range strings.SplitSeq(text, ",") {
		version := strings.TrimLeft(field, "<>=")
		b := versionBound{field[:len(field)-len(version)], version}
		if b.operator == "" {
			b.operator = "="
		}
		if !slices.Contains([]string{"<", "<=", ">", ">=", "="}, b.operator) || !isVersion(version) || len(r.bounds) == maxBounds {
			return VersionRange{}, registry.Errorf(registry.CodeInvalid,
				"range of versions %.200q: want up to %d bounds such as <1.24.0, >=1.22,<1.24 or 1.23.2: <, <=, >, >= or =, and numbers separated by dots",
				text, maxBounds)
		}
		r.bounds = append(r.bounds, b)
	}
	if r.empty() {
		return VersionRange{}, registry.Errorf(registry.CodeInvalid, "range of versions %.200q: no version is in it", text)
	}
	return r, nil
}

// empty reports whether no version meets all bounds. Between two versions that differ there is
// always another, and no version is below 0.
func (r VersionRange) empty() bool {
	for _, high := range r.bounds {
		if high.operator == "<" && CompareVersions(high.version, "0") == 0 {
			return true
		}
		for _, low := range r.bounds {
			compared := CompareVersions(low.version, high.version)
			if low.isLow() && high.isHigh() && (compared > 0 || compared == 0 && (low.operator == ">" || high.operator == "<")) {
				return true
			}
		}
	}
	return false
}

// isLow reports whether the bound excludes small versions.
func (b versionBound) isLow() bool { return !strings.HasPrefix(b.operator, "<") }

// isHigh reports whether the bound excludes large versions.
func (b versionBound) isHigh() bool { return !strings.HasPrefix(b.operator, ">") }

// Contains reports whether a version is in the range. A version that is not a dotted number cannot
// be compared, and is in every range; what follows a '+' does not count.
func (r VersionRange) Contains(version string) bool {
	version, _, _ = strings.Cut(version, "+")
	if !isVersion(version) {
		return true
	}
	for _, b := range r.bounds {
		if !b.allows(CompareVersions(version, b.version)) {
			return false
		}
	}
	return true
}

// allows takes how a version compares with that of the bound.
func (b versionBound) allows(compared int) bool {
	switch b.operator {
	case "<":
		return compared < 0
	case "<=":
		return compared <= 0
	case ">":
		return compared > 0
	case ">=":
		return compared >= 0
	}
	return compared == 0
}
