package feed

import (
	"fmt"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// One caller who opens as many streams as it can, and ten who do, leave some for the next.
func TestStreamsAreShared(t *testing.T) {
	t.Parallel()
	s := NewStreams()
	open := func(caller string) (closed []func()) {
		for {
			closing, err := s.Add(caller)
			if err != nil {
				if registry.CodeOf(err) != registry.CodeUnavailable {
					t.Fatalf("too many streams: error %v, want CodeUnavailable", err)
				}
				return closed
			}
			closed = append(closed, closing)
		}
	}
	first := open("greedy")
	if len(first) != maxStreams/2 {
		t.Errorf("one caller has %d streams, want %d", len(first), maxStreams/2)
	}
	for n := range 9 {
		if got := open(fmt.Sprint(n)); len(got) == 0 {
			t.Fatalf("after one caller and %d others had what they could, the next gets no stream", n)
		}
	}
	for _, closing := range first {
		closing()
	}
	if got := open("late"); len(got) < maxStreams/4 {
		t.Errorf("after the first closed its streams, the next gets %d", len(got))
	}
	if _, left := s.open["greedy"]; left {
		t.Error("a caller without streams is remembered")
	}
}
