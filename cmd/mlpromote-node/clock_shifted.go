//go:build shiftedclock

package main

import (
	"os"
	"time"
)

// now is a clock that is wrong by MLPROMOTE_CLOCK_SHIFT. Tests alone build the program so.
func now() time.Time {
	shift, err := time.ParseDuration(os.Getenv("MLPROMOTE_CLOCK_SHIFT"))
	if err != nil {
		return time.Now()
	}
	return time.Now().Add(shift)
}
