package oidc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/access/oidc"
)

// The files that the how-to shows are taken as they stand there.
func TestExamplesOfTheHowTo(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/how-to/access.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		if !strings.HasPrefix(block[1], "issuers:") {
			continue
		}
		n++
		if _, err := oidc.Parse("docs/how-to/access.md", []byte(block[1])); err != nil {
			t.Error(err)
		}
	}
	if n != 4 {
		t.Errorf("%d files are shown, want those of GitHub, GitLab, Kubernetes and of people with a browser", n)
	}
}
