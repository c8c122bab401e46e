package service_test

import (
	"math/rand/v2"
	"slices"
)

// explore runs operations in every order of their steps that could make a difference, and
// calls check after each run. open gives an arena in which they are about to begin.
//
// Two orders that differ in swaps of neighbouring steps of which neither changes what the
// other one reads or changes have the same outcome: every answer and the end are the same.
// One order of each such class is run. That is the dynamic partial order reduction of
// Flanagan and Godefroid (2005): whenever a step was made that conflicts with an earlier one
// of another strand, and nothing between them forces their order, the run is repeated from
// before the earlier one with the other strand first. Sleep sets (Godefroid 1996) leave out
// what is only reached again by swaps. What a step touched is recorded while it is made, so
// that nothing rests on a guess about it.
//
// It gives up after limit runs, and says so.
func explore(limit int, open func() *arena, check func(*arena)) (runs int, all bool) {
	var path []*turn
	for {
		a := open()
		var done bool
		path, done = a.follow(path)
		if done {
			check(a)
		}
		a.stop()
		runs++
		if path = next(path); len(path) == 0 || runs == limit {
			return runs, len(path) == 0
		}
	}
}

// wander runs operations once, in an order by chance. Strands make several steps at a time,
// as most faults need few changes between them.
func (a *arena) wander(random *rand.Rand) {
	at := -1
	for {
		ready := a.ready()
		if len(ready) == 0 {
			return
		}
		if !slices.Contains(ready, at) || random.IntN(5) == 0 {
			at = ready[random.IntN(len(ready))]
		}
		a.advance(a.strands[at])
	}
}

// turn is a place in a schedule: who went on from there, and who is still to be tried.
type turn struct {
	ready []int
	took  int
	todo  map[int]bool
	done  map[int]access // strands that were tried, and what their step touched
	sleep map[int]access // strands of which all that begins here was tried elsewhere

	touched access
	clocks  map[int]int // for each strand, the last turn of it that must come before the next
	fresh   bool        // this run made it for the first time
}

// follow repeats the schedule of path, and goes on from its end as long as anything is ready
// that was not tried elsewhere. done is false if it broke off.
func (a *arena) follow(path []*turn) (_ []*turn, done bool) {
	last := make(map[int]map[int]int) // of each strand, the clocks of its last turn
	sleep := make(map[int]access)
	for at := 0; ; at++ {
		ready := a.ready()
		if len(ready) == 0 {
			return path[:at], true
		}
		if at == len(path) {
			i := slices.IndexFunc(ready, func(id int) bool { _, sleeps := sleep[id]; return !sleeps })
			if i < 0 {
				return path, false
			}
			path = append(path, &turn{ready: ready, took: ready[i], todo: map[int]bool{}, done: map[int]access{}, sleep: sleep, fresh: true})
		}
		t := path[at]
		t.touched = a.advance(a.strands[t.took])
		if t.fresh {
			t.fresh = false
			races(path[:at], t, last[t.took])
		}
		last[t.took] = t.clocks
		sleep = make(map[int]access)
		for _, others := range []map[int]access{t.sleep, t.done} {
			for id, touched := range others {
				if id != t.took && !touched.conflicts(t.touched) {
					sleep[id] = touched
				}
			}
		}
	}
}

// races finds out what must come before a turn. If the last one that conflicts with it need
// not have, the other order is still to be tried.
func races(before []*turn, t *turn, own map[int]int) {
	t.clocks = make(map[int]int)
	for id, at := range own {
		t.clocks[id] = at
	}
	raced := false
	for at, earlier := range slices.Backward(before) {
		if earlier.took == t.took || !earlier.touched.conflicts(t.touched) {
			continue
		}
		if known, ok := own[earlier.took]; !raced && (!ok || known < at) {
			raced = true
			earlier.try(t.took)
		}
		for id, seen := range earlier.clocks {
			if known, ok := t.clocks[id]; !ok || known < seen {
				t.clocks[id] = seen
			}
		}
	}
	t.clocks[t.took] = len(before)
}

// try asks for another strand to go on from here, or for all where that one could not.
func (t *turn) try(id int) {
	if slices.Contains(t.ready, id) {
		t.todo[id] = true
		return
	}
	for _, id := range t.ready {
		t.todo[id] = true
	}
}

// next changes the last turn of which something is still to be tried.
func next(path []*turn) []*turn {
	for n := len(path) - 1; n >= 0; n-- {
		t := path[n]
		t.done[t.took] = t.touched
		for _, id := range t.ready {
			_, tried := t.done[id]
			_, sleeps := t.sleep[id]
			if t.todo[id] && !tried && !sleeps {
				t.took, t.fresh = id, true
				return path[:n+1]
			}
		}
	}
	return nil
}

// ready lists the strands that can make a step now.
func (a *arena) ready() []int {
	var ids []int
	for _, s := range a.strands {
		if s.ready() {
			ids = append(ids, s.id)
		}
	}
	return ids
}
