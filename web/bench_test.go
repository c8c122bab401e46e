package web_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// ten are ten engines of one release.
func ten() []artifact.Engine {
	var all []artifact.Engine
	for i := range 10 {
		e := registrytest.MakeEngine([]string{"v1", "v2", "v3", "v4"}[i%4], "int8")
		e.Variant = fmt.Sprintf("int8-%d", i)
		all = append(all, e)
	}
	return all
}

// largest is the maximum size in bytes of the first page.
const largest = 100 << 10

// A full board of models that wait for everything is below 100 KiB, and the second page goes on after the first.
func TestBoardIsSmall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range 52 {
		w.Build(t, registrytest.Build{Model: fmt.Sprintf("team-%d/a-model-with-a-name-%02d", i%5, i), Engines: ten()})
	}
	got := w.get(everything(), "/")
	wantPage(t, "first page", got, http.StatusOK, "Next page", "reasons to wait")
	if size := got.Body.Len(); size > largest {
		t.Errorf("the first page has %d bytes, want at most %d", size, largest)
	}
	wantPage(t, "second page", w.get(everything(), "/?after=team-4%2Fa-model-with-a-name-44"), http.StatusOK, "team-4/a-model-with-a-name-49", "First page")
}

// BenchmarkBoard is the first page of 1,000 models with ten engines each, on SQLite. Those on the page have a release in
// prod and another one that waits for everything.
func BenchmarkBoard(b *testing.B) {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "registry.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	w := setupOn(b, db)
	for i := range 1000 {
		model := fmt.Sprintf("team/model-%03d", i)
		if i <= 50 {
			w.Promoted(b, registrytest.Build{Model: model, Engines: ten()})
		}
		w.Build(b, registrytest.Build{Model: model, Version: "2.0.0", Salt: "2", Engines: ten()})
	}
	if got := w.get(everything(), "/").Body.String(); !strings.Contains(got, "team/model-049") || !strings.Contains(got, "reasons to wait") {
		b.Fatalf("the page is not that of the models that were promoted:\n%s", got)
	}
	b.ResetTimer()
	size := 0
	for b.Loop() {
		got := w.get(everything(), "/")
		if got.Code != http.StatusOK {
			b.Fatalf("got status %d, want the page", got.Code)
		}
		size = got.Body.Len()
	}
	b.ReportMetric(float64(size), "bytes/page")
}
