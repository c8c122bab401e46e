package registry_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestRedactURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://registry.example":                    "https://registry.example",
		"http://127.0.0.1:5080/":                      "http://127.0.0.1:5080/",
		"https://ci:secret@registry.example":          "https://xxxxx@registry.example",
		"https://ci:sec/r@et?#@registry.example/x":    "https://xxxxx@registry.example/x",
		"https://ci:secret%zz@registry.example":       "https://xxxxx@registry.example",
		"ci:secret@registry.example":                  "xxxxx@registry.example",
		"https://registry.example/?token=secret#more": "https://registry.example/?xxxxx",
		"https://registry.example#secret":             "https://registry.example#xxxxx",
		"":                                            "",
	} {
		if got := registry.RedactURL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
