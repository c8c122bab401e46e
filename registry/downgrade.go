package registry

import (
	"cmp"
	"fmt"
	"strings"
)

// RequireNoDowngrade applies where a promotion would replace a newer version. A rollback goes back; what
// replaces a newer version otherwise is mostly a job that comes late.
const RequireNoDowngrade = "no-downgrade"

// replacesNewer reports whether the release is of an older version than the head that it would replace.
func (p Policy) replacesNewer(r Release) bool {
	there := p.Promotion
	return !there.Replay && there.HeadVersion != "" && there.Head != r.Digest && CompareTags(r.Tag(), there.HeadVersion) < 0
}

// judgeDowngrade decides about a release that would replace a newer version: only who asks for it gets it.
func (p Policy) judgeDowngrade() Requirement {
	there := p.Promotion
	req := Requirement{Name: RequireNoDowngrade, Subject: "release", Met: there.Downgrade}
	req.Detail = fmt.Sprintf("%s has %s, which is newer", there.Environment, there.HeadVersion)
	if req.Met {
		req.Detail += ": replacing it was asked for"
	}
	return req
}

// CompareTags compares the versions that two tags of releases name, as SemVer 2.0.0 orders them (section 11), and of
// equal versions their revisions. A tag that is no version is equal to every other: it has no order.
func CompareTags(a, b string) int {
	x, xRevision := cutRevision(a)
	y, yRevision := cutRevision(b)
	if !versionPattern.MatchString(x) || !versionPattern.MatchString(y) {
		return 0
	}
	xCore, xPre, _ := strings.Cut(x, "-")
	yCore, yPre, _ := strings.Cut(y, "-")
	return cmp.Or(comparePrecedence(xCore, yCore), comparePrerelease(xPre, yPre), compareNumbers(xRevision, yRevision))
}

// cutRevision splits the tag of a later revision of a version; a first one has no revision.
func cutRevision(tag string) (version, revision string) {
	suffix := revisionPattern.FindString(tag)
	return strings.TrimSuffix(tag, suffix), strings.TrimPrefix(suffix, "-r")
}

// comparePrerelease orders what follows the first hyphen. Nothing is more than something: 1.0.0 is newer than 1.0.0-rc.1.
func comparePrerelease(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return comparePrecedence(a, b)
}

// comparePrecedence compares identifiers between dots from the left. Of two lists that begin alike the longer one is more.
func comparePrecedence(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		if c := compareIdentifiers(x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// compareIdentifiers compares numbers by value and words by their bytes. Numbers are less than words.
func compareIdentifiers(a, b string) int {
	aNumber, bNumber := isDigits(a), isDigits(b)
	switch {
	case aNumber && bNumber:
		return compareNumbers(a, b)
	case aNumber:
		return -1
	case bNumber:
		return 1
	}
	return strings.Compare(a, b)
}

// compareNumbers compares digits by value, however many they are. No digits are less than any.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
