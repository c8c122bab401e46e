package toolchains_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/toolchains"
)

func TestSettingTakes(t *testing.T) {
	t.Parallel()
	numbers := toolchains.Setting{Max: 9999}
	positive := toolchains.Setting{Words: []string{"AUTO"}, Min: 1, Max: 9999}
	for _, c := range []struct {
		setting toolchains.Setting
		value   string
		want    bool
	}{
		{numbers, "0", true}, {numbers, "9999", true}, {numbers, "10000", false}, {numbers, "-1", false}, {numbers, "+1", false},
		{numbers, "01", false}, {numbers, "", false}, {numbers, "1.0", false},
		{positive, "0", false}, {positive, "1", true}, {positive, "AUTO", true}, {positive, "auto", false},
		{toolchains.Setting{Words: []string{"0", "1"}}, "2", false},
		{toolchains.Setting{}, "1,2;3,4", true},
	} {
		if got := c.setting.Takes(c.value); got != c.want {
			t.Errorf("%+v takes %q: %t, want %t", c.setting, c.value, got, c.want)
		}
	}
}

// Every toolchain has a name of its own, and every option of a runtime has words for a message.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, row := range toolchains.All() {
		if row.Name == "" || seen[row.Name] {
			t.Errorf("%q: two rows have this name, or it is empty", row.Name)
		}
		seen[row.Name] = true
		if found, ok := toolchains.Find(row.Name); !ok || found.Name != row.Name {
			t.Errorf("%s: not found by its name", row.Name)
		}
		for name, s := range row.Options {
			if s.Text == "" || s.Min > s.Max {
				t.Errorf("%s: option %s: %+v has no text, or an empty range", row.Name, name, s)
			}
		}
		if !row.Engines && (row.Accelerators || row.Triton || len(row.AsIs)+len(row.Lacks)+len(row.Options) > 0) {
			t.Errorf("%s makes no engines, and the table has properties of some", row.Name)
		}
	}
	if !seen[toolchains.Reference] {
		t.Errorf("no row of %s, which runs reference models", toolchains.Reference)
	}
}
