package sandbox

import "encoding/json"

// server is the keeper's state.
type server struct {
	orders
	oom     oomScore
	reports *json.Encoder
	gone    chan struct{} // closed when the parent process has ended
	kin     chan ended    // receives how the program ended
	alone   chan struct{} // closed when all processes of the program have ended
}

func (s *server) tell(r report) int {
	if err := s.reports.Encode(r); err != nil {
		return 2
	}
	return 0
}
