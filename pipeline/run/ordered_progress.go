package run

import (
	"sync"

	"mlpromote.dev/mlpromote/pipeline/progress"
)

// OrderedProgress puts the ends of concurrent steps into one order: those of the
// first lane, then those of the second, whichever ended first. Starts and moves, which a
// terminal alone shows, pass at once.
type OrderedProgress struct {
	to Progress

	mu    sync.Mutex
	first int               // lane whose ends pass
	held  [][]progress.Step // ends of the lanes after the first
	ended []bool
}

// NewOrderedProgress returns an order of n lanes of steps.
func NewOrderedProgress(n int, to Progress) *OrderedProgress {
	return &OrderedProgress{to: to, held: make([][]progress.Step, n), ended: make([]bool, n)}
}

// Progress is that of one lane. It is nil if nothing is shown.
func (l *OrderedProgress) Progress(lane int) Progress {
	if l.to == nil {
		return nil
	}
	return func(s progress.Step) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lane > l.first && s.State.Ended() {
			l.held[lane] = append(l.held[lane], s)
			return
		}
		l.to(s)
	}
}

// End says that a lane has no more steps.
func (l *OrderedProgress) End(lane int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[lane] = true
	for l.first < len(l.ended) && l.ended[l.first] {
		if l.first++; l.first == len(l.held) {
			return
		}
		for _, s := range l.held[l.first] {
			l.to(s)
		}
		l.held[l.first] = nil
	}
}
