package registrytest

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Tables is the tables of one database.
type Tables struct {
	NodeTypes storage.NodeTypes
	Runtimes  storage.Runtimes
	// NodeReports is nil if they are no table, as for a client.
	NodeReports storage.NodeReports
}

// TestTables is the contract of [registry.Table], for both tables, and that neither
// shows in the other.
func TestTables(t *testing.T, open func(t *testing.T) Tables) {
	node := Node("v3")
	node.Accelerators = []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-L4", Arch: "sm_89", MemoryMiB: 23034, Driver: "580.65"}}
	t.Run("node types", func(t *testing.T) {
		t.Parallel()
		testTable(t, func(t *testing.T) storage.NodeTypes { return open(t).NodeTypes }, Node("v1"), node)
	})
	t.Run("runtimes", func(t *testing.T) {
		t.Parallel()
		one := artifact.Runtime{V: 1, Name: "triton-server:26.10", Runtimes: map[string]string{"onnxruntime": "1.30.0"}}
		other := artifact.Runtime{V: 1, Name: "x", Runtimes: map[string]string{"tensorrt": "11.0.0.1", "cuda": "13.1"}}
		testTable(t, func(t *testing.T) storage.Runtimes { return open(t).Runtimes }, one, other)
	})
	if open(t).NodeReports != nil {
		t.Run("node reports", func(t *testing.T) {
			t.Parallel()
			one := storage.NodeReport{Node: "a", Environment: "prod", Model: Model, ReportedOn: time.Unix(1, 0).UTC(), ExpiresOn: time.Unix(2, 0).UTC()}
			testTable(t, func(t *testing.T) registry.Table[storage.NodeReport] { return open(t).NodeReports }, one, storage.NodeReport{Node: "b"})
			testCounted(t, open(t).NodeReports)
		})
	}
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		tables := open(t)
		must(t, tables.NodeTypes.Put(t.Context(), "a", node))
		_, err := tables.Runtimes.Get(t.Context(), "a")
		wantCode(t, err, registry.CodeNotFound)
		wantCode(t, tables.Runtimes.Delete(t.Context(), "a"), registry.CodeNotFound)
	})
}

// testCounted is the contract of what reports have beyond a table.
func testCounted(t *testing.T, table storage.NodeReports) {
	t.Helper()
	one := storage.NodeReport{Node: "a", Environment: "prod", ExpiresOn: time.Unix(2, 500).UTC()}
	for _, name := range []string{"p/@a/1", "p/@a/2", "p/@a/2/3", "p/@a0", "p/@b/1", "p/"} {
		must(t, table.Put(t.Context(), name, one))
	}
	for _, c := range []struct {
		prefix     string
		most, want int
	}{{"p/@a/", 10, 3}, {"p/@a/", 2, 2}, {"p/@b/", 10, 1}, {"p/@c/", 10, 0}, {"p/@", 10, 5}} {
		n, err := table.CountNames(t.Context(), c.prefix, c.most)
		must(t, err)
		if n != c.want {
			t.Errorf("%d names begin with %q, up to %d; want %d", n, c.prefix, c.most, c.want)
		}
	}
	named := registry.Named[storage.NodeReport]{Name: "p/@b/1", Document: one}
	later := one
	later.ExpiresOn = time.Unix(3, 0).UTC()
	must(t, table.Put(t.Context(), named.Name, later))
	for _, c := range []struct {
		read storage.NodeReport
		want bool
	}{{one, false}, {later, true}, {later, false}} {
		gone, err := table.DeleteSame(t.Context(), registry.Named[storage.NodeReport]{Name: named.Name, Document: c.read})
		must(t, err)
		if gone != c.want {
			t.Errorf("a report that expires at %v was deleted: %v, want %v", c.read.ExpiresOn, gone, c.want)
		}
	}
	_, err := table.Get(t.Context(), named.Name)
	wantCode(t, err, registry.CodeNotFound)
}

func testTable[T any](t *testing.T, open func(t *testing.T) registry.Table[T], one, other T) {
	t.Run("put, get and delete", func(t *testing.T) {
		t.Parallel()
		table := open(t)
		_, err := table.Get(t.Context(), "a")
		wantCode(t, err, registry.CodeNotFound)
		wantCode(t, table.Delete(t.Context(), "a"), registry.CodeNotFound)
		for _, document := range []T{one, other, other, one} {
			must(t, table.Put(t.Context(), "a", document))
			got, err := table.Get(t.Context(), "a")
			must(t, err)
			wantEqual(t, got, document)
		}
		must(t, table.Delete(t.Context(), "a"))
		_, err = table.Get(t.Context(), "a")
		wantCode(t, err, registry.CodeNotFound)
	})
	t.Run("list", func(t *testing.T) {
		t.Parallel()
		table := open(t)
		page, err := table.List(t.Context(), "", 10)
		must(t, err)
		wantEqual(t, len(page), 0)
		names := []string{"A", "a", "a-b", "a.b/c:1@x", "b", "g6.xlarge"}
		for i := range names {
			must(t, table.Put(t.Context(), names[len(names)-1-i], one))
		}
		must(t, table.Put(t.Context(), "b", other))
		for _, limit := range []int{1, 2, len(names), 100} {
			var got []registry.Named[T]
			for after := ""; ; after = got[len(got)-1].Name {
				page, err := table.List(t.Context(), after, limit)
				must(t, err)
				if len(page) == 0 {
					break
				}
				if len(page) > limit {
					t.Fatalf("a page of %d has %d documents", limit, len(page))
				}
				got = append(got, page...)
			}
			var want []registry.Named[T]
			for _, name := range names {
				document := one
				if name == "b" {
					document = other
				}
				want = append(want, registry.Named[T]{Name: name, Document: document})
			}
			wantEqual(t, got, want)
		}
	})
}
