package proving

import (
	"fmt"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// servedText has what is known of the server that ran the engines, and its times with several clients beside that of the bare runtime; empty where
// runtimes ran them.
func servedText(engines []judged) string {
	text := ""
	rows := [][]string{{"ENGINE", "REQUESTS FROM", "PER SECOND", "P50", "P99", "P99.9", "QUEUE"}}
	for _, e := range engines {
		served := e.parity.Runtime.Served
		if served == nil {
			continue
		}
		seen := "seen"
		if !served.BytesSeen {
			seen = "not seen"
		}
		text = fmt.Sprintf("through %s %s, %s, bytes of the engine: %s\n", served.By, served.Version, served.Protocol, seen)
		if bare := e.performance.BareLatency; bare != nil && bare.Samples > 0 {
			rows = append(rows, []string{e.label, "bare runtime", fmt.Sprintf("%.0f", bare.PerSecond), printing.Duration(bare.P50Ns), printing.Duration(bare.P99Ns), "-", "-"})
		}
		for _, load := range e.performance.Loads {
			rows = append(rows, []string{e.label, requestsFrom(load), fmt.Sprintf("%.0f", load.PerSecond),
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

// throughServers has a row for each engine and model server that ran it; empty if none did.
func throughServers(engines []inspection.Engine) string {
	rows := [][]string{{"ENGINE", "THROUGH", "VERSION", "VERDICT", "P50", "P99"}}
	for _, e := range engines {
		for _, s := range e.Served {
			if s.Parity == nil {
				continue
			}
			row := []string{e.Label, s.By, s.Parity.Runtime.Version, printing.Verdict(s.Parity.Verdict), "-", "-"}
			if p := s.Performance; p != nil && p.Samples > 0 {
				row[4], row[5] = printing.Duration(p.P50Ns), printing.Duration(p.P99Ns)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return "\n" + ui.Table(rows) + "docs/how-to/servers.md explains these\n"
}
