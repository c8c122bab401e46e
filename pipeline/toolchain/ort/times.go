//go:build cgo

package ort

import (
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// kernelTime ends the names of events of nodes.
const kernelTime = "_kernel_time"

// readTimes reads where the time goes out of a profile of several runs, without the first of them, in which
// the runtime allocates memory and packs weights.
func readTimes(path string) (*toolchain.RunProfile, error) {
	found := &toolchain.RunProfile{}
	operators := make(map[[2]string]*measuredOperator)
	var order []*measuredOperator
	var runs meanTime
	err := eachEvent(path, func(event profileEvent) {
		took := event.Micros * int64(time.Microsecond)
		switch {
		case event.Category == "Session" && event.Name == "model_run":
			runs.add(took)
		case event.Category == "Session" && (event.Name == "session_initialization" || strings.HasPrefix(event.Name, "model_loading")):
			found.Load = append(found.Load, toolchain.ProfileTime{Name: event.Name, TimeNS: took})
		case event.Category == "Node" && strings.HasSuffix(event.Name, kernelTime):
			node := strings.TrimSuffix(event.Name, kernelTime)
			key := [2]string{node, event.Args.Operator}
			if operators[key] == nil {
				operators[key] = &measuredOperator{about: toolchain.OperatorTime{Node: node, Operator: event.Args.Operator, Provider: event.Args.Provider}}
				order = append(order, operators[key])
			}
			operators[key].times.add(took)
		}
	})
	if err != nil {
		return nil, err
	}
	found.Runs, found.RunNS, found.Operators = max(runs.n-1, 0), runs.mean(), []toolchain.OperatorTime{}
	for _, o := range order {
		o.about.TimeNS = o.times.mean()
		found.Operators = append(found.Operators, o.about)
	}
	return found, nil
}

type measuredOperator struct {
	about toolchain.OperatorTime
	times meanTime
}

// meanTime is the mean of times without the first.
type meanTime struct {
	n          int
	first, sum int64
}

func (m *meanTime) add(ns int64) {
	if m.n++; m.n == 1 {
		m.first = ns
		return
	}
	m.sum += ns
}

func (m *meanTime) mean() int64 {
	if m.n < 2 {
		return m.first
	}
	return m.sum / int64(m.n-1)
}
