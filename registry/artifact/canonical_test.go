package artifact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// The example of RFC 8785 section 3.2.2 with its result in section 3.2.3.
func TestCanonicalJSONOfRFC8785(t *testing.T) {
	t.Parallel()
	in := json.RawMessage(`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`)
	want := `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
	wantCanonical(t, in, want)
}

// Keys are sorted by UTF-16 code units: RFC 8785 section 3.2.3. U+1F600 is the
// surrogates D83D DE00, and so stands before U+FB33.
func TestCanonicalJSONSortsByUTF16(t *testing.T) {
	t.Parallel()
	in := map[string]string{
		"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
		"1": "One", "\U0001f600": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis",
	}
	canonical, err := registry.CanonicalJSON(in)
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, value := range []string{"Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis",
		"Euro Sign", "Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh"} {
		at := strings.Index(string(canonical), value)
		if at <= last {
			t.Errorf("%q is out of order in %s", value, canonical)
		}
		last = at
	}
}

// Numbers of RFC 8785 appendix B, and text that encoding/json escapes for HTML.
func TestCanonicalJSONNumbersAndText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "5e-324": "5e-324", "-5e-324": "-5e-324", "1.7976931348623157e308": "1.7976931348623157e+308",
		"9007199254740992": "9007199254740992", "295147905179352830000": "295147905179352830000", "9.999999999999997e22": "9.999999999999997e+22",
		"1e23": "1e+23", "1.0000000000000001e23": "1.0000000000000001e+23", "999999999999999900000": "999999999999999900000", "1e21": "1e+21",
		"333333333.3333332": "333333333.3333332", "0.000001": "0.000001", "1e-7": "1e-7",
	} {
		wantCanonical(t, json.RawMessage("["+in+"]"), "["+want+"]")
	}
	wantCanonical(t, []string{"<a&b>\u2028"}, "[\"<a&b>\u2028\"]")
	wantCanonical(t, artifact.Constraint{Min: "1"}, `{"min":"1"}`)
}

func wantCanonical(t *testing.T, in any, want string) {
	t.Helper()
	got, err := registry.CanonicalJSON(in)
	if err != nil || string(got) != want {
		t.Errorf("got %s, error %v, want %s", got, err, want)
	}
}

func TestCanonicalDigest(t *testing.T) {
	t.Parallel()
	a, err := registry.CanonicalDigest(json.RawMessage(`{"b":1.0,"a":[]}`))
	if err != nil || a.Validate() != nil {
		t.Fatalf("digest %q, error %v", a, err)
	}
	b, err := registry.CanonicalDigest(map[string]any{"a": []int{}, "b": 1})
	if err != nil || a != b {
		t.Errorf("equal values have the digests %s and %s, error %v", a, b, err)
	}
	if _, err := registry.CanonicalDigest(func() {}); err == nil {
		t.Error("a function has a digest")
	}
}
