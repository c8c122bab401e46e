package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// Engines are sorted by a link, without JavaScript, and the link of the column that they are sorted by turns them round.
func TestEnginesSortByLink(t *testing.T) {
	t.Parallel()
	w := setup(t)
	engines := []artifact.Engine{registrytest.MakeEngine("v3", "fp32"), registrytest.MakeEngine("v4", "int8"), registrytest.MakeEngine("v2", "fp16")}
	w.Promoted(t, registrytest.Build{Engines: engines})
	inOrder := func(query string) bool {
		page := w.get(everything(), modelPage+"?environment=prod&sort="+query)
		wantPage(t, query, page, http.StatusOK)
		var at []int
		for _, label := range []string{"linux-amd64-v2/fp16", "linux-amd64-v3/fp32", "linux-amd64-v4/int8"} {
			at = append(at, strings.Index(page.Body.String(), ">"+label+"</a>"))
		}
		if slices.Contains(at, -1) {
			t.Fatalf("sort=%s: engines are at %v, want all three", query, at)
		}
		if strings.HasPrefix(query, "-") {
			slices.Reverse(at)
		}
		return slices.IsSorted(at)
	}
	for _, query := range []string{"engine", "-engine"} {
		if !inOrder(query) {
			t.Errorf("sort=%s: the engines are in another order", query)
		}
	}
	wantPage(t, "sorted", w.get(everything(), modelPage+"?environment=prod&sort=engine"), http.StatusOK,
		`aria-sort="ascending"><a href="?environment=prod&amp;sort=-engine">Engine</a>`, `<a href="?environment=prod&amp;sort=p99">p99</a>`)
	wantPage(t, "not measured", w.get(everything(), modelPage+"?sort=-p99"), http.StatusOK, `aria-sort="descending"><a href="?sort=p99">p99</a>`)
	wantWithout(t, "unknown", w.get(everything(), modelPage+"?sort=%22%3E%3Cscript%3E"), "aria-sort", "<script>", "sort=%22")
}
