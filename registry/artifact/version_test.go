package artifact_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

func TestConstraintAllows(t *testing.T) {
	t.Parallel()
	type c = artifact.Constraint
	for _, row := range []struct {
		constraint c
		allows     string
		refuses    string
	}{
		{c{}, "", "0 1 1.0 "},
		{c{Exact: "1.30.0"}, "1.30.0 1.30 1.30.0.0 01.030.0", "1.30.1 1.3 1.300.0 1 v1.30.0 1.30.0-rc1 +1.30.0 1.30. .1 1..0"},
		{c{Min: "1.2"}, "1.2 1.2.0 1.2.0.1 1.10 2", "1.1.99 1 0 -1.3 1.3a"},
		{c{Below: "2"}, "0 1.99.99 1", "2 2.0 2.0.0 10 3"},
		{c{Min: "12.4", Below: "13"}, "12.4 12.10", "12.3 13 13.0.0 13.1 99999999999999999999999"},
		{c{Exact: "1", Min: "1"}, "", "1"},     // contradicts itself
		{c{Min: "2", Below: "2"}, "", "2 1 3"}, // nothing can meet it
		{c{Min: "x"}, "", "1 x"},               // is no version
		{c{Exact: "580.65.06"}, "580.65.06 580.65.6", "580.65.60"},
	} {
		for _, version := range strings.Fields(row.allows) {
			if !row.constraint.Allows(version) {
				t.Errorf("%+v refuses %q", row.constraint, version)
			}
		}
		for _, version := range append(strings.Fields(row.refuses), "", " ", "1,2", "١") {
			if row.constraint.Allows(version) {
				t.Errorf("%+v allows %q", row.constraint, version)
			}
		}
	}
}

func TestConstraintValidate(t *testing.T) {
	t.Parallel()
	type c = artifact.Constraint
	for want, good := range map[string]c{"1.30.0": {Exact: "1.30.0"}, ">= 1": {Min: "1"},
		"< 2.1": {Below: "2.1"}, ">= 1 and < 1.0.1": {Min: "1", Below: "1.0.1"}} {
		if err := good.Validate(); err != nil || good.String() != want {
			t.Errorf("%+v: error %v, text %q, want %q", good, err, good, want)
		}
	}
	for _, bad := range []c{{}, {Exact: "1", Min: "1"}, {Exact: "1", Below: "2"}, {Exact: "1-rc"},
		{Min: "1."}, {Below: "v2"}, {Min: "1", Below: "1.0"}, {Min: "2", Below: "1"}} {
		if err := bad.Validate(); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%+v: error %v, want CodeInvalid", bad, err)
		}
	}
}

func drawVersion(t *rapid.T, label string) string {
	parts := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 4).Draw(t, label)
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(parts), " ", "."), "[]")
}

func TestCompareVersionsIsATotalOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawVersion(t, "a"), drawVersion(t, "b"), drawVersion(t, "c")
		if artifact.CompareVersions(a, b) != -artifact.CompareVersions(b, a) {
			t.Fatalf("%s and %s are not compared alike both ways", a, b)
		}
		if artifact.CompareVersions(a, b) <= 0 && artifact.CompareVersions(b, c) <= 0 && artifact.CompareVersions(a, c) > 0 {
			t.Fatalf("%s <= %s <= %s and yet the first is above the last", a, b, c)
		}
		if artifact.CompareVersions(a, a+".0") != 0 || artifact.CompareVersions(a, a+".1") >= 0 {
			t.Fatalf("%s is not equal to %s.0 and below %s.1", a, a, a)
		}
		inside := artifact.CompareVersions(a, b) <= 0 && artifact.CompareVersions(b, c) < 0
		if got := (artifact.Constraint{Min: a, Below: c}).Allows(b); got != inside {
			t.Fatalf("at least %s and below %s: allows %s is %v, want %v", a, c, b, got, inside)
		}
	})
}

// A constraint covers another if it allows every version that the other does.
func TestConstraintCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		covers, covered artifact.Constraint
		want            bool
	}{
		{artifact.Constraint{Min: "1.20"}, artifact.Constraint{Min: "1.20"}, true},
		{artifact.Constraint{Min: "1.20"}, artifact.Constraint{Min: "1.30"}, true},
		{artifact.Constraint{Min: "1.30"}, artifact.Constraint{Min: "1.20"}, false},
		{artifact.Constraint{Min: "1.30"}, artifact.Constraint{Min: "1.4"}, false},
		{artifact.Constraint{Min: "1"}, artifact.Constraint{Below: "2"}, false},
		{artifact.Constraint{Below: "2"}, artifact.Constraint{Min: "1", Below: "2"}, true},
		{artifact.Constraint{Below: "2"}, artifact.Constraint{Min: "1", Below: "2.0.1"}, false},
		{artifact.Constraint{Below: "2"}, artifact.Constraint{Min: "1"}, false},
		{artifact.Constraint{Min: "1", Below: "2"}, artifact.Constraint{Exact: "1.5"}, true},
		{artifact.Constraint{Min: "1", Below: "2"}, artifact.Constraint{Exact: "2"}, false},
		{artifact.Constraint{Exact: "1.5"}, artifact.Constraint{Exact: "1.5.0"}, true},
		{artifact.Constraint{Exact: "1.5"}, artifact.Constraint{Min: "1.5", Below: "1.6"}, false},
		{artifact.Constraint{}, artifact.Constraint{Exact: "1.5"}, false},
		{artifact.Constraint{Min: "1"}, artifact.Constraint{}, false},
	} {
		if got := c.covers.Covers(c.covered); got != c.want {
			t.Errorf("%q covers %q: %t, want %t", c.covers, c.covered, got, c.want)
		}
	}
}
