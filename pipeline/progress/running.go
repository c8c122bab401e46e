package progress

import (
	"sync"
	"time"
)

// beat is how often a running step is told of.
const beat = time.Second

// Running is a step whose progress is shown every second until it ends.
type Running struct {
	to    func(Step)
	name  string
	now   func() time.Time
	began time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu   sync.Mutex
	note string
}

// Begin tells that a step starts. to is called from another goroutine too until End, which must
// follow.
func Begin(to func(Step), name string, now func() time.Time) *Running {
	r := &Running{to: to, name: name, now: now, began: now(), stop: make(chan struct{})}
	to(Step{Name: name, State: Started})
	r.ended.Add(1)
	go r.beats()
	return r
}

func (r *Running) beats() {
	defer r.ended.Done()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			r.mu.Lock()
			note := r.note
			r.mu.Unlock()
			r.to(Step{Name: r.name, State: Moving, Note: note, Elapsed: r.now().Sub(r.began)})
		}
	}
}

// Note says how far the step is, from now on.
func (r *Running) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note = text
}

// End tells that the step ended with err, which may be nil.
func (r *Running) End(note string, err error, details ...string) {
	close(r.stop)
	r.ended.Wait()
	r.to(Step{Name: r.name, State: EndState(err), Note: note, Details: details, Elapsed: r.now().Sub(r.began)})
}
