package toolchain_test

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// A server that answers slowly gets fewer rounds, at least one, and the time for it.
func TestPlanServerLoads(t *testing.T) {
	t.Parallel()
	const within, atOnce = time.Minute, 5 // rounds of one client that the loads take as long as
	for name, c := range map[string]struct {
		answer        time.Duration
		cases, rounds int
	}{
		"fast":                {time.Millisecond, 100, 11},
		"few cases":           {time.Microsecond, 2, 64},
		"25 ms":               {25 * time.Millisecond, 100, 2},
		"slow":                {200 * time.Millisecond, 1000, 1},
		"nothing known of it": {0, 100, 11},
	} {
		results := []toolchain.EngineResult{{ID: "other", TimingsNS: []int64{1}}, {ID: "a", TimingsNS: []int64{0, 2 * c.answer.Nanoseconds()}}}
		rounds, least := toolchain.PlanServerLoads(results, "a", c.cases, within)
		if one := time.Duration(atOnce*c.cases) * c.answer; rounds != c.rounds || least != 2*one || time.Duration(rounds)*one > within/2+one {
			t.Errorf("%s: %d rounds, least %v, want %d", name, rounds, least, c.rounds)
		}
	}
}
