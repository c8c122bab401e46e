package nodes

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/node/cluster"
)

func TestConflictLines(t *testing.T) {
	t.Parallel()
	g := cluster.Group{Name: "l4", Conflicts: []cluster.Conflict{
		{Node: "a", Fact: "accelerator.driver", Label: "1", Slice: "2"}, {Node: "b", Fact: "accelerator.driver", Label: "3", Slice: "2"},
		{Node: "c", Fact: "accelerator.driver", Label: "1", Slice: "2"}, {Node: "d", Fact: "accelerator.driver", Label: "1", Slice: "2"},
	}}
	want := []string{
		"l4: conflict on node a and 2 more: accelerator.driver: 1 by label, 2 by ResourceSlice",
		"l4: conflict on node b: accelerator.driver: 3 by label, 2 by ResourceSlice",
	}
	if got := conflictLines(g); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
