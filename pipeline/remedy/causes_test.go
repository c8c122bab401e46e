package remedy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// Every reason that docs/how-to/failures.md explains has a likely cause, and the page has every reason that has one.
func TestEveryReasonHasACause(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "failures.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	reasons, _, _ := strings.Cut(string(page), "\n## Requirements of a promotion")
	for _, heading := range regexp.MustCompile("(?m)^### `([a-z_]+)`$").FindAllStringSubmatch(reasons, -1) {
		documented[heading[1]] = true
	}
	if len(documented) < 15 {
		t.Fatalf("the page has %d codes", len(documented))
	}
	for code := range documented {
		if likely, next := Of(evidence.Reason{Code: code, Output: "y", Figure: "snrDb"}, "fp32"); likely == "not known" || next == "" {
			t.Errorf("%s has no likely cause", code)
		}
	}
	for _, row := range causes {
		for _, code := range row.codes {
			if !documented[code] {
				t.Errorf("the page has no %s", code)
			}
		}
		if row.cause == "" || row.next == "" || strings.HasSuffix(row.next, ".") {
			t.Errorf("%v: cause %q, next %q", row.codes, row.cause, row.next)
		}
	}
}
