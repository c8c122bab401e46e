package ui

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/progress"
)

// Where no terminal moves, a step that runs long is said to do so after 5 seconds and then every 15, with how far it is.
func TestLongStepWithoutATerminal(t *testing.T) {
	t.Parallel()
	u, _, stderr := screen()
	u.Verbose = false
	step := progress.Step{Name: "compile fp32", State: progress.Started}
	u.Progress(step)
	for second := 1; second <= 31; second++ {
		step.State, step.Elapsed = progress.Moving, time.Duration(second)*time.Second
		if second == 20 {
			step.Note = "120 of 600 runs"
		}
		u.Progress(step)
	}
	step.State, step.Note = progress.Done, ""
	u.Progress(step)
	want := "  compile fp32                                    5.0 s  still running\n" +
		"  compile fp32                                   20.0 s  still running, 120 of 600 runs\n" +
		"  compile fp32                                   31.0 s\n"
	if got := stderr.String(); got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}
