package registry_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	keys := []string{"variants", "version", "cases"}
	for name, want := range map[string]string{
		"varients": ` (did you mean "variants"?)`,
		"verson":   ` (did you mean "version"?)`,
		"case":     ` (did you mean "cases"?)`,
		"limits":   "",
		"":         "",
	} {
		if got := registry.Suggest(name, keys); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", name, got, want)
		}
	}
}
