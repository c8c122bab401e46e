package web_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

// A real browser finds nothing wrong with the pages: tools/pagecheck says what it looks for. `make test` looks at them in
// light colours, and `make e2e-web` also in dark and forced ones.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	program, axe := os.Getenv("MLPROMOTE_PAGECHECK"), os.Getenv("MLPROMOTE_AXE")
	if program == "" || axe == "" {
		t.Skip("MLPROMOTE_PAGECHECK and MLPROMOTE_AXE: `make e2e-web` sets them")
	}
	w := withFleet(t, withOperations, withSignIn, withContent)
	before := w.Promoted(t, registrytest.Build{Version: "0.9.0", Salt: "0"})
	w.report(t, "a-node-with-a-name-as-long-as-clouds-give-them.internal", "box", before)
	w.clock.Pass(time.Hour)
	w.report(t, "edge-1", "box", before)
	release := w.Promoted(t, registrytest.Build{})
	w.report(t, "edge-2", "other", release)
	next := w.Build(t, registrytest.Build{Version: "2.0.0", Salt: "2", Engines: registrytest.Engines()[1:]})
	w.AttachTo(t, "staging", next, next.Digest, evidence.PredicateQuarantine, evidence.Quarantine{Reason: "a reason that is longer than one line of a telephone"})
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/events" {
			silent(out, r)
			return
		}
		w.pages.ServeHTTP(out, r.WithContext(storage.WithPrincipal(r.Context(), *everything())))
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	colors := "light"
	if os.Getenv("MLPROMOTE_ALL_COLORS") != "" {
		colors = "light,dark,forced"
	}
	args := []string{"-axe", axe, "-colors", colors}
	for _, path := range []string{
		"/", modelPage, modelPage + "/-/releases/" + string(release.Digest), modelPage + "/-/engines/" + string(release.Engines[0].Digest), promotePage,
		actOnProd + "?action=rollback&replaces=" + string(release.Digest), actOnProd + "?action=promote&release=" + string(next.Digest) + "&replaces=" + string(release.Digest),
		modelPage + "/-/compare?a=" + string(release.Digest) + "&b=" + string(next.Digest),
		digitsOnNodes, "/nodes", "/history", "/history?signer=" + strings.Repeat("0", 64), "/search?q=digits", "/search?q=nothing-has-this", "/search", "/operations",
		"/signin", "/models/none",
	} {
		args = append(args, server.URL+path)
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("%v: want nothing to be found in the pages:\n%s", err, out)
	}
}
