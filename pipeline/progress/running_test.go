package progress_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mlpromote.dev/mlpromote/pipeline/progress"
)

// A step is told of every second until it ends, with what was said last of how far it is, and not
// after.
func TestRunningStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		var told []progress.Step
		tell := func(s progress.Step) {
			lock.Lock()
			defer lock.Unlock()
			told = append(told, s)
		}
		r := progress.Begin(tell, "compile", time.Now)
		time.Sleep(1500 * time.Millisecond)
		r.Note("3 of 9 runs")
		time.Sleep(time.Second)
		r.End("9 runs", errors.New("broken"))
		time.Sleep(time.Minute)
		want := []progress.Step{
			{Name: "compile", State: progress.Started},
			{Name: "compile", State: progress.Moving, Elapsed: time.Second},
			{Name: "compile", State: progress.Moving, Note: "3 of 9 runs", Elapsed: 2 * time.Second},
			{Name: "compile", State: progress.Failed, Note: "9 runs", Elapsed: 2500 * time.Millisecond},
		}
		if len(told) != len(want) {
			t.Fatalf("told %+v, want %+v", told, want)
		}
		for i, w := range want {
			if got := told[i]; got.Name != w.Name || got.State != w.State || got.Note != w.Note || got.Elapsed != w.Elapsed {
				t.Errorf("told %+v, want %+v", got, w)
			}
		}
	})
}
