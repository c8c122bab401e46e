package artifact

import (
	"cmp"
	"strings"

	"golang.org/x/mod/semver"

	"mlpromote.dev/mlpromote/registry"
)

// CompareTags compares the versions that two tags of releases name, as SemVer 2.0.0 orders them (section 11), and of
// equal versions their revisions. A tag that is no version is equal to every other: it has no order.
func CompareTags(a, b string) int {
	x, xRevision := cutRevision(a)
	y, yRevision := cutRevision(b)
	if !registry.VersionPattern.MatchString(x) || !registry.VersionPattern.MatchString(y) {
		return 0
	}
	return cmp.Or(semver.Compare("v"+x, "v"+y), compareNumbers(xRevision, yRevision))
}

// cutRevision splits the tag of a later revision of a version; a first one has no revision.
func cutRevision(tag string) (version, revision string) {
	suffix := registry.RevisionPattern.FindString(tag)
	return strings.TrimSuffix(tag, suffix), strings.TrimPrefix(suffix, "-r")
}

// compareNumbers compares digits by value, however many they are. No digits are less than any.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
