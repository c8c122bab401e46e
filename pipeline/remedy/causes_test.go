package remedy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Every reason that docs/how-to/failures.md explains has a likely cause, and the page has every reason that has one.
func TestEveryReasonHasACause(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "failures.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\|[^|]*\\| (`[^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(code, "`")] = true
		}
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
			if !documented[code] && code != validators.ReasonShape {
				t.Errorf("the page has no %s", code)
			}
		}
		if row.cause == "" || row.next == "" || strings.HasSuffix(row.next, ".") {
			t.Errorf("%v: cause %q, next %q", row.codes, row.cause, row.next)
		}
	}
}
