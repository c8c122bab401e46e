package distribution_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/distribution"
)

// Every route that is told of is answered, and asks for what it says.
func TestRoutesAreAnswered(t *testing.T) {
	t.Parallel()
	asked := make(map[distribution.Access]bool)
	for _, want := range requests() {
		asked[want] = true
	}
	w := listen(t, memory(t))
	fill := strings.NewReplacer("{repository}", repo, "{digest}", digest.FromString("x").String(), "{reference}", "x", "{id}", "x")
	routes := distribution.Routes()
	for _, r := range routes {
		access := distribution.Access{Repository: repo, Action: r.Action}
		if !strings.Contains(r.Pattern, "{repository}") {
			access.Repository = ""
		}
		a := w.do(t, r.Method, fill.Replace(r.Pattern), nil)
		if r.Pattern == "" || a.status == 405 || a.code == "UNSUPPORTED" || !asked[access] {
			t.Errorf("%s %s: %d %s", r.Method, r.Pattern, a.status, a.body)
		}
	}
	if len(routes) < 15 {
		t.Errorf("there are only %d routes", len(routes))
	}
}
