package pipeline

import "sync"

// lanes puts the ends of steps that ran beside each other into one order: those of the
// first lane, then those of the second, whichever ended first. Starts and moves, which a
// terminal alone shows, pass at once.
type lanes struct {
	to Progress

	mu    sync.Mutex
	first int      // lane whose ends pass
	held  [][]Step // of the lanes behind it
	ended []bool
}

func newLanes(n int, to Progress) *lanes {
	return &lanes{to: to, held: make([][]Step, n), ended: make([]bool, n)}
}

// progress is that of one lane.
func (l *lanes) progress(lane int) Progress {
	return func(s Step) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lane > l.first && s.State.ended() {
			l.held[lane] = append(l.held[lane], s)
			return
		}
		l.to(s)
	}
}

// end says that a lane has no more steps.
func (l *lanes) end(lane int) {
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

// lane is the pipeline with the progress of a lane.
func (p *Pipeline) lane(l *lanes, i int) *Pipeline {
	if p.Progress == nil {
		return p
	}
	lane := *p
	lane.Progress = l.progress(i)
	return &lane
}
