package toolchain

import "time"

// The load on a server: all cases in rounds, by more and more clients, and then at half of the highest rate of these.
const (
	loadRequests = 1000 // of each, about: for a 99.9th percentile
	loadRounds   = 64   // at most
	openShare    = 0.5
	// loadTimes is how many times as long as one client all loads take for a round, on a server that computes one answer at a time: three take
	// as long, and the one at half of the rate twice as long.
	loadTimes = 5
)

// ServerLoads are the loads under which a server is measured, in their order.
func ServerLoads() []ServerLoad {
	return []ServerLoad{{Clients: 1}, {Clients: 4}, {Clients: 16}, {Clients: 64, Share: openShare}}
}

// PlanServerLoads returns how many rounds of the cases fit into half of a time under all loads, at least one, and how long one may take: twice the time
// that it should, however slow the server is. engines are runs by one client; the one with the id counts.
func PlanServerLoads(engines []EngineResult, id string, cases int, within time.Duration) (rounds int, least time.Duration) {
	rounds = min(loadRequests/cases+1, loadRounds)
	for _, r := range engines {
		if r.ID != id || len(r.TimingsNS) == 0 {
			continue
		}
		var sum int64
		for _, t := range r.TimingsNS {
			sum += t
		}
		if all := time.Duration(loadTimes * sum / int64(len(r.TimingsNS)) * int64(cases)); all > 0 {
			rounds, least = max(min(rounds, int(within/2/all)), 1), 2*all
		}
	}
	return rounds, least
}
