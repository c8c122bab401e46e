package evidence

import "math"

// MostRare is the largest number of requests of which one may differ that limits and policies can ask for.
const MostRare = 100_000

// MissedOneIn returns how rare a difference between runs of the same request is that the repeated runs would miss half of the time: one in
// so many requests; 0 without such runs.
func (c Checks) MissedOneIn() int {
	runs := 0
	for _, check := range c {
		if check.Trial == TrialRepeat || check.Trial == TrialProcess || check.Trial == TrialLoad {
			runs += check.Cases
		}
	}
	return missedBy(runs)
}

func missedBy(runs int) int {
	if runs <= 0 {
		return 0
	}
	return int(math.Round(1 / (1 - math.Pow(0.5, 1/float64(runs)))))
}

// RunsFor returns how many repeated runs it takes to miss a difference in one of so many requests at most half of the time.
func RunsFor(rare int) int {
	if rare <= 1 {
		return 0
	}
	runs := int(math.Log(0.5) / math.Log1p(-1/(float64(rare)-0.5))) // one of rare, rounded
	for missedBy(runs) < rare {
		runs++
	}
	return runs
}
