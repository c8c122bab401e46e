package proving

import (
	"fmt"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// servedText has what is known of the server that ran the engines, and its times with several clients beside that of the bare runtime; empty where
// runtimes ran them.
func servedText(r verify.Result) string {
	text := ""
	rows := [][]string{{"ENGINE", "REQUESTS FROM", "PER SECOND", "P50", "P99", "P99.9", "QUEUE"}}
	for _, e := range r.Engines {
		served := e.Parity.Runtime.Served
		if served == nil {
			continue
		}
		seen := "seen"
		if !served.BytesSeen {
			seen = "not seen"
		}
		text = fmt.Sprintf("through %s %s, %s, bytes of the engine: %s\n", served.By, served.Version, served.Protocol, seen)
		if bare := e.Performance.BareLatency; bare != nil && bare.Samples > 0 {
			rows = append(rows, []string{e.Label, "bare runtime", fmt.Sprintf("%.0f", bare.PerSecond), printing.Duration(bare.P50Ns), printing.Duration(bare.P99Ns), "-", "-"})
		}
		for _, load := range e.Performance.Loads {
			rows = append(rows, []string{e.Label, requestsFrom(load), fmt.Sprintf("%.0f", load.PerSecond),
				printing.Duration(load.P50Ns), printing.Duration(load.P99Ns), printing.Duration(load.P999Ns), queueText(load)})
		}
	}
	if len(rows) > 1 {
		text += ui.Table(rows)
	}
	if text != "" {
		text += "\n"
	}
	return text
}

func requestsFrom(load evidence.LoadFigures) string {
	if load.Rate > 0 {
		return fmt.Sprintf("%.0f a second", load.Rate)
	}
	return registry.Count(load.Clients, "client")
}

func queueText(load evidence.LoadFigures) string {
	if load.QueueNs == 0 {
		return "-"
	}
	return printing.Duration(load.QueueNs)
}
